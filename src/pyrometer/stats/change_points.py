"""Where a series changes its level: binary segmentation on ranks, with chance measured by shuffling.

A split is judged by the weighted sum of ranks before it, at the place where that is largest. How large
it gets without any change is found by shuffling the very same values, so nothing is assumed of their
distribution: a single wild value has one rank like any other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from operator import mul
from statistics import median

LEAST_SEGMENT = 5
"""Fewer values have no level of their own to speak of."""

LEVEL = 0.01
"""How often a series without a change is said to have one, at most."""

MOST_DRAWS = 20_000
_DRAWS_AT_THE_LEVEL = 20
"""So many orders may be as extreme at the level: with fewer the answer would hang on the seed."""

Shuffle = Callable[[list[int]], None]
"""Puts a list into a random order, in place; a seeded one gives the same answer each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A place where the level changes. ``before`` and ``after`` reach to the neighbouring changes."""

    index: int
    """Of the first value after it."""
    before: float
    """The median of the stretch before."""
    after: float
    p: float
    """The share of orders of its stretch in which chance makes as large a change somewhere."""


def find_change_points(
    values: Sequence[float], *, shuffle: Shuffle, level: float = LEVEL
) -> tuple[ChangePoint, ...]:
    """The changes of level, in the order of the series; each stretch has ``LEAST_SEGMENT`` values or more.

    A stretch is split where chance does so in at most ``level`` of its orders, times the stretch's share
    of the series: the stretches of one depth together have ``level``, as the whole series had. Values
    that hang together, as those of a machine that is busy for an hour, are not chance in this sense.
    """
    found: dict[int, float] = {}
    waiting = [(0, len(values))]
    while waiting:
        start, end = waiting.pop()
        split = _split(values[start:end], shuffle, level * (end - start) / max(len(values), 1))
        if split is not None:
            index, p = split
            found[start + index] = p
            waiting += [(start, start + index), (start + index, end)]
    ends = [0, *sorted(found), len(values)]
    levels = [median(values[start:end]) for start, end in pairwise(ends)] if found else []
    return tuple(
        ChangePoint(index=index, before=before, after=after, p=found[index])
        for index, (before, after) in zip(sorted(found), pairwise(levels), strict=True)
    )


def _split(values: Sequence[float], shuffle: Shuffle, level: float) -> tuple[int, float] | None:
    """Where to split, and p; None where chance would do as well."""
    if len(values) < 2 * LEAST_SEGMENT:
        return None
    ranks = _centred_ranks(values)
    size = len(ranks)
    splits = range(LEAST_SEGMENT, size - LEAST_SEGMENT + 1)
    weights = [1 / (split * (size - split)) for split in splits]
    shifts = _shifts(ranks, weights)
    observed = max(shifts)
    p = _share_as_extreme(ranks, weights, observed, shuffle=shuffle, level=level)
    return None if p is None else (splits[shifts.index(observed)], p)


def _share_as_extreme(
    ranks: Sequence[int], weights: Sequence[float], observed: float, *, shuffle: Shuffle, level: float
) -> float | None:
    """The share of orders that are as extreme, this one among them; None as soon as it is above the level."""
    draws = min(ceil(_DRAWS_AT_THE_LEVEL / level) - 1, MOST_DRAWS)
    most = int(level * (draws + 1)) - 1
    shuffled = list(ranks)
    as_extreme = 0
    for _ in range(draws):
        if as_extreme > most:
            return None
        shuffle(shuffled)
        as_extreme += max(_shifts(shuffled, weights)) >= observed
    return (as_extreme + 1) / (draws + 1) if as_extreme <= most else None


def _shifts(ranks: Sequence[int], weights: Sequence[float]) -> list[float]:
    """For each place to split, how far the ranks before it are from the average, squared and weighted."""
    sums = list(accumulate(ranks))[LEAST_SEGMENT - 1 : len(ranks) - LEAST_SEGMENT]
    return list(map(mul, map(mul, sums, sums), weights))


def _centred_ranks(values: Sequence[float]) -> list[int]:
    """Twice the ranks less their average, so that they are whole numbers; equal values share theirs."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) - len(ordered) for value in values]
