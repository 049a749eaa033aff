"""Changes of level: how often chance is taken for one, and how often one is found."""

import random
from collections.abc import Callable

import pytest

from pyrometer.stats.change_points import LEAST_SEGMENT, ChangePoint, find_change_points


def changes(values: list[float], seed: int = 0) -> tuple[ChangePoint, ...]:
    return find_change_points(values, shuffle=random.Random(seed).shuffle)


def noisy(randomness: random.Random, levels: list[float], *, each: int, spread: float = 0.03) -> list[float]:
    return [randomness.gauss(level, spread * level) for level in levels for _ in range(each)]


def normal(randomness: random.Random) -> float:
    return randomness.gauss(100, 3)


def heavy_tailed(randomness: random.Random) -> float:
    # A Cauchy distribution: not even a mean.
    return randomness.gauss(0, 1) / (abs(randomness.gauss(0, 1)) + 1e-12)


def few_values(randomness: random.Random) -> float:
    return randomness.randrange(3)


@pytest.mark.parametrize("draw", [normal, heavy_tailed, few_values])
def test_noise_is_taken_for_a_change_in_one_series_of_a_hundred_at_most(
    draw: Callable[[random.Random], float],
) -> None:
    randomness = random.Random(11)
    shuffle = random.Random(12).shuffle
    alarms = sum(
        bool(find_change_points([draw(randomness) for _ in range(20)], shuffle=shuffle)) for _ in range(1_000)
    )
    # 10 expected; a binomial count of 1,000 at 1 % is above 23 once in 12,000 times.
    assert alarms <= 23


def test_ten_percent_more_is_found_where_it_begins() -> None:
    randomness = random.Random(13)
    found = [changes(noisy(randomness, [1.0, 1.1], each=15)) for _ in range(100)]
    assert sum(len(one) >= 1 for one in found) >= 99
    assert sum(any(abs(change.index - 15) <= 1 for change in one) for one in found) >= 90
    # Beyond the one there is: each of the two stretches has half of 1 %; 7 of 100 is once in 10,000.
    assert sum(len(one) > 1 for one in found) <= 6


def test_each_of_several_changes_has_the_medians_of_its_own_stretches() -> None:
    values = [value for level in (10.0, 20.0, 15.0) for value in (level, level + 1, level + 2) * 5]
    first, second = changes(values)
    assert (first.index, first.before, first.after) == (15, 11.0, 21.0)
    assert (second.index, second.before, second.after) == (30, 21.0, 16.0)
    assert max(first.p, second.p) <= 0.01


def test_one_wild_value_is_no_change() -> None:
    values = [1.0, 1.1, 0.9, 1.05, 0.95] * 4
    values[10] = 1e9
    assert changes(values) == ()


def test_values_that_are_all_the_same_have_no_change() -> None:
    assert changes([7.0] * 40) == ()


def test_too_few_values_have_no_change() -> None:
    assert changes([]) == ()
    assert changes([1.0] * (LEAST_SEGMENT - 1) + [9.0] * LEAST_SEGMENT) == ()


def test_five_values_on_either_side_are_enough() -> None:
    # 2 of the 252 ways to choose 5 of 10 are as extreme, 0.8 %: 16 of 1,999 orders, give or take 4.
    (change,) = changes([1.0, 1.1, 1.2, 1.3, 1.4, 2.0, 2.1, 2.2, 2.3, 2.4])
    assert change.index == 5
    assert 0.001 < change.p <= 0.01


def test_the_same_seed_gives_the_same_answer() -> None:
    values = noisy(random.Random(14), [1.0, 1.05], each=10)
    assert changes(values, seed=5) == changes(values, seed=5)
