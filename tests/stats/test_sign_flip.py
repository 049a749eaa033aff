"""The test over process pairs: exact, and with the error rate it states."""

import math
import random
import statistics
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.stats.pooled import _widening, pooled_median, two_level_interval
from pyrometer.stats.sign_flip import above, below, sign_flip_p_value


def sum_of_ranks(medians: Sequence[float]) -> float:
    sizes = [abs(median) for median in medians]
    ranks = [
        sum(other < size for other in sizes) + (sum(other == size for other in sizes) + 1) / 2
        for size in sizes
    ]
    return sum(rank for rank, median in zip(ranks, medians, strict=True) if median > 0)


def by_counting_all(groups: list[list[float]]) -> float:
    medians = [statistics.median(group) for group in groups]
    observed = sum_of_ranks(medians)
    sums = [
        sum_of_ranks([sign * median for sign, median in zip(signs, medians, strict=True)])
        for signs in product((1, -1), repeat=len(medians))
    ]
    return sum(found >= observed for found in sums) / len(sums)


@given(st.lists(st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=5), min_size=1, max_size=6))
def test_it_is_the_share_of_all_ways_to_flip(groups: list[list[float]]) -> None:
    assert sign_flip_p_value(groups) == pytest.approx(by_counting_all(groups))


def test_ten_pairs_that_all_agree_give_one_way_in_1024() -> None:
    assert sign_flip_p_value([[0.03, 0.05, 0.04]] * 10) == 1 / 1024


def test_a_pair_counts_once_however_many_samples_it_has() -> None:
    assert sign_flip_p_value([[0.05] * 1_000]) == 0.5


def test_nothing_is_told_of_differences_below_zero() -> None:
    assert sign_flip_p_value([[-0.05, -0.04]] * 10) > 0.99


def test_one_pair_far_out_is_no_reason_to_tell() -> None:
    quiet = [[0.001, -0.001, 0.002, -0.002]] * 9
    assert sign_flip_p_value([[5.0, 5.0, 5.0, 5.0], *quiet]) > 0.05


def test_identical_sides_are_told_apart_as_often_as_stated() -> None:
    noise = random.Random(7)
    told = 0
    trials = 2_000
    for _ in range(trials):
        # Pairs differ by themselves, and a tenth of the samples is far out: as on a shared machine.
        groups = []
        for _ in range(10):
            offset = noise.gauss(0, 0.02)
            groups.append(
                [offset + noise.gauss(0, 0.01) + (noise.random() < 0.1) * noise.random() for _ in range(12)]
            )
        # Which side is A is our own choice.
        flipped = [[value * sign for value in group] for group in groups for sign in [noise.choice((1, -1))]]
        told += sign_flip_p_value(flipped) <= 0.01
    # 1 % of 2,000 is 20; above 36 is less likely than 1 in 1,000.
    assert told <= 36


def test_a_threshold_moves_the_question() -> None:
    groups = [[0.05, 0.06]] * 10
    assert sign_flip_p_value(above(groups, 0.04)) == 1 / 1024
    assert sign_flip_p_value(above(groups, 0.07)) > 0.99
    assert sign_flip_p_value(below(groups, 0.07)) == 1 / 1024


def test_the_interval_knows_that_processes_differ() -> None:
    noise = random.Random(3)
    groups = [
        [offset + noise.gauss(0, 0.001) for _ in range(12)]
        for offset in [noise.gauss(0, 0.03) for _ in range(10)]
    ]
    low, high = two_level_interval(groups)
    between = statistics.stdev(statistics.mean(group) for group in groups)
    assert low < pooled_median(groups) < high
    # Had the 120 samples been independent, it would be a tenth of this.
    assert high - low > between
    assert two_level_interval(groups) == (low, high)


def test_an_interval_of_few_processes_is_wider_as_students_distribution_is() -> None:
    # Of ten, 1.33 times as wide as of many: Student's 99.5 % quantile with 9 degrees of freedom is 3.2498.
    assert _widening(10, 0.99) == pytest.approx(3.2498 / 2.5758 * math.sqrt(10 / 9), rel=0.001)
    assert _widening(1_000, 0.99) == pytest.approx(1, rel=0.005)
    assert _widening(1, 0.99) == 1


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    noise = random.Random(5)

    def holds() -> bool:
        groups = [[own + noise.gauss(0, 0.02) for _ in range(6)] for own in _normal(noise, 0.012, 10)]
        low, high = two_level_interval(groups, resamples=200)
        return low <= 0 <= high

    # With 99 %, 290 or fewer of 300 would be one case in 1,500; without widening it is about 289.
    assert sum(holds() for _ in range(300)) > 290


def _normal(noise: random.Random, size: float, count: int) -> list[float]:
    return [noise.gauss(0, size) for _ in range(count)]
