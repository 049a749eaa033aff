"""How sure a share is that was found by sampling."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_95_PERCENT = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What a share may be: of a hundred such intervals 95 hold the true share."""

    low: float
    high: float

    @property
    def margin(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2


def share_interval(share: float, samples: float) -> Interval:
    """Wilson's interval, which says something even of a share of 0, and is never outside 0 to 1."""
    if samples <= 0:
        return Interval(low=0.0, high=1.0)
    square = _95_PERCENT**2
    middle = (share + square / (2 * samples)) / (1 + square / samples)
    spread = share * (1 - share) / samples + square / (4 * samples**2)
    half = _95_PERCENT * math.sqrt(max(spread, 0.0)) / (1 + square / samples)
    return Interval(low=max(0.0, min(middle - half, share)), high=min(1.0, max(middle + half, share)))


def effective_samples(groups: Iterable[tuple[int, int]], *, spread: float) -> float:
    """How many samples of equal weight say as much as these: (samples, weight of all of them) groups.

    Samples that stand for more time than others make a share less sure. ``spread`` is the squared
    relative deviation of the weights within a group.
    """
    known = [(samples, weight) for samples, weight in groups if samples and weight]
    squares = sum(weight * (weight / samples) for samples, weight in known)
    total = sum(weight for _, weight in known)
    return total * (total / squares) / (1 + spread) if squares else 0.0
