import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.baseline import measure
from pyrometer.analysis.observed import observe
from pyrometer.analysis.target_figures import METRICS
from pyrometer.analysis.target_goals import Goal
from pyrometer.analysis.targets import RelativeTo, judge_targets, parse_target, parse_targets
from pyrometer.errors import UsageError
from pyrometer.record.run import Outcome, Run
from tests.report.sample_runs import allocating_run, empty_run, main_strand, simple_run
from tests.report.sample_runs import node as scope
from tests.targets import judged
from tests.torch_runs import (
    MB,
    MS,
    TORCH_RUNS,
    US,
    S,
    evaluation_run,
    generation_run,
    gpu_run,
    group_of,
    training_run,
    workers_run,
)

MIB = 1 << 20
GIB = 1 << 30


def goal(name: str, value: object) -> Goal:
    return parse_target(name, value, where="[t]").goal


def refusal(name: str, value: object) -> str:
    with pytest.raises(UsageError) as caught:
        goal(name, value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "low", "high", "exclusive"),
    [
        ("peak_host_memory", "<1 GiB", None, GIB, True),
        ("step_latency", "<= 5 ms", None, 5 * MS, False),
        ("step_latency", "≤5ms", None, 5 * MS, False),
        ("peak_gpu_memory", ">90 MB", 90 * MB, None, True),
        ("throughput", ">20000", 20_000, None, True),
        ("throughput", ">= 20_000 samples/s", 20_000, None, False),
        ("inference_latency", "< 65 ms", None, 65 * MS, True),
        ("throughput", "15..20", 15, 20, False),
        ("inference_latency", "50..65 ms", 50 * MS, 65 * MS, False),
        ("inference_latency", "900 us .. 1.5 ms", 900 * US, 1_500 * US, False),
        ("memory_per_token", "5..10 MB", 5 * MB, 10 * MB, False),
        ("end_to_end", "2 min", None, 120 * S, False),
        ("end_to_end", "0.5 h", None, 1_800 * S, False),
        ("step_latency", "500 µs", None, 500 * US, False),
        ("step_latency", "500 \u03bcs", None, 500 * US, False),
        ("total_allocations", "1.5 MiB", None, 1.5 * MIB, False),
        ("tokens_per_s", 50, 50, None, False),
        ("tokens_per_s", 0.5, 0.5, None, False),
        ("tokens_per_s", "120 tokens/min", 2, None, False),
    ],
)
def test_a_bound_is_read_in_the_base_unit(
    name: str, value: object, low: float | None, high: float | None, exclusive: bool
) -> None:
    read = goal(name, value)
    assert (read.low, read.high, read.exclusive, read.relative) == (
        None if low is None else pytest.approx(low),
        None if high is None else pytest.approx(high),
        exclusive,
        False,
    )


@pytest.mark.parametrize(
    ("name", "value", "low", "high"),
    [
        ("throughput", "+30%", 1.3, 1.3),
        ("throughput", "+100 %", 2, 2),
        ("throughput", "+30..50%", 1.3, 1.5),
        ("step_latency", "-20%", 0.8, 0.8),
        ("step_latency", "-20..30%", 0.7, 0.8),
        ("total_allocations", "5..9x less", 1 / 9, 1 / 5),
        ("throughput", "2x", 2, 2),
        ("throughput", "2x faster", 2, 2),
        ("step_latency", "2×", 0.5, 0.5),
        ("step_latency", "1.5x faster", 1 / 1.5, 1 / 1.5),
    ],
)
def test_a_change_or_a_factor_is_read_as_multiples_in_the_better_direction(
    name: str, value: str, low: float, high: float
) -> None:
    read = goal(name, value)
    assert read.relative
    assert read.low == pytest.approx(low)
    assert read.high == pytest.approx(high)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step_latency", "+30%", "is '+30%', but less is better; did you mean '-30%'?"),
        ("throughput", "-20%", "is '-20%', but more is better; did you mean '+20%'?"),
        ("throughput", "2x less", "is '2x less', but more is better"),
        ("step_latency", "2x more", "is '2x more', but less is better"),
        ("step_latency", "1x", "is '1x', but a factor must be above 1"),
        ("step_latency", "-100%", "is '-100%', but nothing can get smaller by 100 % or more"),
        ("step_latency", "9..5x", "is '9..5x', but the range in '9..5x' must begin with its smaller end"),
        ("step_latency", "65..50 ms", "is '65..50 ms', but must begin with its smaller end"),
        ("throughput", "+0%", "is '+0%', but must be above 0 and not beyond all bounds"),
        ("throughput", 0, "is 0, but must be above 0 and not beyond all bounds"),
        ("throughput", float("nan"), "is nan, but must be above 0 and not beyond all bounds"),
        ("throughput", float("inf"), "is inf, but must be above 0 and not beyond all bounds"),
    ],
)
def test_a_value_that_makes_no_sense_is_told_why(name: str, value: object, message: str) -> None:
    assert refusal(name, value) == f"[t] {name} {message}"


@pytest.mark.parametrize("value", ["5", "<5", "5..7", 5, 0.5])
def test_a_time_needs_a_unit(value: object) -> None:
    assert refusal("step_latency", value) == (
        f"[t] step_latency is {value!r}, which needs a unit; write it such as "
        "'<5 ms', '50..65 ms', '-20%' or '2x'; units: ns, us, ms, s, min, h"
    )


def test_a_unit_of_something_else_is_named() -> None:
    assert refusal("step_latency", "<5 MB").startswith("[t] step_latency is '<5 MB', which has no unit 'MB'")
    assert "'tokens/s'" in refusal("throughput", "5 tokens/s")


@pytest.mark.parametrize("value", ["", "fast", "5 ms ..", "-", "20,000", "\u0665 ms", True, [], {}, None])
def test_what_is_no_target_is_told_what_one_looks_like(value: object) -> None:
    assert refusal("step_latency", value) == (
        f"[t] step_latency is {value!r}, but must be such as "
        "'<5 ms', '50..65 ms', '-20%' or '2x'; units: ns, us, ms, s, min, h"
    )


def test_an_unknown_key_is_answered_with_the_one_that_was_meant_or_all_there_are() -> None:
    assert refusal("troughput", "+30%") == (
        "[t] has no key 'troughput' (value '+30%'); did you mean 'throughput'?"
    )
    assert refusal("colour", 3) == f"[t] has no key 'colour' (value 3); allowed: {', '.join(METRICS)}"


@given(st.sampled_from(sorted(METRICS)), st.text(max_size=200) | st.integers() | st.floats())
def test_any_value_is_either_a_target_or_an_error_of_one_line(name: str, value: object) -> None:
    message, read = "", None
    try:
        read = goal(name, value)
    except UsageError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400
    assert bool(message) or (read is not None and (read.low is not None or read.high is not None))


def test_the_docs_name_every_target_and_what_they_write_can_be_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"| `{name}` |" not in page] == []
    [block] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(parse_targets(tomllib.loads(block)["tool"]["pyrometer"]["targets"], where="[t]")) == 5
    _, _, writing = page.partition("## How to write one")
    shown = re.findall(r'`"([^"]+)"`', writing.partition("\nUnits")[0])
    assert len(shown) == 14
    for value in shown:
        assert any(can_be_read(name, value) for name in METRICS), value


def can_be_read(name: str, value: str) -> bool:
    try:
        parse_target(name, value, where="[t]")
    except UsageError:
        return False
    return True


# What a run says.


@pytest.mark.parametrize(
    ("run", "name", "value"),
    [
        (training_run(), "throughput", 3_200),
        (training_run(), "step_latency", 10 * MS),
        (training_run(), "training_step", 10 * MS),
        (training_run(), "data_loading", 1_400 * US),
        (training_run(), "peak_host_memory", 520 * MB),
        (training_run(), "end_to_end", 1_533 * MS),
        (gpu_run(), "peak_gpu_memory", 3 * GIB),
        (evaluation_run(), "inference_latency", 4 * MS),
        (evaluation_run(), "step_latency", 10 * MS),
        (workers_run(slow=True), "preprocessing", 20 * MS),
        (generation_run(cached=True), "tokens_per_s", 160 / (4 * (8 + 39 * 2) / 1e3)),
        (generation_run(cached=True), "latency_per_token", (8 + 39 * 2) * MS / 40),
        (generation_run(cached=True), "memory_per_token", (10 + 39) * MB / 40),
    ],
)
def test_the_current_figure_is_that_of_the_run(run: Run, name: str, value: float) -> None:
    result = judged(run, name, "2x")
    assert result.current == pytest.approx(value)
    assert result.reason is None


def test_all_allocated_bytes_are_tensors_and_heap() -> None:
    run = allocating_run()
    assert run.allocations is not None
    assert judged(run, "total_allocations", "2x").current == run.allocations.heap_bytes + (
        run.allocations.tensor_bytes or 0
    )


def test_preprocessing_is_that_of_phases_named_so_before_scopes_before_the_transform_of_a_loader() -> None:
    run = workers_run(slow=True)
    assert run.torch is not None
    # 100 batches were fetched; what is inside a scope so named is in its time already.
    nodes = (
        scope("preprocess", None, [3 * S]),
        scope("preprocess image", 0, [2 * S]),
        scope("epoch", None, [2 * S]),
        scope("Transform", 2, [S]),
    )
    scoped = msgspec.structs.replace(run, strands=(main_strand(*nodes),))
    assert judged(scoped, "preprocessing", "2x").current == (3 * S + S) / 100
    group = group_of("training", "SGD", [{"preprocess": 2 * MS, "transforms": MS, "other": MS}] * 20)
    phased = msgspec.structs.replace(scoped, torch=msgspec.structs.replace(run.torch, groups=(group,)))
    assert judged(phased, "preprocessing", "2x").current == 3 * MS


def test_preprocessing_without_batches_or_steps_is_that_of_a_call() -> None:
    run = msgspec.structs.replace(
        simple_run(), strands=(main_strand(scope("transform", None, [MS, 3 * MS])),)
    )
    assert judged(run, "preprocessing", "2x").current == 2 * MS


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"end_to_end"}))
def test_what_a_run_does_not_have_is_unknown_with_its_reason(name: str) -> None:
    result = judged(empty_run(), name, "2x")
    assert (result.current, result.met, result.improvement) == (None, None, None)
    assert result.reason


def test_generation_is_no_inference_step() -> None:
    result = judged(generation_run(cached=True), "inference_latency", "<5 ms")
    assert result.current is None
    assert result.reason is not None


def test_the_time_of_a_run_that_broke_off_is_no_time_to_be_judged() -> None:
    run = msgspec.structs.replace(training_run(), outcome=Outcome(status="exception", detail="KeyError"))
    result = judged(run, "end_to_end", "<1 h")
    assert (result.met, result.reason) == (None, "the program did not end by itself")


@pytest.mark.parametrize("run", [make() for make in TORCH_RUNS.values()], ids=list(TORCH_RUNS))
def test_every_target_can_be_judged_of_every_run(run: Run) -> None:
    targets = [parse_target(name, "2x", where="[t]") for name in METRICS]
    results = judge_targets(observe(run), targets)
    for result in results:
        assert (result.met is None) == (result.reason is not None)
        assert (result.current is None) <= (result.reason is not None)


# Verdicts.


@pytest.mark.parametrize(
    ("name", "value", "met", "improvement"),
    [
        ("step_latency", "<10 ms", False, 0),
        ("step_latency", "<=10 ms", True, 0),
        ("step_latency", "8 ms", False, -0.2),
        ("step_latency", "5..8 ms", False, -0.2),
        ("step_latency", "9..11 ms", True, 0),
        ("step_latency", "20..30 ms", True, 0),
        ("step_latency", ">20 ms", False, 1),
        ("throughput", ">3200", False, 0),
        ("throughput", 3200, True, 0),
        ("throughput", "4000..5000", False, 0.25),
        ("throughput", "1000..2000", True, 0),
        ("throughput", "<3000", False, 3_000 / 3_200 - 1),
    ],
)
def test_a_bound_is_met_from_its_easier_end_on(
    name: str, value: object, met: bool, improvement: float
) -> None:
    # A step of the run takes 10 ms, for 32 samples.
    result = judged(training_run(), name, value)
    assert result.met is met
    assert result.improvement == pytest.approx(improvement)


def test_without_a_baseline_a_relative_target_is_set_from_the_run_and_to_be_reached() -> None:
    result = judged(training_run(), "throughput", "+30%")
    assert result.low == result.high == pytest.approx(4_160)
    assert result.met is False
    assert result.improvement == pytest.approx(0.3)
    assert result.relative_to is RelativeTo.THIS_RUN


def test_with_a_baseline_a_relative_target_is_judged_against_that() -> None:
    # 10 ms a step now; the baseline's evaluation-free twin took 20 ms.
    slow = observe(workers_run(slow=True))
    assert slow.torch is not None
    now = training_run()
    result = judged(now, "step_latency", "-20%", baseline=slow)
    assert result.reference == 20 * MS
    assert result.high == pytest.approx(16 * MS)
    assert result.relative_to is RelativeTo.BASELINE
    assert (result.met, result.improvement) == (True, 0.0)
    result = judged(now, "step_latency", "4x", baseline=slow)
    assert result.met is False
    assert result.improvement == pytest.approx(-0.5)


def test_a_baseline_file_is_as_good_as_its_run() -> None:
    run = gpu_run()
    measurement = measure(run, file_name="baseline.json")
    names = (
        "throughput",
        "step_latency",
        "training_step",
        "data_loading",
        "peak_host_memory",
        "peak_gpu_memory",
    )
    targets = [parse_target(name, "2x", where="[t]") for name in names]
    by_file = judge_targets(observe(run), targets, baseline=measurement)
    by_run = judge_targets(observe(run), targets, baseline=observe(run))
    assert [result.reference for result in by_file] == pytest.approx([result.reference for result in by_run])
    assert [result.met for result in by_file] == [False] * len(names)


def test_what_the_baseline_does_not_have_cannot_be_told() -> None:
    result = judged(training_run(), "peak_host_memory", "-20%", baseline=observe(empty_run()))
    assert result.current == 520 * MB
    assert (result.low, result.high, result.met) == (None, None, None)
    assert result.reason == "nothing to be relative to: the memory of the process was not recorded"


def test_a_figure_of_0_is_nothing_to_be_relative_to() -> None:
    group = group_of("training", "SGD", [{"data": 0, "forward": MS, "other": 0}] * 20)
    run = training_run()
    assert run.torch is not None
    run = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, groups=(group,)))
    result = judged(run, "data_loading", "-20%")
    assert (result.current, result.met) == (0, None)
    assert result.reason == "nothing to be relative to: the figure there is 0"
    assert judged(run, "data_loading", "<1 ms").met is True
