import math
import random
import tracemalloc
from itertools import combinations
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.stats.binomial import clopper_pearson
from pyrometer.stats.label_permutation import (
    change_interval,
    change_of_medians,
    holm_adjusted,
    label_p_value,
)


def test_eight_runs_that_are_all_slower_than_eight_others_have_one_way_in_each_direction() -> None:
    assert label_p_value(range(8), range(8, 16)) == 2 / math.comb(16, 8)


def test_a_value_far_out_says_no_more_than_the_largest() -> None:
    assert label_p_value([1, 2, 3, 4], [5, 6, 7, 8]) == label_p_value([1, 2, 3, 4], [5, 6, 7, 8e9])


def test_groups_of_the_same_values_do_not_differ() -> None:
    assert label_p_value([3, 3, 3], [3, 3, 3]) == 1.0
    assert label_p_value([], [1, 2]) == 1.0


def test_many_runs_are_counted_exactly_too() -> None:
    before, after = range(0, 120, 2), range(1, 121, 2)
    # Sixty against sixty, so finely interleaved that far more than half of all ways lie further apart.
    assert 0.7 < label_p_value(before, after) < 1
    assert label_p_value(range(60), range(60, 120)) == 2 / math.comb(120, 60)


def test_of_very_many_runs_random_ways_tell_about_the_same_in_little_memory() -> None:
    chooser = random.Random(2)
    before = [chooser.gauss(0, 1) for _ in range(100)]
    after = [chooser.gauss(0.3, 1) for _ in range(100)]
    tracemalloc.start()
    try:
        p_value = label_p_value(before, after)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10_000_000  # counted exactly it would be 49 MB
    # The sum of ranks of so many is close to normal: its mean is 10,050, its variance 167,500.
    pooled = sorted([*before, *after])
    rank_sum = sum(pooled.index(value) + 1 for value in before)
    expected = math.erfc(abs(rank_sum - 10_050) / math.sqrt(167_500) / math.sqrt(2))
    assert p_value == pytest.approx(expected, abs=0.02)
    assert label_p_value(before, after) == p_value
    assert label_p_value(range(100), range(100, 200)) == 1 / 10_000
    assert label_p_value([1.0] * 100, [1.0] * 100) == 1.0


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5), st.lists(st.integers(0, 9), min_size=1, max_size=5)
)
def test_the_share_is_that_of_going_through_all_ways_one_by_one(before: list[int], after: list[int]) -> None:
    pooled = [*before, *after]
    # Twice the rank: so many are smaller, and half of those alike count as smaller too.
    ranks = [2 * sum(one < value for one in pooled) + pooled.count(value) + 1 for value in pooled]
    middle = len(before) * sum(ranks) / len(ranks)
    apart = abs(sum(ranks[: len(before)]) - middle)
    ways = [abs(sum(chosen) - middle) for chosen in combinations(ranks, len(before))]
    expected = sum(way >= apart - 1e-9 for way in ways) / len(ways)
    assert label_p_value(before, after) == pytest.approx(expected)


def test_the_probability_is_the_one_of_published_tables() -> None:
    # Rank sums of 5 and 5: 19, or further out, has a probability of 9.5 %, and 15 of 0.8 %.
    assert label_p_value([1, 2, 3, 4, 9], [5, 6, 7, 8, 10]) == pytest.approx(0.0952, abs=5e-5)
    assert label_p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(0.0079, abs=5e-5)


def test_identical_groups_are_called_different_no_more_often_than_said() -> None:
    chooser = random.Random(1)
    alarms = sum(
        label_p_value(
            [chooser.lognormvariate(0, 0.1) for _ in range(8)],
            [chooser.lognormvariate(0, 0.1) for _ in range(8)],
        )
        <= 0.01
        for _ in range(2_000)
    )
    assert clopper_pearson(alarms, 2_000, confidence=0.99).low <= 0.01


def test_holm_multiplies_the_smallest_by_all_and_never_puts_a_larger_one_before_it() -> None:
    assert holm_adjusted([0.02, 0.001, 0.5]) == pytest.approx([0.04, 0.003, 0.5])
    assert holm_adjusted([0.01, 0.01, 0.02]) == pytest.approx([0.03, 0.03, 0.03])
    assert holm_adjusted([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_never_makes_a_p_value_smaller_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm_adjusted(p_values)
    assert all(p <= adjusted_p <= 1 for p, adjusted_p in zip(p_values, adjusted, strict=True))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [one for _, one in pairs] == sorted(one for _, one in pairs)


def test_the_change_is_that_of_the_medians() -> None:
    assert change_of_medians([10, 10, 90], [11, 11, 5]) == pytest.approx(0.1)
    assert change_of_medians([0, 0], [1, 1]) is None
    assert change_of_medians([], [1]) is None


def test_the_interval_of_values_that_never_vary_is_a_point() -> None:
    assert change_interval([10.0] * 8, [12.0] * 8) == pytest.approx((0.2, 0.2))
    assert change_interval([0.0] * 8, [12.0] * 8) is None


def test_the_interval_holds_the_estimate_and_is_the_same_each_time() -> None:
    chooser = random.Random(3)
    before = [chooser.gauss(10, 0.2) for _ in range(12)]
    after = [chooser.gauss(10.5, 0.2) for _ in range(12)]
    interval = change_interval(before, after)
    assert interval is not None
    assert interval.low <= median(after) / median(before) - 1 <= interval.high
    assert interval == change_interval(before, after)


def test_more_values_make_the_interval_shorter() -> None:
    chooser = random.Random(5)
    many = [chooser.gauss(10, 0.5) for _ in range(80)]
    others = [chooser.gauss(10, 0.5) for _ in range(80)]
    wide, narrow = change_interval(many[:8], others[:8]), change_interval(many, others)
    assert wide is not None
    assert narrow is not None
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_an_interval_of_few_values_covers_as_often_as_it_says() -> None:
    chooser = random.Random(1)

    def values() -> list[float]:
        return [chooser.gauss(100.0, 5.0) for _ in range(8)]

    covered = 0
    for _ in range(400):
        interval = change_interval(values(), values(), resamples=200)
        assert interval is not None
        covered += interval.low <= 0.0 <= interval.high
    assert covered >= 0.98 * 400
