"""Rates that were counted."""

import pytest

from pyrometer.stats.binomial import clopper_pearson


def test_no_success_at_all_leaves_room_for_the_tail() -> None:
    low, high = clopper_pearson(0, 500, confidence=0.95)
    assert low == 0
    # The rate at which 500 misses in a row have a chance of 2.5 %.
    assert (1 - high) ** 500 == pytest.approx(0.025)


def test_nothing_but_successes_is_its_mirror_image() -> None:
    low, high = clopper_pearson(250, 250)
    assert high == 1
    assert low**250 == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Worked out with another program (scipy.stats.binomtest(...).proportion_ci(method="exact")).
    [
        (1, 500, 5.0634334e-05, 0.011092477),
        (3, 250, 0.0024815583, 0.034666615),
        (7, 9, 0.39990643, 0.97185503),
    ],
)
def test_it_agrees_with_other_programs(successes: int, trials: int, low: float, high: float) -> None:
    found = clopper_pearson(successes, trials)
    assert found.low == pytest.approx(low, rel=1e-5)
    assert found.high == pytest.approx(high, rel=1e-5)
