"""What a gate measures: one program, or each benchmark of a file, in two trees."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import Metric
from pyrometer.errors import UsageError
from pyrometer.experiment.bench_discovery import PATTERN, discover, is_named, side_of
from pyrometer.experiment.errors import ProgramFailedError, RefusedError
from pyrometer.experiment.experiment import Conditions, Contender
from pyrometer.experiment.gating import Candidate, Rule, gate_counts, gate_times
from pyrometer.experiment.paced_process import Surroundings, running
from pyrometer.experiment.scratch import scratch_folder
from pyrometer.experiment.sides import Command, contender_in, script_in, variables_in
from pyrometer.experiment.worktrees import Tree
from pyrometer.record.benchmarks import Benchmark, BenchmarkNote
from pyrometer.record.trials import ProcessTurns
from pyrometer.record.turns import Turn

OUTPUT, BENCHMARK, INPUTS = "output", "benchmark", "inputs"
"""What may differ between two versions of a benchmark, if allowed: its result, its text, its arguments."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What is to be gated, in which trees, and how."""

    baseline: Tree
    candidate: Tree
    command: Command
    metrics: Sequence[Metric | None]
    rule: Rule
    conditions: Conditions
    allowed: frozenset[str] = frozenset()
    """Of ``OUTPUT``, ``BENCHMARK`` and ``INPUTS``."""
    tell: Callable[[str], None]


def is_benchmark_file(command: Command) -> bool:
    """Whether the command names a file of benchmarks instead of a program."""
    return command.script is not None and fnmatch(Path(command.script).name, PATTERN)


def gate_program(gated: Gated) -> Iterator[GatedLane]:
    """Each metric of a program, or of each benchmark of a file."""
    suite = _suite(gated)
    candidates = suite.candidates
    for metric in gated.metrics:
        if metric is None or metric.is_timed:
            lanes: Iterable[GatedLane] = gate_times(candidates, metric, gated.rule)
        else:
            lanes = (gate_counts(candidate, metric, gated.rule) for candidate in candidates)
        for lane in lanes:
            _check_pairs(gated, lane)
            yield replace(lane, unchecked=tuple(_unchecked(lane)), new=suite.new, gone=suite.gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """What is measured, and the names of what only one side has."""

    candidates: Sequence[Candidate]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def _suite(gated: Gated) -> _Suite:
    if is_benchmark_file(gated.command):
        return _benchmark_suite(gated)
    here = gated.candidate
    only = Candidate(
        baseline=contender_in(gated.baseline, gated.command, here=here),
        candidate=contender_in(here, gated.command, here=here),
        conditions=gated.conditions,
        tell=gated.tell,
    )
    return _Suite(candidates=[only])


def _benchmark_suite(gated: Gated) -> _Suite:
    every_before, every_after = _benchmarks(gated.baseline, gated), _benchmarks(gated.candidate, gated)
    names = gated.command.arguments
    for name in names:
        _choose(gated, [name], every_before, every_after)
    before, after = _choose(gated, names, every_before, every_after)
    both = [name for name in after if name in before]
    for name in both:
        if before[name].source != after[name].source and BENCHMARK not in gated.allowed:
            raise RefusedError(
                f"REFUSED: the benchmark {name} itself differs between {gated.baseline.name} and "
                f"{gated.candidate.name}; if its times mean the same all the same: --allow {BENCHMARK}"
            )
    return _Suite(
        candidates=[_benchmark_candidate(gated, name, before[name], after[name]) for name in both],
        new=tuple(name for name in after if name not in before),
        gone=tuple(name for name in before if name not in after),
    )


_Benchmarks = Mapping[str, Benchmark]


def _benchmarks(tree: Tree, gated: Gated) -> _Benchmarks:
    file = script_in(tree, str(gated.command.script), gated.candidate).file
    try:
        found = discover(file, folder=tree.folder, variables=variables_in(tree, gated.candidate))
    except UsageError as error:
        # By the name that the user gave it: a checkout's own is gone by the time it is read.
        where = f"{gated.command.script} of {tree.name}"
        raise UsageError(str(error).replace(str(file), where)) from None
    return {benchmark.name: benchmark for benchmark in found}


def _choose(
    gated: Gated, names: Sequence[str], before: _Benchmarks, after: _Benchmarks
) -> tuple[_Benchmarks, _Benchmarks]:
    """Those that the names mean on each side, all where there are none; both have at least one of them."""
    old, new = (
        {name: benchmark for name, benchmark in side.items() if is_named(benchmark, names)}
        for side in (before, after)
    )
    which = f"benchmark {names[0]!r}" if names else "benchmark of that file"
    if not old and not new:
        raise UsageError(f"there is no {which}; there are: {_some(after)}")
    if not old.keys() & new.keys():
        raise RefusedError(
            f"REFUSED: {gated.baseline.name} and {gated.candidate.name} have no {which} in common, so there "
            f"is nothing to compare: {gated.baseline.name} has {_some(old)}, {gated.candidate.name} has "
            f"{_some(new)}"
        )
    return old, new


def _some(names: Collection[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(islice(names, _MOST_NAMED)) or 'none'}{more}"


def _benchmark_candidate(gated: Gated, name: str, before: Benchmark, after: Benchmark) -> Candidate:
    gated.tell(f"{name}: finding out how many calls make a step")
    pilot = _pilot(gated, gated.baseline, before, calls=0)
    # Before minutes of measuring; each pair is looked at again, since each has another hash seed.
    _check_same(
        gated,
        name,
        before=pilot,
        after=_pilot(gated, gated.candidate, after),
        again=lambda: _pilot(gated, gated.baseline, before),
    )
    calls = pilot.calls
    wanted = replace(gated.conditions.wanted, unit="call", calls_per_step=calls)
    return Candidate(
        baseline=_contender(gated.baseline, before, calls=calls, gated=gated),
        candidate=_contender(gated.candidate, after, calls=calls, gated=gated),
        conditions=replace(gated.conditions, wanted=wanted),
        tell=lambda text: gated.tell(f"{name}: {text}"),
        subject=name,
    )


def _contender(tree: Tree, benchmark: Benchmark, *, calls: int, gated: Gated) -> Contender:
    side = side_of(
        benchmark.name,
        file=Path(benchmark.file),
        folder=tree.folder,
        calls=calls,
        name=tree.name,
        shown=script_in(tree, str(gated.command.script), gated.candidate).relative,
        variables=variables_in(tree, gated.candidate),
    )
    return Contender(side=side, tree=tree)


def _pilot(gated: Gated, tree: Tree, benchmark: Benchmark, *, calls: int = 1) -> BenchmarkNote:
    """What a process tells of the benchmark before it is measured; with 0 calls also how many make a step."""
    side = _contender(tree, benchmark, calls=calls, gated=gated).side
    with scratch_folder() as scratch:
        surroundings = Surroundings(hash_seed=0, threads=gated.conditions.wanted.threads)
        with running({"pilot": side}, surroundings, scratch) as processes:
            note = _note(processes["pilot"].first_turn())
            # As by sys.exit(), so that what its set-up has registered for the end is done.
            processes["pilot"].end()
            return note


def _check_pairs(gated: Gated, lane: GatedLane) -> None:
    if lane.subject is None:
        return
    for pair in lane.trials.pairs:
        _check_same(
            gated,
            lane.subject,
            before=_note(pair.baseline),
            after=_note(pair.candidate),
            again=partial(_note, pair.control or pair.baseline),
        )


def _check_same(
    gated: Gated,
    name: str,
    *,
    before: BenchmarkNote,
    after: BenchmarkNote,
    again: Callable[[], BenchmarkNote],
) -> None:
    """Both versions must work out the same from the same: what is faster by doing less is no gain.

    ``again`` gets another note of the baseline's, which tells whether the benchmark ever does the same.
    """
    for fact, does, read in _FACTS:
        one, other = read(before), read(after)
        if one == other or fact in gated.allowed:
            continue
        where = f"in {gated.candidate.name} than in {gated.baseline.name}"
        if read(again()) != one:
            where = f"in each process, as two of {gated.baseline.name} show"
        raise RefusedError(
            f"REFUSED: {name} {does} {where} (checksum {other or 'none'} against {one or 'none'}); if that "
            f"is intended: --allow {fact}"
        )


_FACTS: tuple[tuple[str, str, Callable[[BenchmarkNote], str | None]], ...] = (
    (INPUTS, "is given something else", lambda note: note.inputs),
    (OUTPUT, "returns something else", lambda note: note.checksum),
)


def _unchecked(lane: GatedLane) -> Iterator[str]:
    """What may have been another on both sides, since nothing of it can be compared."""
    if lane.subject is None:
        return
    notes = [_note(process) for pair in lane.trials.pairs for process in (pair.baseline, pair.candidate)]
    for what, reasons in (
        ("is given the same", [note.why_inputs_unchecked for note in notes]),
        ("returns the same", [note.why_unchecked for note in notes]),
    ):
        yield from (f"whether {lane.subject} {what}: {why}" for why in dict.fromkeys(filter(None, reasons)))


def _note(process: ProcessTurns | Turn | None) -> BenchmarkNote:
    if process is None or process.note is None:
        raise ProgramFailedError("a benchmark", 0, "it ended without a call of its function")
    return msgspec.json.decode(process.note, type=BenchmarkNote)
