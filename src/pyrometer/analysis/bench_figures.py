"""What the measured values of a benchmark come to."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from pyrometer.record.benchmarks import BenchmarkResults, CallMemory, MeasuredBenchmark
from pyrometer.record.values import Count, Value
from pyrometer.stats.pooled import pooled_median, two_level_interval

ENOUGH_PROCESSES = 6
"""Of fewer, an interval is a rough one."""

_TICK_NS = 1e-3
"""Less than any clock can tell of a call."""

Agreement = Literal["same", "by hash seed", "differs", "unchecked"]
"""Of what the processes returned: ``differs`` where two of one hash seed did not agree."""


class BenchmarkFigures(Value, frozen=True, kw_only=True):
    """The figures of one benchmark; what was not measured is None."""

    name: str
    call_ns: float | None = None
    """The median over the turns of all processes."""
    low_ns: float | None = None
    high_ns: float | None = None
    """Hold 99 % of the medians that other processes would have given; None of a single process."""
    processes: Count = 0
    calls: Count = 0
    """Timed ones, in all processes."""
    warm_processes: Count = 0
    """Those whose warm-up came to an end; the others' calls may have been getting faster still."""
    memory: CallMemory | None = None
    resident_peak_bytes: Count | None = None
    """The most that one of the processes had."""
    agreement: Agreement | None = None
    checksum: str | None = None
    """Of what is returned, where all processes agree."""
    why_unchecked: str | None = None
    changes_arguments: bool | None = None
    failed: bool = False


def benchmark_figures(measured: MeasuredBenchmark) -> BenchmarkFigures:
    """The figures of one."""
    processes = measured.processes
    if not processes:
        return BenchmarkFigures(
            name=measured.benchmark.name,
            memory=measured.memory,
            failed=measured.failure is not None,
        )
    groups = [[turn.duration_ns / turn.calls for turn in process.turns] for process in processes]
    # By logarithms: times are multiplied by what disturbs them, and never below 0.
    interval = two_level_interval(_logarithms(groups)) if len(groups) > 1 else None
    agreement = _agreement(measured)
    resident = [one.resident_peak_bytes for one in processes if one.resident_peak_bytes is not None]
    first = processes[0].note
    return BenchmarkFigures(
        name=measured.benchmark.name,
        call_ns=pooled_median(groups),
        low_ns=None if interval is None else math.exp(interval.low),
        high_ns=None if interval is None else math.exp(interval.high),
        processes=len(processes),
        calls=sum(turn.calls for process in processes for turn in process.turns),
        warm_processes=sum(process.is_warm is True for process in processes),
        memory=measured.memory,
        resident_peak_bytes=max(resident, default=None),
        agreement=agreement,
        checksum=first.checksum if agreement == "same" else None,
        why_unchecked=first.why_unchecked,
        changes_arguments=first.changes_arguments,
        failed=measured.failure is not None,
    )


def _logarithms(groups: Sequence[Sequence[float]]) -> list[list[float]]:
    # A turn that the clock could not tell from nothing is at most one of its ticks.
    return [[math.log(max(value, _TICK_NS)) for value in group] for group in groups]


def all_figures(results: BenchmarkResults) -> tuple[BenchmarkFigures, ...]:
    """Those of all benchmarks, in their order."""
    return tuple(map(benchmark_figures, results.benchmarks))


def _agreement(measured: MeasuredBenchmark) -> Agreement:
    by_seed: dict[int, set[str | None]] = defaultdict(set)
    for process in measured.processes:
        by_seed[process.hash_seed].add(process.note.checksum)
    told = set().union(*by_seed.values())
    if told == {None}:
        return "unchecked"
    if len(told) == 1:
        return "same"
    return "differs" if any(len(returned) > 1 for returned in by_seed.values()) else "by hash seed"
