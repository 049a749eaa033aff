"""Whether paired differences are above 0, by flipping the signs of whole pairs.

Which side of a pair is called A is for us to choose at random. If both sides are the same, a pair's
differences are then as likely with their signs turned round, all together: so the share of all ways
to flip that speak as loudly is a probability that holds whatever the noise looks like.
"""

from collections.abc import Sequence
from itertools import groupby
from statistics import median


def sign_flip_p_value(groups: Sequence[Sequence[float]]) -> float:
    """How likely the differences would speak for "above 0" as much, if they were about 0 or below.

    One group a pair, whose values flip together. A pair speaks by its median, and as loudly as the
    rank of its size among all: one pair far out counts as the largest, and no more. Exact, all ways to
    flip are counted: pairs that all agree give one of 2 to their number. The median of all values
    would be the plainer statistic, but where a pair's samples agree, half of the pairs decide it, and
    ten pairs could never give less than 1 in 32.
    """
    # Not the lower of two in the middle: turned round, a pair has to say the opposite.
    medians = sorted((median(group) for group in groups), key=abs)
    observed, ways = 0, [1]
    for rank, is_above in _doubled_ranks(medians):
        observed += rank if is_above else 0
        # So many ways lead to each sum of the ranks that are above 0.
        ways = [
            (ways[total] if total < len(ways) else 0) + (ways[total - rank] if total >= rank else 0)
            for total in range(len(ways) + rank)
        ]
    return sum(ways[observed:]) / sum(ways)


def _doubled_ranks(medians: Sequence[float]) -> list[tuple[int, bool]]:
    """Twice the rank of each by its size, so that ties share a whole number; a 0 says nothing."""
    ranked: list[tuple[int, bool]] = []
    before = 0
    for size, alike in groupby(medians, key=abs):
        values = list(alike)
        rank = 2 * before + len(values) + 1
        before += len(values)
        ranked += [(rank, value > 0) for value in values if size]
    return ranked


def above(groups: Sequence[Sequence[float]], threshold: float) -> list[list[float]]:
    """By how much each value is above the threshold: to test "more than that" instead of "more than 0"."""
    return [[value - threshold for value in group] for group in groups]


def below(groups: Sequence[Sequence[float]], threshold: float) -> list[list[float]]:
    """By how much each value is below the threshold."""
    return [[threshold - value for value in group] for group in groups]
