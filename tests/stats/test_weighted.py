"""Medians of values that stand for more than themselves."""

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from pyrometer.stats.weighted import weighted_median


@given(st.lists(st.integers(-1_000, 1_000), min_size=1), st.sampled_from([0.5, 1.0, 3.0]))
def test_with_equal_weights_it_is_the_median(values: list[int], weight: float) -> None:
    assert weighted_median((value, weight) for value in values) == median(values)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1))
def test_a_weight_is_as_many_values(pairs: list[tuple[int, int]]) -> None:
    assert weighted_median(pairs) == median([value for value, weight in pairs for _ in range(weight)])
