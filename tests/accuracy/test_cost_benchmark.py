"""When the benchmark of what a tool costs gives a verdict, and when it must not."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("program_costs")


def ratio(benchmark: ModuleType, low: float, high: float) -> object:
    return benchmark.Ratio(estimate=(low + high) / 2, low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(1.01, 1.04, "PASS"), (1.06, 1.09, "FAIL"), (1.01, 1.09, "UNCLEAR")]
)
def test_the_whole_interval_decides(benchmark: ModuleType, low: float, high: float, verdict: str) -> None:
    control = ratio(benchmark, 0.99, 1.01)
    assert benchmark.judge(ratio(benchmark, low, high), 1.05, control=control, rounds=15) == verdict


@pytest.mark.parametrize("figure", [(1.01, 1.04), (1.06, 1.09)])
@pytest.mark.parametrize("control", [(0.86, 0.99), (1.02, 1.05)])
def test_a_control_that_is_told_apart_voids_either_verdict(
    benchmark: ModuleType, figure: tuple[float, float], control: tuple[float, float]
) -> None:
    judged = benchmark.judge(ratio(benchmark, *figure), 1.05, control=ratio(benchmark, *control), rounds=15)
    assert judged == benchmark.VOID


@pytest.mark.parametrize("figure", [(1.01, 1.04), (1.06, 1.09)])
def test_fewer_rounds_than_an_interval_takes_give_no_verdict(
    benchmark: ModuleType, figure: tuple[float, float]
) -> None:
    control = ratio(benchmark, 0.99, 1.01)
    assert benchmark.judge(ratio(benchmark, *figure), 1.05, control=control, rounds=7) == benchmark.TOO_FEW
    assert 1 - 2 ** (1 - benchmark.MIN_ROUNDS) > 0.99 > 1 - 2 ** (2 - benchmark.MIN_ROUNDS)
