"""Rates that were counted."""

import pytest
from scipy import stats

from pyrometer.stats.binomial import clopper_pearson


@pytest.mark.parametrize(("successes", "trials"), [(0, 500), (1, 500), (3, 250), (250, 250), (7, 9), (1, 1)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_it_agrees_with_scipy(successes: int, trials: int, confidence: float) -> None:
    known = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    found = clopper_pearson(successes, trials, confidence=confidence)
    assert found.low == pytest.approx(known.low, abs=1e-9)
    assert found.high == pytest.approx(known.high, abs=1e-9)
