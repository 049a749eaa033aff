"""Whether two groups of values differ, by giving their labels to other values.

If both groups are the same, each way to choose which values are called A is as likely. The share of all
ways in which the groups lie as far apart is then a probability that holds whatever the noise looks like.
"""

import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress, groupby
from statistics import median

from pyrometer.stats.pooled import RESAMPLES, Interval

MOST_COUNTED = 128
"""Up to so many values all ways are counted: it takes memory with their fourth power, 10 MB here."""
RANDOM_WAYS = 9_999
"""Beyond, so many are drawn: none is less likely than 1 in 10,000."""


def label_p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """How likely the groups would lie as far apart in either direction, if they were the same.

    They lie apart by the sum of the ranks of ``before`` among all values: one value far out counts as
    the largest, and no more. Ties share their ranks. Exact, all ways to choose are counted, up to
    ``MOST_COUNTED`` values; of more, ``RANDOM_WAYS`` are drawn, the same ones each time, and the way
    that was found counts as one of them. The difference of the medians would be the plainer statistic,
    but half of the values decide it: eight against eight could never give less than 1 in 320, however far
    apart they are.
    """
    if not before or not after:
        return 1.0
    pooled = sorted([*before, *after])
    ranks = _doubled_ranks(pooled)
    rank_of = dict(zip(pooled, ranks, strict=True))
    observed = sum(rank_of[value] for value in before)
    # Times the number of values, so that the middle of all sums is a whole number.
    middle = len(before) * sum(ranks)
    apart = abs(observed * len(pooled) - middle)
    if len(pooled) > MOST_COUNTED:
        drawn = (sum(compress(ranks, way)) for way in _random_ways(len(pooled), len(before)))
        as_far = sum(abs(total * len(pooled) - middle) >= apart for total in drawn)
        return (as_far + 1) / (RANDOM_WAYS + 1)
    ways = _ways_by_sum(tuple(ranks), len(before))
    as_far = sum(count for total, count in ways if abs(total * len(pooled) - middle) >= apart)
    return as_far / sum(count for _, count in ways)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """The p values of one table, so that all of them together are wrong no more often than one would be."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(p_values[index] * (len(p_values) - place), 1.0))
        adjusted[index] = highest
    return adjusted


def change_of_medians(before: Sequence[float], after: Sequence[float]) -> float | None:
    """By which part of itself the median grew from one group to the other; None from 0, or of nothing."""
    if not before or not after:
        return None
    middle = median(before)
    return median(after) / middle - 1 if middle else None


def change_interval(
    before: Sequence[float],
    after: Sequence[float],
    *,
    confidence: float = 0.99,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Where the change of the medians would lie with other values like these: a bootstrap of both groups.

    None where a median is 0. Seeded: the same values give the same interval.
    """
    chooser = random.Random(seed)
    changes = []
    for _ in range(resamples):
        change = change_of_medians(
            chooser.choices(before, k=len(before)), chooser.choices(after, k=len(after))
        )
        if change is None:
            return None
        changes.append(change)
    changes.sort()
    tail = int(resamples * (1 - confidence) / 2)
    return Interval(low=changes[tail], high=changes[-1 - tail])


def _doubled_ranks(ordered: Sequence[float]) -> list[int]:
    """Twice the rank of each value, so that ties share a whole number."""
    ranks: list[int] = []
    for _, alike in groupby(ordered):
        count = sum(1 for _ in alike)
        ranks += [2 * len(ranks) + count + 1] * count
    return ranks


# Without ties it depends on the numbers of values alone: the rows of a table ask for the same again.
@lru_cache(maxsize=64)
def _ways_by_sum(ranks: tuple[int, ...], taken: int) -> tuple[tuple[int, int], ...]:
    """Each sum that so many of the ranks can have, and how many ways lead to it.

    The counts stand side by side as the digits of one long number, wide enough that none runs over:
    adding a rank to all sums is then one shift.
    """
    digit_bytes = len(ranks) // 8 + 1
    ways = [1] + [0] * taken
    for rank in ranks:
        for chosen in range(taken, 0, -1):
            ways[chosen] += ways[chosen - 1] << (rank * 8 * digit_bytes)
    digits = ways[taken].to_bytes((sum(ranks) + 1) * digit_bytes, "little")
    counts = (
        int.from_bytes(digits[at : at + digit_bytes], "little") for at in range(0, len(digits), digit_bytes)
    )
    return tuple((total, count) for total, count in enumerate(counts) if count)


# Only the last: a thousand values on each side take 20 MB.
@lru_cache(maxsize=1)
def _random_ways(values: int, taken: int, *, seed: int = 0) -> tuple[bytes, ...]:
    """Ways to take so many of the values, a byte for each value: 1 where it is taken."""
    chooser = random.Random(seed)
    ways = []
    for _ in range(RANDOM_WAYS):
        way = bytearray(values)
        for index in chooser.sample(range(values), taken):
            way[index] = 1
        ways.append(bytes(way))
    return tuple(ways)
