from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.stats.rates import per, per_second, slope

coordinates = st.integers(-(10**6), 10**6)


@given(
    coordinates, coordinates, st.lists(st.tuples(coordinates, st.integers(1, 100)), min_size=2, max_size=30)
)
def test_points_on_a_line_have_its_slope(start: int, rise: int, places: list[tuple[int, int]]) -> None:
    found = slope([(x, start + rise * x, weight) for x, weight in places])
    if len({x for x, _ in places}) == 1:
        assert found is None
    else:
        assert found is not None
        assert isclose(found, rise, rel_tol=1e-6, abs_tol=1e-6)


def test_a_point_with_twice_the_weight_counts_twice() -> None:
    heavy = slope([(0, 0, 1), (1, 1, 2), (2, 0, 1)])
    assert heavy == slope([(0, 0, 1), (1, 1, 1), (1, 1, 1), (2, 0, 1)])
    assert slope([(0, 0, 3), (1, 2, 1), (2, 2, 1)]) == pytest.approx(9 / 8)


def test_no_points_have_no_slope() -> None:
    assert slope([]) is None


def test_what_is_missing_has_no_rate() -> None:
    assert (per(None, 3), per(6, None), per(6, 0), per(6, 3)) == (None, None, None, 2)
    assert (per_second(None, 5), per_second(3, 0), per_second(3, 500_000_000)) == (None, None, 6)
