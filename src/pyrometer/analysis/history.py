"""The runs of a program over time: what is kept of each, and where a figure has changed its level.

Advisory only. The times stand for the machine's state as well as for the program, so a change is a
reason to measure, never a verdict.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import msgspec

from pyrometer.analysis.baseline import key_of
from pyrometer.analysis.identity import watched_in
from pyrometer.analysis.steps import build_groups, chosen_steps, main_group
from pyrometer.record.run import Run
from pyrometer.stats.change_points import Shuffle, find_change_points

LEAST_CHANGE = 0.01
"""Smaller changes are not told, however sure they are: memory may differ by a page for good."""

_NEAR = 2
"""So many runs beside a change belong to its moment: the place of a small one is that uncertain."""


class Metric(StrEnum):
    """A figure to follow over time."""

    STEP = "step"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    TOKENS = "tokens"
    DURATION = "duration"


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one run. What was not measured is None; nothing of the environment is in it."""

    started_at: str
    """ISO 8601 with the offset to UTC."""
    project: str
    """The folder of the project the program was run in."""
    folder: str
    """The working directory, as seen from the project; empty for the project itself."""
    name: str
    program: str
    """The program and its arguments, as they are typed."""
    rank: int | None
    """Of several processes that torchrun started."""
    commit: str | None
    dirty: bool | None
    outcome: str
    """``finished``, ``exception`` or ``signal``."""
    detail: str | None
    """The exception's or the signal's name."""
    steps: int | None
    """Of the main group of steps, warm-up too; the four below are of those after it."""
    step_p50_ns: int | None
    step_p95_ns: int | None
    samples_per_s: float | None
    tokens_per_s: float | None
    peak_host_bytes: int | None
    profiled_ns: int
    python_version: str
    torch_version: str | None
    threads: int | None
    """Those torch may use inside an operator."""
    cpu_model: str | None
    usable_cores: int | None
    watched: str
    """What of the profiler was on: some of it costs."""
    pyrometer_version: str
    run_path: str

    @property
    def place(self) -> tuple[str, str, str]:
        """What tells programs apart: project, working directory, and the program with its arguments."""
        return self.project, self.folder, self.program

    @property
    def placed(self) -> str:
        """The program and where it ran, as seen from the project: ``train.py (in exp1)``."""
        return f"{self.program} (in {self.folder or '.'})"

    @property
    def finished(self) -> bool:
        """Whether it came to its end: figures of others are no measure of the program."""
        return self.outcome == "finished"


_FIGURES: dict[Metric, Callable[[PastRun], float | None]] = {
    Metric.STEP: lambda run: run.step_p50_ns,
    Metric.THROUGHPUT: lambda run: run.samples_per_s,
    Metric.MEMORY: lambda run: run.peak_host_bytes,
    Metric.TOKENS: lambda run: run.tokens_per_s,
    Metric.DURATION: lambda run: run.profiled_ns,
}

_CIRCUMSTANCES: dict[str, Callable[[PastRun], object]] = {
    "Python": lambda run: run.python_version,
    "torch": lambda run: run.torch_version,
    "threads": lambda run: run.threads,
    "processor": lambda run: run.cpu_model,
    "usable cores": lambda run: run.usable_cores,
    "Pyrometer": lambda run: run.pyrometer_version,
    "watched": lambda run: run.watched,
}
"""What moves figures though the program stays the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of level of one figure."""

    last_before: PastRun
    first_after: PastRun
    before: float
    """The median of the runs since the change before."""
    after: float
    p: float
    circumstances: tuple[str, ...]
    """What else changed at that time: ``torch 2.12.0 → 2.13.0``."""

    @property
    def share(self) -> float:
        """How much more, of what it was before."""
        return self.after / self.before - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramHistory:
    """The runs of one program with the same arguments, from the oldest to the newest."""

    runs: tuple[PastRun, ...]
    """Those looked at, one at least; of torchrun's processes only rank 0."""
    all_runs: int
    """So many are kept, other ranks not counted."""
    other_ranks: int
    metric: Metric

    @property
    def latest(self) -> PastRun:
        """The newest run."""
        return self.runs[-1]

    @property
    def series(self) -> tuple[float | None, ...]:
        """The figure of each run; None where it failed or was not measured."""
        return tuple(figure_of(run, self.metric) for run in self.runs)


def remember(run: Run, *, project: str, folder: str, rank: int | None, run_path: str) -> PastRun:
    """What is to be kept of a run."""
    torch, git = run.torch, run.program.git
    main = None if torch is None else main_group(build_groups(torch))
    steady = None if main is None else main.steady
    return PastRun(
        started_at=run.started_at,
        project=project,
        folder=folder,
        name=run.program.name,
        program=key_of(run.program),
        rank=rank,
        commit=None if git is None else git.commit,
        dirty=None if git is None else git.dirty,
        outcome=run.outcome.status,
        detail=run.outcome.detail,
        steps=None if main is None else main.steps,
        step_p50_ns=None if steady is None else steady.p50_ns,
        step_p95_ns=None if steady is None else steady.p95_ns,
        samples_per_s=None if steady is None else steady.samples_per_second,
        tokens_per_s=None if steady is None else steady.tokens_per_second,
        peak_host_bytes=None if run.memory is None else run.memory.peak_bytes,
        profiled_ns=run.profiled_ns,
        python_version=run.software.python_version,
        torch_version=None if torch is None else torch.torch_version,
        threads=None if torch is None else torch.intra_op_threads,
        cpu_model=run.machine.cpu_model,
        usable_cores=run.machine.usable_cores,
        watched=", ".join(_watched(run)),
        pyrometer_version=run.pyrometer_version,
        run_path=run_path,
    )


def _watched(run: Run) -> Iterator[str]:
    yield f"{run.recorder} recorder"
    yield from watched_in(run)
    steps = "all" if run.torch is None else chosen_steps(run.torch)
    if steps != "all":
        yield f"steps {steps}"


def figure_of(run: PastRun, metric: Metric) -> float | None:
    """The figure of a run; None where it was not measured, or the run did not come to its end."""
    return _FIGURES[metric](run) if run.finished else None


def build_histories(
    past: Sequence[PastRun], *, last: int, metric: Metric | None = None
) -> tuple[ProgramHistory, ...]:
    """Programs with their newest ``last`` runs, the program run last first; ``past`` is oldest first.

    Without a ``metric`` it is the step, and the duration of a program that has no steps.
    """
    programs: dict[tuple[str, str, str], list[PastRun]] = {}
    for run in past:
        # Taken out and put back: programs stand in the order of their newest runs.
        programs[run.place] = runs = programs.pop(run.place, [])
        runs.append(run)
    return tuple(_history_of(runs, last=last, metric=metric) for runs in reversed(programs.values()))


def _history_of(runs: Sequence[PastRun], *, last: int, metric: Metric | None) -> ProgramHistory:
    # Ranks of one launch are one run seen several times, and no several runs to compare.
    leading = [run for run in runs if not run.rank] or list(runs)
    looked_at = tuple(leading[-last:])
    if metric is None:
        has_steps = any(run.step_p50_ns is not None for run in looked_at)
        metric = Metric.STEP if has_steps else Metric.DURATION
    return ProgramHistory(
        runs=looked_at, all_runs=len(leading), other_ranks=len(runs) - len(leading), metric=metric
    )


def find_programs(
    histories: Sequence[ProgramHistory], wanted: str, *, project: str, folder: str
) -> tuple[ProgramHistory, ...]:
    """Those a user may mean: the same words before the same name, this working directory before others.

    What ``names_of`` calls a program is accepted too.
    """
    for field in ("program", "name", "placed"):
        found = tuple(history for history in histories if getattr(history.latest, field) == wanted)
        here = tuple(one for one in found if one.latest.place[:2] == (project, folder))
        if found:
            return here or found
    return ()


def names_of(histories: Sequence[ProgramHistory]) -> tuple[str, ...]:
    """What each is called where these stand together: with its folder where that tells it apart."""
    alike = Counter(one.latest.program for one in histories)
    return tuple(
        one.latest.placed if one.latest.folder or alike[one.latest.program] > 1 else one.latest.program
        for one in histories
    )


def find_changes(history: ProgramHistory, *, shuffle: Shuffle) -> tuple[Change, ...]:
    """Where the figure changed its level among the runs that have it, by 1 % or more."""
    measured = [
        (run, value) for run, value in zip(history.runs, history.series, strict=True) if value is not None
    ]
    runs = [run for run, _ in measured]
    points = find_change_points([value for _, value in measured], shuffle=shuffle)
    return tuple(
        Change(
            last_before=runs[point.index - 1],
            first_after=runs[point.index],
            before=point.before,
            after=point.after,
            p=point.p,
            circumstances=tuple(
                changed_circumstances(runs[max(point.index - 1 - _NEAR, 0) : point.index + 1 + _NEAR])
            ),
        )
        for point in points
        if point.before > 0 and abs(point.after / point.before - 1) >= LEAST_CHANGE
    )


def changed_circumstances(runs: Sequence[PastRun]) -> Iterator[str]:
    """What moves figures and is not the same from one of these runs to the next: ``threads 2 → 4``."""
    for name, circumstance in _CIRCUMSTANCES.items():
        for before, after in pairwise(map(circumstance, runs)):
            if before != after:
                yield f"{name} {_told(before)} → {_told(after)}"
                break


def _told(circumstance: object) -> str:
    return "not known" if circumstance is None else str(circumstance)
