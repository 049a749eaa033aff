"""What is kept of a run, which runs belong together, and where their figures changed."""

import random

import msgspec
import pytest

from pyrometer.analysis.history import (
    Change,
    Metric,
    PastRun,
    build_histories,
    figure_of,
    find_changes,
    find_programs,
    remember,
)
from pyrometer.record.run import GitState, Outcome, Run
from tests.past_runs import MIB, MS, past_run, past_steps
from tests.report.sample_runs import simple_run
from tests.torch_runs import generation_run, training_run

SLOWER = [10 * MS + step * 10_000 for step in range(10)] + [11 * MS + step * 10_000 for step in range(10)]
"""Ten steps about 10 ms, and ten about 11 ms, all different."""


def remembered(run: Run) -> PastRun:
    return remember(run, project="/p", folder="f", rank=1, run_path="/p/run.json")


def changes_in(runs: list[PastRun], metric: Metric | None = None) -> tuple[Change, ...]:
    (history,) = build_histories(runs, last=1_000, metric=metric)
    return find_changes(history, shuffle=random.Random(0).shuffle)


def test_the_figures_of_a_training_run_are_those_of_its_steady_steps() -> None:
    run = training_run()
    kept = remembered(run)
    assert run.torch is not None
    assert run.memory is not None
    assert kept.steps == run.torch.groups[0].steps
    assert (kept.peak_host_bytes, kept.profiled_ns) == (run.memory.peak_bytes, run.profiled_ns)
    assert (kept.torch_version, kept.threads) == (run.torch.torch_version, run.torch.intra_op_threads)
    # Its steady steps are alike: each has the median, to the 1.6 % of a bucket.
    steady = run.torch.groups[0].first[-1]
    assert kept.step_p50_ns == pytest.approx(steady.duration_ns, rel=0.016)
    assert steady.samples is not None
    assert kept.samples_per_s == pytest.approx(steady.samples * 1e9 / steady.duration_ns, rel=0.05)
    assert (kept.project, kept.folder, kept.rank, kept.run_path) == ("/p", "f", 1, "/p/run.json")


def test_tokens_are_kept_of_generation() -> None:
    assert (remembered(generation_run(cached=True)).tokens_per_s or 0) > 0


def test_what_a_program_without_torch_does_not_have_is_none() -> None:
    kept = remembered(simple_run())
    nothing = (
        "steps",
        "step_p50_ns",
        "step_p95_ns",
        "samples_per_s",
        "tokens_per_s",
        "torch_version",
        "threads",
    )
    assert [getattr(kept, name) for name in nothing] == [None] * len(nothing)
    assert kept.profiled_ns == simple_run().profiled_ns


def test_the_program_with_its_arguments_its_commit_and_its_end_are_kept() -> None:
    run = simple_run()
    program = msgspec.structs.replace(
        run.program,
        argv=("train.py", "--name", "two words"),
        git=GitState(commit="abc", branch="main", dirty=True),
    )
    failed = msgspec.structs.replace(
        run, program=program, outcome=Outcome(status="exception", detail="KeyError")
    )
    kept = remembered(failed)
    assert kept.program == "train.py --name 'two words'"
    assert (kept.commit, kept.dirty, kept.outcome, kept.detail) == ("abc", True, "exception", "KeyError")
    assert not kept.finished


def test_what_of_the_profiler_was_on_is_kept_because_it_costs() -> None:
    run = training_run()
    assert run.torch is not None
    windowed = msgspec.structs.replace(run.torch, warmup=3, window=(10, None), max_steps=50)
    watched = remembered(msgspec.structs.replace(run, torch=windowed)).watched
    assert watched.endswith("steps at most 50, 10:, warm-up 3")
    assert remembered(run).watched != remembered(msgspec.structs.replace(run, recorder="python")).watched


def test_programs_are_told_apart_by_arguments_folder_and_project() -> None:
    runs = [
        past_run(program="a.py"),
        past_run(program="a.py --x"),
        past_run(program="a.py", folder="inner"),
        past_run(program="a.py", project="/other"),
        past_run(program="a.py"),
    ]
    histories = build_histories(runs, last=10)
    assert [
        (one.latest.project, one.latest.folder, one.latest.program, one.all_runs) for one in histories
    ] == [
        ("/home/ada/net", "", "a.py", 2),
        ("/other", "", "a.py", 1),
        ("/home/ada/net", "inner", "a.py", 1),
        ("/home/ada/net", "", "a.py --x", 1),
    ]


def test_only_the_newest_runs_are_looked_at_and_all_are_counted() -> None:
    (history,) = build_histories(past_steps([1, 2, 3, 4]), last=2)
    assert [run.step_p50_ns for run in history.runs] == [3, 4]
    assert history.all_runs == 4


def test_ranks_of_one_launch_are_one_run() -> None:
    runs = [past_run(rank=rank, step_p50_ns=10 + rank) for _ in range(2) for rank in (1, 0, 2)]
    (history,) = build_histories(runs, last=10)
    assert [run.rank for run in history.runs] == [0, 0]
    assert (history.all_runs, history.other_ranks) == (2, 4)


def test_a_program_without_steps_is_followed_by_its_duration() -> None:
    assert build_histories([past_run()], last=1)[0].metric is Metric.STEP
    assert build_histories([past_run(step_p50_ns=None)], last=1)[0].metric is Metric.DURATION
    assert build_histories([past_run()], last=1, metric=Metric.MEMORY)[0].metric is Metric.MEMORY


def test_each_metric_is_a_figure_of_the_run() -> None:
    run = past_run(tokens_per_s=7.5)
    assert [figure_of(run, metric) for metric in Metric] == [10 * MS, 6_400.0, 300 * MIB, 7.5, 2_000 * MS]


def test_a_run_that_failed_has_no_figure() -> None:
    assert figure_of(past_run(outcome="signal", detail="SIGTERM"), Metric.STEP) is None


def test_the_whole_command_goes_before_the_name_and_this_folder_before_others() -> None:
    runs = [
        past_run(program="a.py", name="a.py"),
        past_run(program="a.py --x", name="a.py"),
        past_run(program="b.py 1", name="b.py"),
        past_run(program="b.py 2", name="b.py"),
        past_run(program="b.py 3", name="b.py", folder="inner"),
    ]
    histories = build_histories(runs, last=5)

    def found(wanted: str, folder: str = "") -> list[str]:
        meant = find_programs(histories, wanted, project="/home/ada/net", folder=folder)
        return sorted(one.latest.program for one in meant)

    assert found("a.py") == ["a.py"]
    assert found("b.py") == ["b.py 1", "b.py 2"]
    assert found("b.py", "inner") == ["b.py 3"]
    assert found("b.py", "elsewhere") == ["b.py 1", "b.py 2", "b.py 3"]
    assert found("c.py") == []


def test_a_change_has_its_runs_medians_and_size() -> None:
    (change,) = changes_in(past_steps(SLOWER))
    assert change.first_after.started_at.startswith("2026-11-11")
    assert change.last_before.started_at.startswith("2026-11-10")
    assert (change.before, change.after) == (10_045_000, 11_045_000)
    assert change.share == pytest.approx(1_000_000 / 10_045_000)
    assert change.p <= 0.01
    assert change.circumstances == ()


def test_runs_that_failed_are_in_no_change() -> None:
    failed = past_steps([1] * 12, outcome="exception", detail="ValueError")
    assert changes_in([*past_steps([10 * MS] * 12), *failed]) == ()


def test_a_change_below_one_percent_is_not_told() -> None:
    assert changes_in(past_steps([1_000_000] * 10 + [1_009_000] * 10)) == ()
    assert len(changes_in(past_steps([1_000_000] * 10 + [1_011_000] * 10))) == 1


@pytest.mark.parametrize(
    ("field", "old", "new", "told"),
    [
        ("python_version", "3.11.2", "3.12.1", "Python 3.11.2 → 3.12.1"),
        ("torch_version", "2.12.0", "2.13.0", "torch 2.12.0 → 2.13.0"),
        ("threads", 2, None, "threads 2 → not known"),
        ("cpu_model", "Old CPU", "New CPU", "processor Old CPU → New CPU"),
        ("usable_cores", 2, 4, "usable cores 2 → 4"),
        ("pyrometer_version", "0.1.0", "0.2.0", "Pyrometer 0.1.0 → 0.2.0"),
        ("watched", "memory", "memory, operators", "watched memory → memory, operators"),
    ],
)
def test_a_change_says_what_else_changed_at_that_time(
    field: str, old: object, new: object, told: str
) -> None:
    runs = past_steps(SLOWER)
    # Two runs before the steps got slower: a change is found to the nearest run or two.
    runs = [msgspec.structs.replace(run, **{field: old if day < 8 else new}) for day, run in enumerate(runs)]
    (change,) = changes_in(runs)
    assert change.circumstances == (told,)


def test_what_changed_long_before_is_not_blamed() -> None:
    runs = past_steps(SLOWER)
    runs = [
        msgspec.structs.replace(run, torch_version="old" if day < 4 else "new")
        for day, run in enumerate(runs)
    ]
    (change,) = changes_in(runs)
    assert change.circumstances == ()
