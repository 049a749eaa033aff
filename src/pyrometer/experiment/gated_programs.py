"""What a gate measures: one program, or each benchmark of a file, in two trees."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from pyrometer.experiment.gating import Rule, gate
from pyrometer.experiment.paced_process import Surroundings, running
from pyrometer.experiment.sides import Command, contender_in, turned_path
from pyrometer.experiment.worktrees import Tree
from pyrometer.record.benchmarks import Benchmark, BenchmarkNote
from pyrometer.record.trials import ProcessTurns, Trials

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
    if is_benchmark_file(gated.command):
        yield from _gate_benchmarks(gated)
        return
    here = gated.candidate
    baseline = contender_in(gated.baseline, gated.command, here=here)
    candidate = contender_in(here, gated.command, here=here)
    for metric in gated.metrics:
        yield _gate(gated, baseline, candidate, metric)


def _gate(
    gated: Gated, baseline: Contender, candidate: Contender, metric: Metric | None, **changes: object
) -> GatedLane:
    conditions = replace(gated.conditions, **changes) if changes else gated.conditions  # type: ignore[arg-type]
    return gate(baseline, candidate, metric, rule=gated.rule, conditions=conditions, tell=gated.tell)


def _gate_benchmarks(gated: Gated) -> Iterator[GatedLane]:
    before, after = _benchmarks(gated.baseline, gated), _benchmarks(gated.candidate, gated)
    chosen = _chosen(gated.command.arguments, before, after)
    for name in chosen:
        if before[name].source != after[name].source and BENCHMARK not in gated.allowed:
            raise RefusedError(
                f"REFUSED: the benchmark {name} itself differs between {gated.baseline.name} and "
                f"{gated.candidate.name}; if its times mean the same all the same: --allow {BENCHMARK}"
            )
    for name in chosen:
        yield from _gate_benchmark(gated, name, before[name], after[name])


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


def _gate_benchmark(gated: Gated, name: str, before: Benchmark, after: Benchmark) -> Iterator[GatedLane]:
    pilot = _contender(gated.baseline, before, calls=0, gated=gated)
    gated.tell(f"{name}: finding out how many calls make a step")
    calls = _calls(pilot, gated.conditions.wanted.threads)
    baseline = _contender(gated.baseline, before, calls=calls, gated=gated)
    candidate = _contender(gated.candidate, after, calls=calls, gated=gated)
    wanted = replace(gated.conditions.wanted, unit="call", calls_per_step=calls)
    told = replace(gated, tell=lambda text: gated.tell(f"{name}: {text}"))
    for metric in gated.metrics:
        lane = _gate(told, baseline, candidate, metric or Metric.LATENCY, wanted=wanted)
        _check_output(gated, name, lane.trials)
        yield replace(lane, subject=name)


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


def _check_output(gated: Gated, name: str, trials: Trials) -> None:
    """Both versions must work out the same: what is faster because it does less is no gain."""
    if OUTPUT in gated.allowed:
        return
    for pair in trials.pairs:
        before, after = _checksum(pair.baseline), _checksum(pair.candidate)
        if before != after:
            raise RefusedError(
                f"REFUSED: {name} returns something else in {gated.candidate.name} than in "
                f"{gated.baseline.name} (checksum {after or 'none'} against {before or 'none'}); if that "
                f"is intended: --allow {OUTPUT}"
            )


def _checksum(process: ProcessTurns) -> str | None:
    return None if process.note is None else msgspec.json.decode(process.note, type=BenchmarkNote).checksum
