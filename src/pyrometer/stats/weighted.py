"""The median of values that stand for more than themselves."""

from collections.abc import Iterable


def weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """The middle of (value, weight) pairs, each weight above 0; there must be one.

    With equal weights it is the usual median: where half of the weight lies on each side of two
    neighbours, it is the mean of both.
    """
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    below = 0.0
    for (value, weight), (following, _) in zip(ordered, [*ordered[1:], ordered[-1]], strict=True):
        below += weight
        if below == half:
            return (value + following) / 2
        if below > half:
            return value
    return ordered[-1][0]
