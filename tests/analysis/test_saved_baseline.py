"""Baselines with a name: which runs they keep, and whose figures they show."""

import msgspec
import pytest

from pyrometer.analysis.baseline import measure
from pyrometer.analysis.saved_baseline import (
    SavedBaseline,
    add_figures,
    configurations_of,
    plain_baseline,
    save_runs,
)
from pyrometer.errors import UsageError
from pyrometer.record.run import GitState, Memory, Outcome, Run
from tests.report.sample_runs import simple_run
from tests.torch_runs import TRAINING_STEP_NS, training_run

replace = msgspec.structs.replace
AT = "2026-03-01T10:00:00+01:00"


def with_arguments(run: Run, *arguments: str) -> Run:
    return replace(run, program=replace(run.program, argv=("train.py", *arguments)))


def process(number: int, *, slower: float = 1.0) -> Run:
    """One of several processes of the same thing, whose steps take ``slower`` × 10 ms."""
    run = training_run()
    assert run.torch is not None
    [group, *others] = run.torch.groups
    scaled = replace(
        group,
        total_ns=round(group.total_ns * slower),
        phase_ns=tuple(round(spent_ns * slower) for spent_ns in group.phase_ns),
        first=tuple(
            replace(
                step,
                duration_ns=round(step.duration_ns * slower),
                phase_ns=tuple(round(spent_ns * slower) for spent_ns in step.phase_ns),
            )
            for step in group.first
        ),
    )
    torch = replace(run.torch, groups=(scaled, *others))
    return replace(run, torch=torch, started_at=f"2026-01-02T03:04:{number:02}+00:00")


def saved(*runs: Run, known: SavedBaseline | None = None, force: bool = False) -> SavedBaseline:
    return save_runs(known, runs, name="main", saved_at=AT, force=force)


def test_what_is_saved_is_the_runs_and_their_figures() -> None:
    run = training_run()
    baseline = saved(run)
    assert (baseline.name, baseline.saved_at) == ("main", AT)
    assert baseline.runs == {"train.py --epochs 3": (run,)}
    assert baseline.figures is not None
    assert baseline.figures.batch_latency_ms.avg == sum(TRAINING_STEP_NS.values()) / 1e6
    [configuration] = configurations_of(baseline)
    assert (configuration.program, configuration.arguments) == ("train.py", ("--epochs", "3"))
    assert (configuration.steps, configuration.step_ms, configuration.runs) == (97, 10.0, 1)


def test_the_commands_of_a_saved_baseline_save_it_again() -> None:
    [configuration] = configurations_of(saved(training_run()))
    assert configuration.commands == (
        "pyrometer run --no-report -o run.json train.py --epochs 3",
        "pyrometer baseline save main run.json",
    )


def test_several_processes_of_a_configuration_are_kept_and_the_middle_one_has_the_figures() -> None:
    runs = [process(1, slower=1.2), process(2), process(3, slower=1.1)]
    baseline = saved(*runs)
    assert baseline.runs["train.py --epochs 3"] == tuple(runs)
    [configuration] = configurations_of(baseline)
    assert configuration.step_ms == pytest.approx(11)
    assert configuration.runs == 3


def test_a_configuration_that_is_saved_again_replaces_itself_and_no_other() -> None:
    before = saved(with_arguments(process(1), "8"), with_arguments(process(2), "16"))
    again = saved(with_arguments(process(3, slower=2), "8"), known=before)
    assert list(again.runs) == ["train.py 8", "train.py 16"]
    assert again.runs["train.py 16"] == before.runs["train.py 16"]
    assert [configuration.step_ms for configuration in configurations_of(again)] == [20, 10]
    assert again.figures is not None
    assert again.figures.batch_latency_ms.avg == 20


def test_a_program_without_steps_has_runs_and_no_figure_of_batches() -> None:
    run = replace(simple_run(), memory=Memory(peak_bytes=1 << 29))
    baseline = saved(run)
    assert baseline.figures is None
    [configuration] = configurations_of(baseline)
    assert (configuration.step_ms, configuration.samples_per_s, configuration.steps) == (None, None, None)
    assert configuration.peak_host_memory_gb == 0.5
    plain = plain_baseline(baseline)
    assert (plain.batch_latency_ms, plain.aggregates, plain.per_batch) == (None, None, ())
    assert plain.peak_host_memory_gb == 0.5
    assert plain.system.torch_version is None


def test_programs_with_and_without_steps_stand_in_one_baseline() -> None:
    baseline = saved(training_run(), with_arguments(simple_run(), "plain"))
    assert [configuration.steps for configuration in configurations_of(baseline)] == [97, None]


def test_a_configuration_that_has_no_steps_any_more_loses_its_figures() -> None:
    again = saved(simple_run(), known=saved(training_run()))
    assert again.figures is None
    assert [configuration.steps for configuration in configurations_of(again)] == [None]


def test_runs_of_different_things_are_not_saved_together() -> None:
    other = replace(process(2), software=replace(training_run().software, python_version="3.12.1"))
    with pytest.raises(UsageError) as caught:
        saved(process(1), other)
    assert "Python: CPython 3.11.9 (the first run), CPython 3.12.1 (run 2)" in str(caught.value)


def test_runs_of_different_commits_are_not_saved_together_though_they_may_be_compared() -> None:
    one, other = (
        replace(run, program=replace(run.program, git=GitState(commit=commit * 40, dirty=False)))
        for run, commit in ((process(1), "a"), (process(2), "b"))
    )
    with pytest.raises(UsageError, match=r"commit: a+ .the first run., b+ .run 2."):
        saved(one, other)


def test_what_no_run_recorded_keeps_none_from_being_saved() -> None:
    assert process(1).software.blas is None
    assert len(saved(process(1), process(2)).runs["train.py --epochs 3"]) == 2


def test_a_run_is_not_saved_twice() -> None:
    with pytest.raises(UsageError, match=r"given twice, that of 2026-01-02T03:04:01\+00:00"):
        saved(process(1), process(2), process(1))


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        (Outcome(status="exception", detail="ValueError"), "exception: ValueError"),
        (Outcome(status="running"), "still running, or killed"),
    ],
)
def test_a_program_that_failed_makes_a_baseline_only_if_it_must(outcome: Outcome, ending: str) -> None:
    failed = replace(training_run(), outcome=outcome)
    with pytest.raises(UsageError) as caught:
        saved(failed)
    assert f"train.py did not finish ({ending})" in str(caught.value)
    assert "--force" in str(caught.value)
    assert saved(failed, force=True).runs


def run_in(folder: str, number: int = 1) -> Run:
    run = process(number)
    return replace(run, program=replace(run.program, working_directory=folder))


def saved_in_project(*runs: Run, known: SavedBaseline | None = None, force: bool = False) -> SavedBaseline:
    return save_runs(known, runs, name="main", saved_at=AT, force=force, project="/home/ada/nets")


APART = [
    ("/home/ada/nets/exp1", "/home/ada/nets/exp2"),
    ("/home/ada/nets", "/home/ada/nets/exp1"),
    ("/home/ada/nets/exp1", "/builds/nets/exp2"),
    ("/builds/nets/exp2", "/home/ada/nets/exp1"),
    ("/builds/1", "/home/ada/nets/1/1"),
]


@pytest.mark.parametrize(("before", "after"), APART)
def test_a_program_of_the_same_name_in_another_folder_replaces_no_other(before: str, after: str) -> None:
    known = saved_in_project(run_in(before))
    with pytest.raises(UsageError) as caught:
        saved_in_project(run_in(after), known=known)
    assert f"train.py --epochs 3 was run in {before} and in {after}, which may be two programs" in str(
        caught.value
    )
    assert "under another name" in str(caught.value)
    assert saved_in_project(run_in(after), known=known, force=True).runs
    with pytest.raises(UsageError, match="which may be two programs"):
        saved_in_project(run_in(before), run_in(after, 2))


def test_figures_without_runs_are_of_their_folder_too() -> None:
    before = run_in("/home/ada/nets/exp1")
    known = add_figures(None, [(before.program, measure(before, file_name="baseline.json"))])
    with pytest.raises(UsageError, match="which may be two programs"):
        saved_in_project(run_in("/home/ada/nets/exp2"), known=known)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/ada/nets/exp1", "/home/ada/nets/exp1"),
        ("/home/ada/nets/exp1", "/builds/checkout-7/exp1"),
        ("/home/ada/nets", "/app"),
        ("/app", "/home/ada/nets"),
        ("/app", "/home/ada/nets-in-a-worktree"),
    ],
)
def test_a_checkout_of_the_project_may_lie_anywhere(before: str, after: str) -> None:
    known = saved_in_project(run_in(before))
    assert saved_in_project(run_in(after), known=known).runs == {"train.py --epochs 3": (run_in(after),)}


def test_figures_alone_take_the_place_of_runs_that_had_made_others() -> None:
    known = saved(with_arguments(process(1), "8"), with_arguments(process(2), "16"))
    newer = with_arguments(process(3, slower=2), "8")
    baseline = add_figures(known, [(newer.program, measure(newer, file_name="baseline.json"))])
    assert list(baseline.runs) == ["train.py 16"]
    assert [(one.step_ms, one.runs) for one in configurations_of(baseline)] == [(20, 0), (10, 1)]
