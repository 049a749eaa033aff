"""Whole runs side by side: figures, doubts, samples, and what may be compared at all."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pyrometer.analysis.comparison.compare import compare_facts, find_unlike, started_s
from pyrometer.analysis.comparison.model import Change, Comparison, Doubt, Metric, Part, Presence, Verdict
from pyrometer.analysis.comparison.samples import frame_shares
from pyrometer.analysis.identity import Comparability, Level, Weight
from pyrometer.record.counters import CacheCounts, CacheSimulation, CounterRecord
from pyrometer.record.run import Run
from tests.compared_runs import Net, compare, difference, many_runs, net_run
from tests.report.sample_runs import simple_run
from tests.sampled_runs import Seen, stack_samples
from tests.torch_runs import MS, TORCH_RUNS, training_run


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
    assert missing == {
        Part.SCOPES: (False, True),
        Part.OPERATORS: (False, True),
        Part.SAMPLES: (False, True),
    }
