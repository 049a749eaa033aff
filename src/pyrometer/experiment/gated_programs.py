"""What a gate measures: one program, or each benchmark of a file, in two trees."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import Metric
from pyrometer.errors import UsageError
from pyrometer.experiment.bench_discovery import PATTERN, discover, side_of
from pyrometer.experiment.errors import ProgramFailedError, RefusedError
from pyrometer.experiment.experiment import Conditions, Contender
from pyrometer.experiment.gating import Candidate, Rule, gate_counts, gate_times
from pyrometer.experiment.paced_process import Surroundings, running
from pyrometer.experiment.sides import Command, contender_in, turned_path
from pyrometer.experiment.worktrees import Tree
from pyrometer.record.benchmarks import Benchmark, BenchmarkNote
from pyrometer.record.trials import ProcessTurns

OUTPUT, BENCHMARK = "output", "benchmark"
"""What may differ between two versions of a benchmark, if it is allowed: its result, and its own text."""


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
    """Of ``OUTPUT`` and ``BENCHMARK``."""
    tell: Callable[[str], None]


def is_benchmark_file(command: Command) -> bool:
    """Whether the command names a file of benchmarks instead of a program."""
    return command.script is not None and fnmatch(Path(command.script).name, PATTERN)


def gate_program(gated: Gated) -> Iterator[GatedLane]:
    """Each metric of a program, or of each benchmark of a file."""
    candidates = _candidates(gated)
    for metric in gated.metrics:
        if metric is None or metric.is_timed:
            lanes: Iterable[GatedLane] = gate_times(candidates, metric, gated.rule)
        else:
            lanes = (gate_counts(candidate, metric, gated.rule) for candidate in candidates)
        for lane in lanes:
            _check_output(gated, lane)
            yield lane


def _candidates(gated: Gated) -> list[Candidate]:
    if is_benchmark_file(gated.command):
        return list(_benchmark_candidates(gated))
    here = gated.candidate
    return [
        Candidate(
            baseline=contender_in(gated.baseline, gated.command, here=here),
            candidate=contender_in(here, gated.command, here=here),
            conditions=gated.conditions,
            tell=gated.tell,
        )
    ]


def _benchmark_candidates(gated: Gated) -> Iterator[Candidate]:
    before, after = _benchmarks(gated.baseline, gated), _benchmarks(gated.candidate, gated)
    chosen = _chosen(gated.command.arguments, before, after)
    for name in chosen:
        if before[name].source != after[name].source and BENCHMARK not in gated.allowed:
            raise RefusedError(
                f"REFUSED: the benchmark {name} itself differs between {gated.baseline.name} and "
                f"{gated.candidate.name}; if its times mean the same all the same: --allow {BENCHMARK}"
            )
    for name in chosen:
        yield _benchmark_candidate(gated, name, before[name], after[name])


def _benchmarks(tree: Tree, gated: Gated) -> Mapping[str, Benchmark]:
    file = tree.folder / Path(str(gated.command.script))
    if not file.is_file():
        raise UsageError(f"there is no {gated.command.script} in {tree.name}")
    found = discover(file, folder=tree.folder, variables=turned_path(tree, gated.candidate))
    return {benchmark.name: benchmark for benchmark in found}


def _chosen(
    names: Sequence[str], before: Mapping[str, Benchmark], after: Mapping[str, Benchmark]
) -> list[str]:
    unknown = [name for name in names if name not in after]
    if unknown:
        raise UsageError(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(after)}")
    both = [name for name in (names or after) if name in before]
    if not both:
        raise RefusedError(
            "REFUSED: the baseline has none of these benchmarks, so there is nothing to compare with"
        )
    return both


def _benchmark_candidate(gated: Gated, name: str, before: Benchmark, after: Benchmark) -> Candidate:
    gated.tell(f"{name}: finding out how many calls make a step")
    calls = _calls(_contender(gated.baseline, before, calls=0, gated=gated), gated.conditions.wanted.threads)
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
        variables=turned_path(tree, gated.candidate),
    )
    return Contender(side=side, tree=tree)


def _calls(pilot: Contender, threads: int | None) -> int:
    with TemporaryDirectory(prefix="pyrometer-", ignore_cleanup_errors=True) as scratch:
        surroundings = Surroundings(hash_seed=0, threads=threads)
        with running({"pilot": pilot.side}, surroundings, Path(scratch)) as processes:
            turn = processes["pilot"].first_turn()
    if turn is None or turn.note is None:
        raise ProgramFailedError(pilot.side.name, 0, "it ended without a call of the benchmark")
    return msgspec.json.decode(turn.note, type=BenchmarkNote).calls


def _check_output(gated: Gated, lane: GatedLane) -> None:
    """Both versions must work out the same: what is faster because it does less is no gain."""
    if OUTPUT in gated.allowed or lane.subject is None:
        return
    for pair in lane.trials.pairs:
        before, after = _checksum(pair.baseline), _checksum(pair.candidate)
        if before != after:
            raise RefusedError(
                f"REFUSED: {lane.subject} returns something else in {gated.candidate.name} than in "
                f"{gated.baseline.name} (checksum {after or 'none'} against {before or 'none'}); if that "
                f"is intended: --allow {OUTPUT}"
            )


def _checksum(process: ProcessTurns) -> str | None:
    return None if process.note is None else msgspec.json.decode(process.note, type=BenchmarkNote).checksum
