"""The rules of findings, on runs whose every figure can be worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from pyrometer.analysis.findings.find import FINDERS, find, rank
from pyrometer.analysis.findings.model import (
    MOST_FINDINGS,
    Finding,
    FindingKind,
    Findings,
    GainClass,
    GainOf,
    finding_priority,
    gain_class_of,
)
from pyrometer.analysis.hotspots import Priority, StrengthKind
from pyrometer.analysis.observed import observe
from pyrometer.record.garbage import GarbageCollections, GarbageGeneration, GarbagePause
from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Use
from pyrometer.record.run import Memory, Program, Run
from pyrometer.record.samples import Function
from pyrometer.record.torch_run import (
    Compilation,
    Generation,
    Gpu,
    Loader,
    Module,
    OptimizerFacts,
    PositionBin,
    StepGroup,
    TorchRun,
)
from pyrometer.record.values import ScopeNode
from tests.findings import make_finding
from tests.placed_runs import placed_run
from tests.report.sample_runs import main_strand, run_of
from tests.sampled_runs import Seen, stack_samples
from tests.torch_runs import MB, MS, US, S, call, group_of, net_calls, net_modules, torch_run, training_run

STEP = {
    "data": 500 * US, "forward": 4_250 * US, "backward": 4_250 * US, "optimizer": 400 * US, "other": 600 * US,
}  # fmt: skip
"""10 ms, of which nothing is worth a word."""


def found_in(run: Run) -> Findings:
    return find(observe(run))


def one(findings: Findings, kind: FindingKind) -> Finding:
    (found,) = (finding for finding in findings.found if finding.kind is kind)
    return found


def why_not(findings: Findings, kind: FindingKind) -> str:
    (reason,) = (left.reason for left in findings.not_looked_for if left.kind is kind)
    return reason


def run_with(group: StepGroup | None = None, **parts: object) -> Run:
    group = group or group_of("training", "Adam", [STEP] * 100, samples=32)
    return torch_run(TorchRun(torch_version="2.13.0", groups=(group,), **parts))  # type: ignore[arg-type]


def steps_with(**phases: int) -> StepGroup:
    return group_of("training", "Adam", [{**STEP, **phases}] * 100, samples=32)


# Gains, classes, priorities, ranks.


@pytest.mark.parametrize(
    ("share", "gain_class", "priority"),
    [
        (0.30, GainClass.LARGE, Priority.CRITICAL),
        (0.299, GainClass.LARGE, Priority.HIGH),
        (0.101, GainClass.LARGE, Priority.HIGH),
        (0.10, GainClass.MIDDLE, Priority.MEDIUM),
        (0.05, GainClass.MIDDLE, Priority.MEDIUM),
        (0.049, GainClass.SMALL, Priority.MEDIUM),
        (0.02, GainClass.SMALL, Priority.MEDIUM),
        (0.019, GainClass.TRACE, Priority.LOW),
    ],
)
def test_class_and_priority_follow_from_the_gain(
    share: float, gain_class: GainClass, priority: Priority
) -> None:
    assert gain_class_of(share) is gain_class
    assert finding_priority(share) is priority


def test_half_the_time_saved_is_twice_as_fast() -> None:
    gain = make_finding(gain=0.5).gain
    assert gain is not None
    assert gain.speedup == 2


def test_the_largest_gain_comes_first_and_one_without_a_bound_last() -> None:
    found = [
        make_finding(gain=None, what="unknown"),
        make_finding(gain=0.1, what="small"),
        make_finding(gain=0.4, of=GainOf.MEMORY, what="memory"),
        make_finding(gain=0.4, what="time"),
    ]
    assert [(each.rank, each.what) for each in rank(found)] == [
        (1, "time"), (2, "memory"), (3, "small"), (4, "unknown"),
    ]  # fmt: skip


def test_a_finding_without_evidence_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        replace(make_finding(), evidence=())


def test_each_kind_is_found_or_clear_or_could_not_be_looked_for() -> None:
    for run in (run_of(profiled_ns=S), training_run(), placed_run()):
        findings = found_in(run)
        kinds = [
            *{each.kind for each in findings.found},
            *findings.clear,
            *(each.kind for each in findings.not_looked_for),
        ]
        assert sorted(kind.value for kind in kinds) == sorted(kind.value for kind in FindingKind)


def test_no_more_than_twenty_are_shown_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(make_finding(gain=index / 100) for index in range(25))
    monkeypatch.setitem(FINDERS, FindingKind.OPTIMIZER_LOOP, lambda _: many)
    findings = found_in(run_with())
    assert len(findings.found) == MOST_FINDINGS
    assert findings.not_shown == 5
    assert [each.rank for each in findings.found] == list(range(1, 21))


def test_nothing_found_is_an_answer() -> None:
    findings = found_in(run_with())
    assert findings.found == ()
    assert findings.verdict.startswith("Nothing found")


def test_the_verdict_names_the_largest_gain() -> None:
    findings = found_in(run_with(steps_with(data=10 * MS)))
    assert findings.verdict == "The steps wait for data: at most 51.3 % of a step's time."


def test_without_steps_it_is_said_what_is_missing() -> None:
    findings = found_in(run_of(profiled_ns=S))
    assert why_not(findings, FindingKind.INPUT_BOUND) == "the program did not use PyTorch"
    without_steps = torch_run(TorchRun(torch_version="2.13.0"))
    assert "no steps of PyTorch" in why_not(found_in(without_steps), FindingKind.INPUT_BOUND)


def test_few_steps_say_nothing_of_shares() -> None:
    few = group_of("training", "Adam", [{**STEP, "data": 50 * MS}] * 6, samples=32)
    assert "fewer than 5 steps" in why_not(found_in(run_with(few)), FindingKind.INPUT_BOUND)


# Data loading.


def test_a_tenth_of_the_step_waiting_for_data_is_input_bound() -> None:
    assert one(
        found_in(run_with(steps_with(data=1_100 * US))), FindingKind.INPUT_BOUND
    ).share == pytest.approx(1_100 / 10_600)
    assert FindingKind.INPUT_BOUND in found_in(run_with(steps_with(data=MS))).clear


def worker_loader(**figures: object) -> Loader:
    """Two workers that make a batch in 10 ms for 100 steps of 10 ms: half busy, each batch ready."""
    known: dict[str, object] = {
        "name": "DataLoader(Images)", "workers": 2, "iterators": 1, "start_ns": MS, "batches": 100,
        "wait_ns": 10 * MS, "timed_batches": 100, "work_ns": 100 * 10 * MS, "collate_ns": 100 * MS,
        "ready_batches": 100, "queued_batches": 100, "first_batch_ns": 10 * MS, "worker_starts": 1,
    }  # fmt: skip
    return Loader(**{**known, **figures})  # type: ignore[arg-type]


def test_workers_that_are_always_busy_and_late_are_too_few() -> None:
    waiting = steps_with(data=3 * MS)  # of 12.5 ms
    late = worker_loader(wait_ns=300 * MS, work_ns=100 * 20 * MS, ready_batches=5)
    found = one(found_in(run_with(waiting, loaders=(late,))), FindingKind.TOO_FEW_WORKERS)
    assert found.gain is not None
    assert found.gain.share == pytest.approx(0.24)
    assert found.remedies[0].snippet == "DataLoader(dataset, num_workers=4, persistent_workers=True)"
    half_busy = worker_loader(wait_ns=300 * MS, ready_batches=5)
    assert FindingKind.TOO_FEW_WORKERS in found_in(run_with(waiting, loaders=(half_busy,))).clear


def test_a_loader_that_only_the_first_step_waits_for_is_not_too_slow() -> None:
    steps = [{**STEP, "data": 300 * MS}, *[STEP] * 99]
    late = worker_loader(wait_ns=350 * MS, work_ns=100 * 20 * MS, ready_batches=5)
    run = run_with(group_of("training", "Adam", steps, samples=32), loaders=(late,))
    assert FindingKind.TOO_FEW_WORKERS in found_in(run).clear


def test_workers_beyond_need_are_idle() -> None:
    idle = worker_loader(workers=8, work_ns=100 * 8 * MS)
    found = one(found_in(run_with(loaders=(idle,))), FindingKind.IDLE_WORKERS)
    assert found.remedies[0].snippet == "DataLoader(dataset, num_workers=2)"
    one_worker = worker_loader(workers=1, work_ns=100 * MS)
    assert FindingKind.IDLE_WORKERS in found_in(run_with(loaders=(one_worker,))).clear


def test_workers_started_with_each_epoch_are_told_from_kept_ones() -> None:
    anew = worker_loader(iterators=5, worker_starts=5, first_batch_ns=5 * 20 * MS)
    found = one(found_in(run_with(loaders=(anew,))), FindingKind.WORKERS_RESTART)
    assert found.duration_ns == 80 * MS
    assert found.share == pytest.approx(0.08)
    kept = worker_loader(iterators=5, worker_starts=1, first_batch_ns=5 * 20 * MS)
    assert FindingKind.WORKERS_RESTART in found_in(run_with(loaders=(kept,))).clear


@pytest.mark.parametrize(
    ("kind", "figure"),
    [(FindingKind.SLOW_COLLATE, "collate_ns"), (FindingKind.SLOW_TRANSFORM, "transform_ns")],
)
def test_a_part_that_takes_most_of_a_slow_batch_is_found(kind: FindingKind, figure: str) -> None:
    waiting = steps_with(data=5_500 * US)  # of 15 ms
    slow = {"wait_ns": 550 * MS, "ready_batches": 0, "collate_ns": 0}
    found = one(found_in(run_with(waiting, loaders=(worker_loader(**{**slow, figure: 600 * MS}),))), kind)
    assert found.gain is not None
    assert found.gain.share == pytest.approx(0.6 * 5.5 / 15)
    assert kind in found_in(run_with(waiting, loaders=(worker_loader(**{**slow, figure: 300 * MS}),))).clear
    # Nobody waits for it.
    ready = {"wait_ns": 10 * MS, "collate_ns": 0, figure: 600 * MS}
    assert kind in found_in(run_with(loaders=(worker_loader(**ready),))).clear


# Model and training.


def optimizer(implementation: str | None, tensors: int = 20) -> OptimizerFacts:
    return OptimizerFacts(
        name="Adam", kind="Adam", implementation=implementation, tensors=tensors, parameters=1_000, steps=100
    )


def test_an_optimizer_that_goes_one_by_one_is_told_from_a_fused_one() -> None:
    group = steps_with(optimizer=3 * MS)
    found = one(found_in(run_with(group, optimizers=(optimizer("for-loop"),))), FindingKind.OPTIMIZER_LOOP)
    assert found.remedies[0].snippet == "torch.optim.Adam(model.parameters(), lr=lr, fused=True)"
    assert FindingKind.OPTIMIZER_LOOP in found_in(run_with(group, optimizers=(optimizer("fused"),))).clear
    assert "not recorded" in why_not(found_in(run_with(group)), FindingKind.OPTIMIZER_LOOP)


def test_double_precision_gains_half_of_the_computing_at_most() -> None:
    modules = tuple(
        msgspec.structs.replace(module, parameter_bytes=2 * module.parameter_bytes, dtype="float64")
        for module in net_modules()
    )
    double = run_with(modules=modules, calls=(net_calls(),))
    found = one(found_in(double), FindingKind.DOUBLE_PRECISION)
    assert found.place.module == "model"
    assert found.gain is not None
    assert found.gain.share == pytest.approx(0.89 / 2)
    single = run_with(modules=net_modules(), calls=(net_calls(),))
    assert FindingKind.DOUBLE_PRECISION in found_in(single).clear


def test_gradients_nobody_uses_are_found_in_inference_and_not_in_training() -> None:
    inference = group_of("forward", "net", [{"forward": MS, "other": 0}] * 20, backward_passes=0)
    assert one(found_in(run_with(inference)), FindingKind.UNUSED_GRADIENTS).place.group == "net"
    assert FindingKind.UNUSED_GRADIENTS in found_in(run_with()).clear


def test_threads_beyond_the_cores_are_found() -> None:
    def with_cores(cores: int) -> Run:
        run = run_with(intra_op_threads=4)
        return msgspec.structs.replace(run, machine=msgspec.structs.replace(run.machine, usable_cores=cores))

    found = one(found_in(with_cores(2)), FindingKind.TOO_MANY_THREADS)
    assert found.remedies[0].snippet == "torch.set_num_threads(2)"
    assert FindingKind.TOO_MANY_THREADS in found_in(with_cores(4)).clear


def generation(cached: int, costs_ms: list[int]) -> Generation:
    """One sequence, a token at each of the positions 32 and on."""
    return Generation(
        label="gpt", sequences=1, passes=len(costs_ms) + 1, tokens=len(costs_ms) + 1,
        total_ns=sum(costs_ms) * MS + 40 * MS, prompt_tokens=32, first_token_ns=40 * MS, cached_passes=cached,
        positions=(
            PositionBin(32, 32, 1, 40 * MS),
            *(PositionBin(33 + index, 33 + index, 1, cost * MS) for index, cost in enumerate(costs_ms)),
        ),
    )  # fmt: skip


def test_what_a_cache_could_gain_is_what_a_token_costs_for_its_position() -> None:
    growing = [33 + index for index in range(50)]  # 1 ms for each position
    found = one(found_in(run_with(generations=(generation(0, growing),))), FindingKind.NO_CACHE)
    assert found.gain is not None
    assert found.gain.of is GainOf.TOKEN
    # All of it, but for what the first position costs.
    assert 0.95 < found.gain.share <= 1
    assert FindingKind.NO_CACHE in found_in(run_with(generations=(generation(50, growing),))).clear


def test_a_token_that_costs_the_same_everywhere_gains_nothing_from_a_cache() -> None:
    found = one(found_in(run_with(generations=(generation(0, [40] * 50),))), FindingKind.NO_CACHE)
    assert found.gain is not None
    assert found.gain.share == pytest.approx(0, abs=0.01)


# Operators.


def operators(*rows: tuple[str, str | None, int, int], step_ns: int = 10 * MS) -> Operators:
    """A window of one step: name, phase, calls and self time of each operator."""
    return Operators(
        asked_steps=1,
        windows=(
            OperatorWindow(
                kind="training", label="Adam", first_step=5, steps=1, total_ns=step_ns,
                covered_ns=sum(row[3] for row in rows), thread_covered_ns=sum(row[3] for row in rows),
                events=sum(row[2] for row in rows),
                operators=tuple(
                    Operator(name=name, calls=calls, total_ns=self_ns, self_ns=self_ns)
                    for name, _, calls, self_ns in rows
                ),
                origins=tuple(Origin("call", phase, "net", None) for _, phase, _, _ in rows),
                uses=tuple(Use(index, index, row[2], row[3]) for index, row in enumerate(rows)),
            ),
        ),
    )  # fmt: skip


def test_many_tiny_operators_are_found_and_a_few_large_ones_not() -> None:
    tiny = operators(("aten::add", "forward", 1_000, 3 * MS), ("aten::mm", "forward", 10, 3 * MS))
    found = one(found_in(run_with(operators=tiny)), FindingKind.TINY_OPERATORS)
    # Of 10 ms a step computes in 8.9, and 3 of those are in products.
    assert found.share == pytest.approx(0.59)
    assert found.place.operator == "aten::add"
    large = operators(("aten::mm", "forward", 100, 9 * MS))
    assert FindingKind.TINY_OPERATORS in found_in(run_with(operators=large)).clear
    assert "--ops" in why_not(found_in(run_with()), FindingKind.TINY_OPERATORS)


def test_operators_that_load_data_are_not_what_the_step_is_made_of() -> None:
    loading = operators(("aten::select", "data", 1_000, MS), ("aten::mm", "forward", 100, 8 * MS))
    assert FindingKind.TINY_OPERATORS in found_in(run_with(operators=loading)).clear


def test_figures_taken_out_of_tensors_are_found_but_not_those_of_the_optimizer() -> None:
    def taken(phase: str | None) -> Operators:
        return operators(
            ("aten::item", phase, 64, 100 * US), ("aten::_local_scalar_dense", phase, 64, 100 * US)
        )

    found = one(found_in(run_with(operators=taken(None))), FindingKind.SYNCHRONISING)
    assert found.what.startswith("64 times a step")
    assert found.share == pytest.approx(0.02)
    assert FindingKind.SYNCHRONISING in found_in(run_with(operators=taken("optimizer"))).clear


_CLONING = ("aten::clone", "aten::copy_")


def test_copies_in_the_model_are_found_but_not_those_that_load_or_update() -> None:
    copying = operators(("aten::copy_", "forward", 4, MS), ("aten::clone", "forward", 2, 100 * US))
    # Two of the four are what cloning comes down to.
    assert one(found_in(run_with(operators=copying)), FindingKind.COPIES).share == pytest.approx(0.06)
    elsewhere = operators(
        *(row for phase in ("data", "optimizer") for row in ((name, phase, 4, MS) for name in _CLONING))
    )
    assert FindingKind.COPIES in found_in(run_with(operators=elsewhere)).clear


def test_copies_that_a_product_makes_inside_are_its_own() -> None:
    inside = operators(("aten::addmm", "forward", 4, 4 * MS), ("aten::copy_", "forward", 4, MS))
    assert FindingKind.COPIES in found_in(run_with(operators=inside)).clear


def test_a_phase_of_copies_is_found_without_operators() -> None:
    copying = group_of("training", "Adam", [{"copies": MS, **STEP}] * 100, samples=32)
    assert one(found_in(run_with(copying)), FindingKind.COPIES).place.phase == "copies"


# Memory.


def memory_run(levels_mb: list[int]) -> Run:
    """Looked at after each 50 ms, from the start of the run."""
    series = tuple((index * 50 * MS, level * MB) for index, level in enumerate(levels_mb))
    return msgspec.structs.replace(run_with(), memory=Memory(peak_bytes=max(levels_mb) * MB, series=series))


def test_memory_that_grows_to_the_end_is_found() -> None:
    found = one(found_in(memory_run([300 + 5 * index for index in range(20)])), FindingKind.MEMORY_GROWTH)
    assert found.gain is not None
    assert found.gain.of is GainOf.MEMORY
    assert found.size_bytes is not None
    assert found.size_bytes == pytest.approx(90 * MB, abs=5 * MB)


@pytest.mark.parametrize(
    "levels",
    [
        [300] * 20,
        [300 + 90 * (index >= 10) for index in range(20)],  # a step, not a slope
        [300 + round(90 * (1 - 0.6**index)) for index in range(20)],  # a cache that fills
    ],
    ids=["level", "one step", "fills up"],
)
def test_memory_that_stops_growing_is_no_leak(levels: list[int]) -> None:
    assert FindingKind.MEMORY_GROWTH in found_in(memory_run(levels)).clear


def garbage_run(pauses_ms: list[int], group: StepGroup | None = None) -> Run:
    """So long in each interval of 10 ms from the start."""
    longest = tuple(
        GarbagePause(index * 10 * MS, pause * MS, 2) for index, pause in enumerate(pauses_ms) if pause
    )
    generation = GarbageGeneration(
        collections=len(longest), timed_collections=len(longest), total_ns=sum(pauses_ms) * MS,
        max_ns=max(pauses_ms) * MS,
    )  # fmt: skip
    garbage = GarbageCollections(
        generations=(GarbageGeneration(), GarbageGeneration(), generation),
        longest=longest[:64],
        interval_ns=10 * MS,
        interval_pause_ns=tuple(pause * MS for pause in pauses_ms),
    )
    return msgspec.structs.replace(run_with(group), garbage=garbage)


def test_collections_in_the_loop_are_found_but_not_those_before_it() -> None:
    found = one(found_in(garbage_run([0] * 20 + [2] * 80)), FindingKind.GARBAGE_COLLECTION)
    assert found.share == pytest.approx(160 / 970, rel=0.02)
    before = garbage_run([8, 8, 8] + [0] * 97)
    findings = found_in(before)
    assert FindingKind.GARBAGE_COLLECTION in findings.clear
    assert StrengthKind.LITTLE_GARBAGE in {strength.kind for strength in findings.strengths}


# Steps.


def slow_each_tenth(phase: str, *, extra_ns: int = 30 * MS) -> StepGroup:
    steps = [{**STEP, phase: STEP[phase] + extra_ns * (index % 10 == 5)} for index in range(100)]
    return group_of("training", "Adam", steps, samples=32)


def test_slow_steps_are_found_with_their_phase_and_period() -> None:
    found = one(found_in(run_with(slow_each_tenth("other"))), FindingKind.LONG_TAIL)
    assert found.place.phase == "other"
    texts = " ".join(evidence.text for evidence in found.evidence)
    assert "every 10 steps" in texts
    assert "100.0 % of what they take longer is in other" in texts
    # Ten steps of 30 ms more, of 1.3 s.
    assert found.share == pytest.approx(300 / 1_300, rel=0.03)


def test_slow_steps_without_anything_in_common_are_told_as_that() -> None:
    irregular = {7, 11, 26, 38, 59, 61, 82}
    steps = [
        {name: ns * (4 if index in irregular else 1) for name, ns in STEP.items()} for index in range(100)
    ]
    findings = found_in(run_with(group_of("training", "Adam", steps, samples=32)))
    assert "nothing in common" in why_not(findings, FindingKind.LONG_TAIL)


def test_slow_steps_are_told_to_be_collections_where_they_are() -> None:
    irregular = (7, 11, 26, 38, 59, 61, 82)
    steps = [
        {name: ns * (4 if index in irregular else 1) for name, ns in STEP.items()} for index in range(100)
    ]
    group = group_of("training", "Adam", steps, samples=32)
    began_ns = [step.started_ns for step in group.first if step.index in irregular]
    run = garbage_run([0] * 130, group)
    assert run.garbage is not None
    pauses = tuple(GarbagePause(at_ns + MS, 25 * MS, 2) for at_ns in began_ns)
    run = msgspec.structs.replace(run, garbage=msgspec.structs.replace(run.garbage, longest=pauses))
    found = one(found_in(run), FindingKind.LONG_TAIL)
    assert any("collected garbage in 7 of 7" in evidence.text for evidence in found.evidence)


def test_even_steps_have_no_tail() -> None:
    assert FindingKind.LONG_TAIL in found_in(run_with()).clear


def test_a_first_step_that_takes_as_long_as_many_is_found() -> None:
    steps = [{**STEP, "forward": 400 * MS}, *[STEP] * 99]
    found = one(found_in(run_with(group_of("training", "Adam", steps, samples=32))), FindingKind.FIRST_CALL)
    assert found.gain is not None
    assert found.gain.of is GainOf.RUN
    assert found.duration_ns == pytest.approx(396 * MS, rel=0.01)
    assert FindingKind.FIRST_CALL in found_in(run_with()).clear


def sized(small_ns: int) -> StepGroup:
    """Nine batches of 64 in 10 ms, then one of 16, ten times."""
    large, small = dict(STEP), {**STEP, "forward": STEP["forward"] + small_ns - 10 * MS}
    group = group_of("training", "Adam", [*[large] * 9, small] * 10, samples=64)
    steps = tuple(
        msgspec.structs.replace(step, samples=16 if step.index % 10 == 9 else 64) for step in group.first
    )
    return msgspec.structs.replace(group, first=steps)


def test_a_step_that_costs_the_same_for_few_samples_has_too_small_a_batch() -> None:
    found = one(found_in(run_with(sized(9_500 * US))), FindingKind.SMALL_BATCH)
    # It computes 8.9 ms for 64 and 8.4 ms for 16: 92.5 % of it for none.
    assert found.gain is not None
    assert found.gain.share == pytest.approx(0.925 * 0.89, abs=0.01)
    assert FindingKind.SMALL_BATCH in found_in(run_with(sized(6 * MS))).clear


def test_batches_of_one_size_tell_nothing_without_the_limits_of_the_machine() -> None:
    assert "pyrometer limits" in why_not(found_in(run_with()), FindingKind.SMALL_BATCH)


# Code.


def sampled(*stacks: Seen, group: StepGroup | None = None) -> Run:
    run = run_with(group, calls=(net_calls(),), modules=net_modules())
    return msgspec.structs.replace(run, samples=stack_samples(*stacks))


def test_python_code_in_the_loop_is_found_by_its_share_of_the_steps() -> None:
    group = steps_with(other=10_600 * US)  # 20 ms a step, 2 s in all
    stacks = (Seen(stack="<module>:3;augment:12", python=800), Seen(stack="<module>:3", native=1_200))
    found = one(found_in(sampled(*stacks, group=group)), FindingKind.HOT_PYTHON)
    assert found.place.function == "augment (/home/ada/train.py:10)"
    assert found.share == pytest.approx(0.4)
    assert any("line 12 has 100.0 % of it" in evidence.text for evidence in found.evidence)


def test_python_code_before_the_loop_is_not_hot() -> None:
    # Steps spend 110 ms outside phases: no more than that can be the function's, of 1 s.
    group = steps_with(other=300 * US)
    stacks = (Seen(stack="<module>:3;prepare:12", python=5_000), Seen(stack="<module>:3", native=1_000))
    assert FindingKind.HOT_PYTHON in found_in(sampled(*stacks, group=group)).clear


def test_code_outside_all_phases_is_found_with_the_function_that_takes_it() -> None:
    group = steps_with(other=10 * MS)
    stacks = (
        Seen(stack="<module>:3;spectrum:12", native=900, waiting=100),
        Seen(stack="<module>:5;Linear.forward", native=1_000, call=(0, 1)),
        Seen(stack="<module>:1;prepare", python=5_000),
    )
    found = one(found_in(sampled(*stacks, group=group)), FindingKind.OUTSIDE_PHASES)
    assert found.share == pytest.approx(10 / 19.4)
    assert found.place.function == "spectrum (/home/ada/train.py:10)"
    assert found.evidence[1].text == "spectrum (train.py:3): 1.00 s in all, 10.0 % of it waiting"
    # It took longer than steps have outside their phases: it ran before them.
    assert not any("prepare" in evidence.text for evidence in found.evidence)
    assert FindingKind.OUTSIDE_PHASES in found_in(run_with()).clear


def test_waiting_for_data_is_told_with_the_function_that_takes_it() -> None:
    group = steps_with(data=10 * MS)
    calls = main_strand(call("data", None, 100, S), call("forward", None, 100, S))
    run = msgspec.structs.replace(
        run_with(group, calls=(calls,)),
        samples=stack_samples(
            Seen(stack="<module>:3;Images.__getitem__:12", python=900, call=(0, 0)),
            Seen(stack="<module>:3;Images.decode:15", python=300, call=(0, 0)),
        ),
    )
    texts = [evidence.text for evidence in one(found_in(run), FindingKind.INPUT_BOUND).evidence]
    assert "75.0 % of that is in Images.__getitem__ (train.py:12)" in texts


def test_a_program_that_sleeps_between_calls_has_no_small_batch_or_tiny_operators() -> None:
    sleepy = {"forward": MS, "other": 99 * MS}
    group = group_of("forward", "m", [sleepy] * 60, backward_passes=0, grad_forward_calls=0)
    steps = tuple(msgspec.structs.replace(step, samples=(1, 32)[step.index % 2]) for step in group.first)
    run = run_with(msgspec.structs.replace(group, first=steps))
    findings = found_in(run)
    assert one(findings, FindingKind.OUTSIDE_PHASES).share == pytest.approx(0.99)
    small = [each for each in findings.found if each.kind is FindingKind.SMALL_BATCH]
    assert all(each.gain is not None and each.gain.share <= 0.01 for each in small)


def test_a_library_is_not_told_by_the_folder_a_program_is_in() -> None:
    group = steps_with(other=10 * MS)
    own = sampled(
        Seen(stack="<module>:3;helper:12", native=900), Seen(stack="<module>:5", native=500, call=(0, 1)),
        group=group,
    )  # fmt: skip
    assert own.samples is not None
    functions = tuple(
        msgspec.structs.replace(function, file=function.file.replace("/home/ada/", "/home/rich/"))
        for function in own.samples.functions
    )
    run = msgspec.structs.replace(
        own,
        samples=msgspec.structs.replace(own.samples, functions=functions),
        program=Program(name="train.py", argv=("train.py",), working_directory="/home/rich"),
    )
    assert FindingKind.STALLS in found_in(run).clear


def test_native_code_is_no_hot_python() -> None:
    stacks = (Seen(stack="<module>:3;product:12", native=900),)
    assert FindingKind.HOT_PYTHON in found_in(sampled(*stacks, group=steps_with(other=11 * MS))).clear


# The machine.


def test_modules_that_wait_for_memory_are_found() -> None:
    run = placed_run()
    findings = found_in(run)
    # norm moves 20 MB a call at 25 GB/s of 36, and takes 8 % of the step: not enough to tell.
    assert FindingKind.MEMORY_BOUND in findings.clear
    assert run.torch is not None
    slower = tuple(
        msgspec.structs.replace(strand, nodes=tuple(_longer(node) for node in strand.nodes))
        for strand in run.torch.calls
    )
    modules = tuple(
        msgspec.structs.replace(module, input_bytes=40 * MB, output_bytes=40 * MB)
        if module.name == "net.norm"
        else module
        for module in run.torch.modules
    )
    large = msgspec.structs.replace(
        run, torch=msgspec.structs.replace(run.torch, calls=slower, modules=modules)
    )
    found = one(found_in(large), FindingKind.MEMORY_BOUND)
    assert found.place.module == "net.norm"
    assert found.share == pytest.approx(0.16)


def _longer(node: ScopeNode) -> ScopeNode:
    return call("net.norm", 1, 100, 160 * MS) if node.name == "net.norm" else node


def test_without_limits_nothing_is_said_of_memory_bandwidth() -> None:
    assert "pyrometer limits" in why_not(found_in(training_run()), FindingKind.MEMORY_BOUND)


def test_graph_breaks_are_found_with_their_reasons() -> None:
    compilation = Compilation(
        graphs=3, graph_breaks=2, recompilations=0, compile_ns=S, break_reasons=(("call to print", 2),)
    )
    found = one(found_in(run_with(compilation=compilation)), FindingKind.GRAPH_BREAKS)
    assert any("call to print" in evidence.text for evidence in found.evidence)
    whole = Compilation(graphs=1, graph_breaks=0, recompilations=0, compile_ns=S)
    assert FindingKind.GRAPH_BREAKS in found_in(run_with(compilation=whole)).clear


def test_a_gpu_that_waits_is_found() -> None:
    assert why_not(found_in(run_with()), FindingKind.GPU_IDLE) == "no GPU"
    idle = run_with(gpu=Gpu(name="A100", utilisation_percent=40.0))
    assert one(found_in(idle), FindingKind.GPU_IDLE).share == pytest.approx(0.6)
    busy = run_with(gpu=Gpu(name="A100", utilisation_percent=95.0))
    assert FindingKind.GPU_IDLE in found_in(busy).clear


def test_work_that_takes_longer_to_launch_than_to_do_is_found() -> None:
    def on_gpu(forward_ms: int, backward_ms: int) -> Run:
        times = {"forward": 100 * forward_ms * MS, "backward": 100 * backward_ms * MS}
        return run_with(gpu=Gpu(name="A100", phase_device_ns=times))

    found = one(found_in(on_gpu(1, 2)), FindingKind.LAUNCH_BOUND)
    assert found.share == pytest.approx(0.55)
    assert FindingKind.LAUNCH_BOUND in found_in(on_gpu(4, 4)).clear


# Damaged runs.


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: msgspec.structs.replace(run, profiled_ns=0),
        lambda _: run_with(
            group_of("training", "Adam", [STEP] * 3 + [dict.fromkeys(STEP, 0)] * 60 + [STEP] * 5, samples=1)
        ),
        lambda run: msgspec.structs.replace(run, memory=Memory(peak_bytes=0, series=((0, 0),) * 20)),
        lambda _: run_with(group_of("training", "Adam", [dict.fromkeys(STEP, 0)] * 100, samples=0)),
        lambda _: run_with(modules=(Module(name="", kind=""),)),
    ],
)
def test_runs_without_time_or_memory_are_looked_at_all_the_same(damage: Callable[[Run], Run]) -> None:
    assert found_in(damage(training_run())).verdict


# The docs.


def test_the_docs_name_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
    assert [kind.value for kind in FindingKind if f"`{kind.value}`" not in page] == []


def test_a_machine_that_was_busy_with_others_is_minded_in_the_verdict() -> None:
    stacks = (Seen(stack="<module>:5;Linear.forward", native=500, waiting=500, call=(0, 1)),)
    assert "Mind: in 42.5 % of a step its thread was to compute" not in found_in(run_with()).verdict
    group = steps_with(forward=8_500 * US, backward=0)
    assert (
        "Mind: in 42.5 % of a step its thread was to compute"
        in found_in(sampled(*stacks, group=group)).verdict
    )


TORCH_SAVE = "/opt/venv/lib/python3.11/site-packages/torch/serialization.py"


@pytest.mark.parametrize(("name", "found"), [("save", True), ("load", False), ("persistent_load", False)])
def test_saving_between_steps_holds_up_the_loop_and_loading_does_not(name: str, found: bool) -> None:
    run = sampled(
        Seen(stack=f"<module>:3;{name}:12", native=100, waiting=400),
        Seen(stack="<module>:5", native=500, call=(0, 1)),
        group=steps_with(other=6 * MS),
    )
    assert run.samples is not None
    functions = tuple(
        Function(name, TORCH_SAVE, 900) if function.name == name else function
        for function in run.samples.functions
    )
    run = msgspec.structs.replace(run, samples=msgspec.structs.replace(run.samples, functions=functions))
    findings = found_in(run)
    if not found:
        assert FindingKind.STALLS in findings.clear
        return
    stall = one(findings, FindingKind.STALLS)
    assert stall.what == "torch.save holds up the loop"
    assert stall.place.function == "<module> (/home/ada/train.py:3)"
    assert stall.duration_ns == 500 * MS
