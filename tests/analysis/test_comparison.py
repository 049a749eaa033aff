"""Whole runs side by side: figures, doubts, samples, and what may be compared at all."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pyrometer.analysis.comparison.compare import compare_facts, find_unlike, started_s
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    Metric,
    Part,
    PartsKind,
    Presence,
    Verdict,
)
from pyrometer.analysis.comparison.samples import frame_shares
from pyrometer.analysis.identity import Comparability, Level, Weight
from pyrometer.record.counters import CacheCounts, CacheSimulation, CounterRecord
from pyrometer.record.run import Run
from pyrometer.record.torch_run import TorchRun
from tests.compared_runs import Net, compare, difference, many_runs, net_run
from tests.report.sample_runs import simple_run
from tests.sampled_runs import Seen, stack_samples
from tests.torch_runs import MS, TORCH_RUNS, evaluation_run, group_of, net_operators, training_run


def metric(comparison: Comparison, name: Metric) -> Change:
    [change] = [one.change for one in comparison.metrics if one.metric is name]
    return change


def test_the_step_leads_and_is_the_median_of_the_steady_ones() -> None:
    comparison = compare(net_run(), net_run(Net(backward_us=4_500)))
    assert comparison.leading is not None
    assert comparison.leading.metric is Metric.STEP
    step = comparison.leading.change
    assert (step.before, step.after) == (10 * MS, 11 * MS)
    assert step.relative == pytest.approx(0.1)
    assert (step.verdict, step.doubt) == (Verdict.CANNOT_TELL, Doubt.FEW_RUNS)


def test_throughput_memory_and_counts_stand_beside_it() -> None:
    comparison = compare(net_run(), net_run(Net(backward_us=6_000, first_kb=700, peak_mb=600)))
    assert metric(comparison, Metric.SAMPLES_PER_SECOND).relative == pytest.approx(-0.2)
    assert metric(comparison, Metric.DATA_SHARE).after == pytest.approx(0.08)
    tensors = metric(comparison, Metric.TENSOR_BYTES)
    assert (tensors.before, tensors.after, tensors.verdict) == (1_000_000, 1_400_000, Verdict.MORE)
    assert metric(comparison, Metric.PEAK_HOST_BYTES).verdict is Verdict.MORE
    assert metric(comparison, Metric.FORWARD_CALLS).verdict is Verdict.SAME


def test_the_step_is_the_median_of_all_steps_and_not_of_how_the_run_began() -> None:
    began = [{"forward": 20 * MS, "other": 0}] * 256
    group = group_of("training", "Adam", [*began, *[{"forward": 10 * MS, "other": 0}] * 200])
    whole = replace(group, steps=100_000, sampled=group.sampled[:200])
    run = training_run()
    assert run.torch is not None
    run = replace(run, torch=replace(run.torch, groups=(whole,)))
    assert metric(compare(run, run), Metric.STEP).before == 10 * MS
    [step] = [table.whole for table in compare(run, run).tables if table.kind is PartsKind.PHASES]
    assert step.verdict is Verdict.CANNOT_TELL


def with_two_kinds(first_ms: int, second_ms: int) -> Run:
    run = training_run()
    assert run.torch is not None
    groups = [
        group_of("training", label, [{"forward": step_ms * MS, "other": 0}] * 20)
        for label, step_ms in (("SGD", first_ms), ("Adam", second_ms))
    ]
    return replace(run, torch=replace(run.torch, groups=tuple(groups), warmup=3))


def test_steps_of_one_kind_are_compared_whichever_took_longer_in_each_run() -> None:
    comparison = compare(with_two_kinds(10, 11), with_two_kinds(12, 9))
    assert (comparison.before.steps_label, comparison.after.steps_label) == ("SGD", "SGD")
    step = metric(comparison, Metric.STEP)
    assert (step.before, step.after) == (10 * MS, 12 * MS)


def test_calls_of_a_scope_once_a_run_are_not_judged_by_how_many_steps_there_were() -> None:
    comparison = compare(net_run(Net(steps=20)), net_run(Net(steps=40)))
    [scopes] = [table for table in comparison.tables if table.kind is PartsKind.SCOPES]
    calls = {row.place.name: row.calls for row in scopes.rows}
    assert calls["train"] is not None
    assert (calls["train"].verdict, calls["train"].doubt) == (Verdict.CANNOT_TELL, Doubt.VARIES)
    assert calls["load"] is not None
    assert calls["load"].verdict is Verdict.SAME


def test_a_last_step_that_was_cut_off_is_no_more_calls() -> None:
    cut = net_run(Net(steps=10))
    assert cut.torch is not None
    [strand] = cut.torch.calls
    nodes = [replace(node, calls=11) if node.name.startswith("net") else node for node in strand.nodes]
    calls = (replace(strand, nodes=tuple(nodes)),)
    cut = replace(
        cut, torch=replace(cut.torch, calls=calls), outcome=replace(cut.outcome, status="interrupted")
    )
    comparison = compare(net_run(), cut)
    forward = metric(comparison, Metric.FORWARD_CALLS)
    assert (forward.before, forward.after, forward.doubt) == (1, 1.1, Doubt.VARIES)
    [modules] = [table for table in comparison.tables if table.kind is PartsKind.MODULES]
    assert {row.calls.doubt for row in modules.rows if row.calls is not None} == {Doubt.VARIES}


def test_more_calls_in_every_step_are_more_whatever_the_number_of_steps() -> None:
    comparison = compare(net_run(Net(steps=20)), net_run(Net(steps=40, first_calls=2)))
    [modules] = [table for table in comparison.tables if table.kind is PartsKind.MODULES]
    calls = {row.place.name: row.calls for row in modules.rows}
    assert calls["net.first"] is not None
    assert calls["net.first"].verdict is Verdict.MORE


def test_a_smaller_batch_is_no_faster_program() -> None:
    """A step takes three quarters, for half as many samples."""
    before = many_runs(Net(), spread_us=0)
    after = many_runs(Net(backward_us=1_000, samples=16), at_second=30, spread_us=0)
    comparison = compare(before, after)
    assert metric(comparison, Metric.STEP).verdict is Verdict.FASTER
    leading = comparison.leading
    assert leading is not None
    assert (leading.metric, leading.change.verdict) == (Metric.SAMPLES_PER_SECOND, Verdict.SLOWER)
    samples = metric(comparison, Metric.SAMPLES)
    assert (samples.before, samples.after, samples.verdict) == (32, 16, Verdict.FEWER)


def test_of_a_model_that_generates_for_more_sequences_at_once_it_is_tokens() -> None:
    """Twice as many sequences a pass; their record has no samples a second."""
    run = TORCH_RUNS["generation-cached"]()
    assert run.torch is not None
    [group] = run.torch.groups
    assert group.samples is not None
    twice = replace(run, torch=replace(run.torch, groups=(replace(group, samples=2 * group.samples),)))
    comparison = compare(run, twice)
    assert metric(comparison, Metric.SAMPLES).verdict is Verdict.MORE
    leading = comparison.leading
    assert leading is not None
    assert leading.metric is Metric.TOKENS_PER_SECOND


def test_allocations_are_not_judged_by_how_many_steps_there_were() -> None:
    long, short = net_run(Net(steps=40)), net_run(Net(steps=20))
    assert short.torch is not None
    [group] = short.torch.groups
    assert group.phase_allocations is not None
    once = replace(group, phase_allocations=tuple(count + 300 for count in group.phase_allocations))
    short = replace(short, torch=replace(short.torch, groups=(once,)))
    changed = metric(compare(short, long), Metric.TENSOR_ALLOCATIONS)
    assert (changed.verdict, changed.doubt) == (Verdict.CANNOT_TELL, Doubt.VARIES)
    assert metric(compare(net_run(), short), Metric.TENSOR_ALLOCATIONS).verdict is Verdict.MORE


@pytest.mark.parametrize(("steps", "verdict"), [(20, Verdict.MORE), (40, Verdict.CANNOT_TELL)])
def test_bytes_of_modules_are_judged_where_runs_have_as_many_steps(steps: int, verdict: Verdict) -> None:
    """Else they may be those of a first call, shared out to few steps or many."""
    comparison = compare(net_run(Net(steps=20)), net_run(Net(steps=steps, first_kb=310)))
    [modules] = [table for table in comparison.tables if table.kind is PartsKind.MODULES]
    verdicts = {row.place.name: row.allocated.verdict for row in modules.rows if row.allocated is not None}
    assert verdicts["net.first"] is verdict
    assert verdicts["net.activation"] is Verdict.SAME


def test_operators_of_other_steps_are_not_judged() -> None:
    def looked_at(run: Run, first_step: int, name: str) -> Run:
        assert run.torch is not None
        assert run.torch.operators is not None
        [window] = run.torch.operators.windows
        operators = (window.operators[0], replace(window.operators[1], name=name))
        window = replace(window, first_step=first_step, operators=operators)
        operators_seen = replace(run.torch.operators, windows=(window,))
        return replace(run, torch=replace(run.torch, operators=operators_seen))

    before = looked_at(net_run(), 5, "aten::relu")
    same = compare(before, looked_at(net_run(), 5, "aten::argmax"))
    [operators] = [table for table in same.tables if table.kind is PartsKind.OPERATORS]
    assert {row.presence for row in operators.rows} == {Presence.BOTH, Presence.NEW, Presence.VANISHED}
    other = compare(before, looked_at(net_run(Net(first_calls=2)), 7, "aten::argmax"))
    [operators] = [table for table in other.tables if table.kind is PartsKind.OPERATORS]
    assert {row.presence for row in operators.rows} == {Presence.BOTH}
    assert {row.calls.doubt for row in operators.rows if row.calls is not None} == {Doubt.VARIES}


def test_what_did_not_change_has_moved_nowhere() -> None:
    before = many_runs(Net(), spread_us=0)
    after = many_runs(Net(first_us=2_008, second_us=1_192), at_second=30, spread_us=0)
    [modules] = [table for table in compare(before, after).tables if table.kind is PartsKind.MODULES]
    rows = {row.place.name: row for row in modules.rows}
    assert rows["net.first"].own.verdict is Verdict.NO_CHANGE
    assert rows["net.first"].moved is None
    after = many_runs(Net(first_us=2_400, second_us=800), at_second=30, spread_us=0)
    [modules] = [table for table in compare(before, after).tables if table.kind is PartsKind.MODULES]
    [moved] = [row.moved for row in modules.rows if row.moved is not None]
    assert (moved.name, moved.proven) == ("net.second", True)


def test_a_scope_that_was_the_only_one_has_vanished() -> None:
    bare = replace(net_run(), strands=())
    comparison = compare(net_run(), bare)
    [scopes] = [table for table in comparison.tables if table.kind is PartsKind.SCOPES]
    assert {row.presence for row in scopes.rows} == {Presence.VANISHED}


def test_batches_that_no_longer_come_from_a_loader_are_fewer() -> None:
    run = net_run()
    assert run.torch is not None
    [group] = run.torch.groups
    without = replace(run, torch=replace(run.torch, groups=(replace(group, batches=0),)))
    batches = metric(compare(run, without), Metric.BATCHES)
    assert (batches.before, batches.after, batches.verdict) == (1, 0, Verdict.FEWER)
    assert all(one.metric is not Metric.BATCHES for one in compare(without, without).metrics)


def test_instructions_of_a_scope_are_not_those_of_the_program() -> None:
    def simulated(scope: str | None) -> Run:
        return replace(
            net_run(),
            counters=CounterRecord(simulated=CacheSimulation(scope=scope, reason="made up")),
        )

    facts = compare_facts([simulated(None)], [simulated("forward")])
    [watched] = [one for one in facts.differences if one.name == "watched"]
    assert "simulated caches in forward" in watched.after


def steps_of_unequal_bytes(durations_ms: Sequence[int]) -> Run:
    """Steps of 100 kB, but each tenth of 10 kB: the last batch of an epoch is a smaller one."""
    steps = [{"forward": duration_ms * MS, "other": 0} for duration_ms in durations_ms]
    group = group_of("training", "Adam", steps, phase_bytes={"forward": 0})
    first = tuple(
        replace(step, allocated_bytes=10_000 if step.index % 10 == 9 else 100_000) for step in group.first
    )
    in_all = sum(step.allocated_bytes or 0 for step in first)
    group = replace(group, first=first, phase_bytes=(in_all, 0))
    return replace(net_run(), torch=TorchRun(torch_version="2", groups=(group,)))


def test_tensor_bytes_are_the_same_wherever_the_clock_ends_the_warm_up() -> None:
    early, late = steps_of_unequal_bytes([5] * 40), steps_of_unequal_bytes([*range(50, 10, -2), *[5] * 20])
    comparison = compare(early, late)
    assert (comparison.before.warmup_steps, comparison.after.warmup_steps) == (3, 18)
    tensors = metric(comparison, Metric.TENSOR_BYTES)
    # 33 of the 37 steps after the first three are of 100 kB.
    assert tensors.before == tensors.after == pytest.approx((33 * 100_000 + 4 * 10_000) / 37)
    assert tensors.verdict is Verdict.SAME
    assert metric(comparison, Metric.TENSOR_ALLOCATIONS).verdict is Verdict.SAME


def test_a_peak_that_differs_by_pages_is_the_same() -> None:
    comparison = compare(net_run(), net_run(Net(peak_mb=525)))
    assert metric(comparison, Metric.PEAK_HOST_BYTES).verdict is Verdict.SAME


def test_a_program_without_steps_is_led_by_its_whole_time() -> None:
    comparison = compare(simple_run(), simple_run())
    assert comparison.leading is not None
    assert comparison.leading.metric is Metric.PROFILED


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_a_run_beside_itself_is_the_same_in_every_count(name: str) -> None:
    run = TORCH_RUNS[name]()
    comparison = compare(run, run)
    counted = [one.change for one in comparison.metrics if not one.change.quantity.is_timed]
    counted += [row.calls for table in comparison.tables for row in table.rows if row.calls is not None]
    assert {change.verdict for change in counted} <= {Verdict.SAME}
    assert all(row.presence is Presence.BOTH for table in comparison.tables for row in table.rows)
    assert all(table.whole.grown == 0 for table in comparison.tables)


def simulated(instructions: int, environment: dict[str, str]) -> Run:
    counts = CacheCounts(instructions, 0, 0, 0, 0, 0, 0, 0, 0)
    simulation = CacheSimulation(tool="callgrind-3.19.0", counts=counts, environment=environment)
    return replace(simple_run(), counters=CounterRecord(simulated=simulation))


def test_instructions_are_certain_with_one_hash_seed_and_hardly_without() -> None:
    seeded = {"PYTHONHASHSEED": "0"}
    same_seed = compare(simulated(1_000_000, seeded), simulated(1_050_000, seeded))
    assert metric(same_seed, Metric.SIMULATED_INSTRUCTIONS).verdict is Verdict.MORE
    any_seed = compare(simulated(1_000_000, {}), simulated(1_050_000, {}))
    assert metric(any_seed, Metric.SIMULATED_INSTRUCTIONS).verdict is Verdict.SAME


def evaluated_closely(left_out_steps: int) -> Run:
    """100 steps of training and 20 of evaluation, and so many that were looked at closely."""
    run = evaluation_run()
    assert run.torch is not None
    operators = replace(net_operators(), left_out_steps=left_out_steps)
    return replace(run, torch=replace(run.torch, operators=operators))


def test_calls_that_are_shared_out_to_several_kinds_of_steps_are_not_judged() -> None:
    comparison = compare(evaluated_closely(5), evaluated_closely(10))
    for name in (Metric.FORWARD_CALLS, Metric.BACKWARD_PASSES):
        assert metric(comparison, name).doubt is Doubt.VARIES
    [modules] = [table for table in comparison.tables if table.kind is PartsKind.MODULES]
    assert {row.calls.doubt for row in modules.rows if row.calls is not None} == {Doubt.VARIES}
    assert {row.allocated.doubt for row in modules.rows if row.allocated is not None} == {Doubt.VARIES}


def test_calls_of_scopes_are_shared_out_to_steps_that_were_looked_at_closely_too() -> None:
    """A scope is entered there as well: 50 times in 50 steps, of which some are in no group of steps."""

    def looked_at(left_out_steps: int) -> Run:
        run, all_steps = net_run(Net(steps=50 - left_out_steps)), net_run(Net(steps=50))
        assert run.torch is not None
        assert run.torch.operators is not None
        operators = replace(run.torch.operators, left_out_steps=left_out_steps)
        return replace(run, strands=all_steps.strands, torch=replace(run.torch, operators=operators))

    comparison = compare(looked_at(4), looked_at(9))
    [scopes] = [table for table in comparison.tables if table.kind is PartsKind.SCOPES]
    calls = {row.path[-1]: row.calls for row in scopes.rows}
    assert calls["load"] is not None
    assert (calls["load"].before, calls["load"].after, calls["load"].verdict) == (1, 1, Verdict.SAME)


def test_calls_are_judged_where_no_step_was_left_out() -> None:
    comparison = compare(evaluated_closely(0), evaluated_closely(0))
    assert metric(comparison, Metric.FORWARD_CALLS).verdict is Verdict.SAME


# Doubts.


def test_eight_runs_a_side_by_turns_are_judged() -> None:
    comparison = compare(many_runs(Net()), many_runs(Net(backward_us=4_000), at_second=30))
    assert comparison.doubt is None
    step = metric(comparison, Metric.STEP)
    assert step.verdict is Verdict.SLOWER
    assert step.interval is not None
    assert step.interval.low <= 0.05 <= step.interval.high


def test_seven_runs_a_side_are_not() -> None:
    after = many_runs(Net(backward_us=4_000), at_second=30, runs=7)
    comparison = compare(many_runs(Net()), after)
    assert comparison.doubt is Doubt.FEW_RUNS
    assert metric(comparison, Metric.STEP).verdict is Verdict.CANNOT_TELL


def test_all_of_a_before_b_is_not_judged_however_many_there_are() -> None:
    after = [
        replace(run, started_at=run.started_at.replace("T03:", "T04:"))
        for run in many_runs(Net(backward_us=4_000), runs=20)
    ]
    comparison = compare(many_runs(Net(), runs=20), after)
    assert comparison.doubt is Doubt.NOT_INTERLEAVED
    assert metric(comparison, Metric.STEP).doubt is Doubt.NOT_INTERLEAVED


def test_on_another_machine_times_are_a_trend_and_counts_are_certain() -> None:
    trend = Comparability(level=Level.TREND_ONLY, differences=(difference("cpu_model", Weight.TREND_ONLY),))
    after = many_runs(Net(backward_us=4_000, first_calls=2), at_second=30)
    comparison = compare(many_runs(Net()), after, trend)
    assert metric(comparison, Metric.STEP).doubt is Doubt.OTHER_MACHINE
    first = comparison.tables[1].rows[0]
    assert first.calls is not None
    assert first.calls.verdict is Verdict.MORE


def test_what_was_watched_on_one_side_only_leaves_a_trend_of_times_and_memory() -> None:
    before = many_runs(Net())
    after = [
        replace(run, samples=None)
        for run in many_runs(Net(first_calls=2, first_kb=700, peak_mb=900), at_second=30)
    ]
    facts = compare_facts(before, after)
    [watched] = [one for one in facts.differences if one.name == "watched"]
    assert watched.weight is Weight.TREND_ONLY
    trend = Comparability(level=Level.TREND_ONLY, differences=(watched,))
    comparison = compare(before, after, trend)
    assert comparison.doubt is Doubt.WATCHED_OTHERWISE
    for name in (Metric.STEP, Metric.TENSOR_BYTES, Metric.TENSOR_ALLOCATIONS, Metric.PEAK_HOST_BYTES):
        assert metric(comparison, name).doubt is Doubt.WATCHED_OTHERWISE
    first = comparison.tables[1].rows[0]
    assert first.calls is not None
    assert first.allocated is not None
    assert (first.calls.verdict, first.allocated.doubt) == (Verdict.MORE, Doubt.WATCHED_OTHERWISE)


def test_another_recorder_is_no_other_machine() -> None:
    trend = Comparability(level=Level.TREND_ONLY, differences=(difference("recorder", Weight.TREND_ONLY),))
    assert compare(many_runs(Net()), many_runs(Net(), at_second=30), trend).doubt is Doubt.WATCHED_OTHERWISE
    both = (difference("recorder", Weight.TREND_ONLY), difference("cpu_model", Weight.TREND_ONLY))
    trend = Comparability(level=Level.TREND_ONLY, differences=both)
    assert compare(many_runs(Net()), many_runs(Net(), at_second=30), trend).doubt is Doubt.OTHER_MACHINE


def test_where_it_is_refused_there_are_the_facts_and_nothing_else() -> None:
    refused = Comparability(level=Level.REFUSED, differences=(difference("inputs", Weight.REFUSED),))
    comparison = compare(net_run(), net_run(), refused)
    assert comparison.comparability is refused
    assert (comparison.metrics, comparison.tables, comparison.functions, comparison.frames) == (
        (),
        (),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:06+00:00"),
        ("2026-01-02T03:04:05.250+00:00", "2026-01-02T03:04:05.5+00:00"),
        ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:06Z"),
        ("2026-01-02T03:04:05Z", "2026-01-01T23:04:05.001-04:00"),
        ("2025-12-31T23:59:59+00:00", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_moments_are_put_in_order_across_time_zones(earlier: str, later: str) -> None:
    one, other = started_s(earlier), started_s(later)
    assert one is not None
    assert other is not None
    assert one < other


@pytest.mark.parametrize("moment", ["", "yesterday", "2026-13-45T03:04:05Z", "2026-01-02T03:04:05", "٢٠٢٦"])
def test_a_moment_that_cannot_be_read_is_none(moment: str) -> None:
    assert started_s(moment) is None


# Facts.


def facts_of(before: Sequence[Run], after: Sequence[Run], *allowed: str) -> Comparability:
    return compare_facts(before, after, allowed=frozenset(allowed))


def with_argument(run: Run, argument: str) -> Run:
    return replace(run, program=replace(run.program, argv=("train.py", argument)))


def test_one_run_of_other_inputs_among_many_refuses_the_comparison() -> None:
    run = net_run()
    facts = facts_of([run, run], [run, run, with_argument(run, "--big")])
    assert facts.level is Level.REFUSED
    assert "inputs" in {one.name for one in facts.differences}
    facts = facts_of([run, with_argument(run, "--big")], [run])
    assert "inputs" in {one.name for one in facts.differences}


def test_a_side_of_different_programs_is_found_out() -> None:
    run = net_run()
    assert find_unlike([run, run]) is None
    unlike = find_unlike([run, run, with_argument(run, "--big")])
    assert unlike is not None
    assert unlike[0] == 2
    assert "--big" in unlike[1]
    assert find_unlike([run, with_argument(run, "--big")], allowed=frozenset({"inputs"})) is None


def test_a_side_of_two_commits_is_found_out() -> None:
    unlike = find_unlike([net_run(), net_run(Net(commit="f" * 40))])
    assert unlike is not None
    assert "commit" in unlike[1]


def test_a_side_of_which_one_run_has_uncommitted_changes_is_found_out() -> None:
    clean = net_run()
    assert clean.program.git is not None
    dirty = replace(clean, program=replace(clean.program, git=replace(clean.program.git, dirty=True)))
    assert find_unlike([clean, dirty]) == (1, "uncommitted changes: other")
    assert find_unlike([dirty, clean]) == (1, "uncommitted changes: first")
    assert find_unlike([dirty, dirty]) is None
    assert find_unlike([clean, dirty], allowed=frozenset({"dirty"})) is None


# Samples.


def sampled(*stacks: Seen) -> Run:
    return replace(net_run(), samples=stack_samples(*stacks))


def test_functions_are_a_trend_with_margins_and_never_judged() -> None:
    before = sampled(Seen(stack="main:1;load:2", python=400), Seen(stack="main:1;step:3", python=600))
    after = sampled(Seen(stack="main:1;load:2", python=800), Seen(stack="main:1;train:3", python=200))
    functions = compare([before] * 8, [after] * 8).functions
    assert functions is not None
    assert {row.name: row.presence for row in functions.rows} == {
        "step": Presence.VANISHED,
        "load": Presence.BOTH,
        "train": Presence.NEW,
    }
    assert {row.change.doubt for row in functions.rows} == {Doubt.SAMPLED}
    [load] = [row for row in functions.rows if row.name == "load"]
    assert load.change.before == pytest.approx(0.4)
    assert load.change.after == pytest.approx(0.8)
    assert load.before_margin is not None
    assert sum(row.change.before or 0 for row in functions.rows) == pytest.approx(1)
    assert sum(row.change.after or 0 for row in functions.rows) == pytest.approx(1)


def test_frames_of_both_sides_are_one_tree_with_both_shares() -> None:
    before = sampled(Seen(stack="main:1;load:2", python=500), Seen(stack="main:1;old:3", python=500))
    after = sampled(Seen(stack="main:1;load:9", python=250), Seen(stack="main:1;new:3", python=750))
    frames = compare(before, after).frames
    assert frames is not None
    tree = frames.after
    named = {
        tree.frames[tree.frame_of[node]].name: shares for node, shares in enumerate(frame_shares(frames))
    }
    assert named == {"main": (1, 1), "load": (0.5, 0.25), "old": (0.5, 0), "new": (0, 0.75)}


def test_a_part_that_one_side_does_not_hold_is_said_to_be_missing() -> None:
    comparison = compare(net_run(), replace(training_run(), samples=None))
    missing = {one.part: (one.before, one.after) for one in comparison.missing}
    assert missing == {Part.OPERATORS: (False, True), Part.SAMPLES: (False, True)}
