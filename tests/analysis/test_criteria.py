import msgspec
import pytest

from pyrometer.analysis.criteria import Criterion, deliverables, exit_criteria, improvement_targets
from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.record.run import Loss, Outcome, Run
from tests.torch_runs import TORCH_RUNS


def criteria_of(run: Run) -> dict[str, Criterion]:
    results = build_torch_results(run)
    assert results is not None
    assert results.main is not None
    points = (*exit_criteria(run, results, results.main), *deliverables(run, results, results.main))
    return {point.what: point for point in points}


def failing(run: Run) -> list[str]:
    return [point.what for point in criteria_of(run).values() if point.met is False]


def test_a_steady_run_with_everything_measured_fails_no_point() -> None:
    assert failing(TORCH_RUNS["gpu"]()) == []


def test_each_rule_can_fail() -> None:
    run = TORCH_RUNS["training"]()
    spoiled = msgspec.structs.replace(
        run,
        losses=(Loss(collector="scopes", reason="too many", count=1),),
        outcome=Outcome(status="signal", detail="SIGTERM"),
        cost=msgspec.structs.replace(run.cost, hook_ns=run.profiled_ns // 10),
        memory=None,
    )
    assert failing(spoiled) == [
        "the profiler itself cost no more than 5.0 % of the run",
        "nothing was lost",
        "the program ended by itself",
        "host memory",
    ]
    assert "the steps are steady" in failing(TORCH_RUNS["generation-uncached"]())
    assert {"throughput", "no more than 10.0 % of a step is in no phase", "time by module"} & set(
        failing(TORCH_RUNS["hostile-torch"]())
    ) == {"throughput", "no more than 10.0 % of a step is in no phase"}


def test_what_cannot_be_told_is_neither_met_nor_failed() -> None:
    points = criteria_of(TORCH_RUNS["training"]())
    assert points["GPU memory"] == Criterion(what="GPU memory", met=None, evidence="no GPU (CPU only)")
    unknown = msgspec.structs.replace(TORCH_RUNS["training"]().cost, hook_ns=None)
    run = msgspec.structs.replace(TORCH_RUNS["training"](), cost=unknown)
    assert criteria_of(run)["the profiler itself cost no more than 5.0 % of the run"].met is None


def test_targets_are_those_of_the_baseline_in_figures_of_this_run() -> None:
    results = build_torch_results(TORCH_RUNS["training"]())
    assert results is not None
    assert results.main is not None
    targets = list(improvement_targets(results.main))
    assert [target.unit for target in targets] == ["samples/s", "ms", "samples/s"]
    assert [target.now for target in targets] == [3_200, 10, 3_200]
    assert [target.goal for target in targets] == pytest.approx([4_160, 8, 6_400])
