"""The median over the values of all groups, and its interval."""

import random
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

RESAMPLES = 1_000


class Interval(NamedTuple):
    """Between which values a figure lies, at the confidence asked for."""

    low: float
    high: float


def lower_median(values: Iterable[float]) -> float:
    """The middle value, of two the lower; there must be one."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def pooled_median(groups: Sequence[Sequence[float]]) -> float:
    """The lower median of all values of all groups."""
    return lower_median(chain.from_iterable(groups))


def two_level_interval(
    groups: Sequence[Sequence[float]],
    *,
    confidence: float = 0.99,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Where the pooled median would lie with other groups, and other values in them: a bootstrap of both.

    Processes differ by more than the samples within one do, so leaving the first level out gives
    intervals that are too short. Seeded: the same values give the same interval.
    """
    chooser = random.Random(seed)
    medians = sorted(
        pooled_median(
            [chooser.choices(group, k=len(group)) for group in chooser.choices(groups, k=len(groups))]
        )
        for _ in range(resamples)
    )
    tail = int(resamples * (1 - confidence) / 2)
    return Interval(low=medians[tail], high=medians[-1 - tail])
