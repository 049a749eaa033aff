"""What counts say of a program: instructions a cycle, and how often caches and branches miss."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyrometer.record.counters import (
    CacheCounts,
    CacheSimulation,
    CountedFunction,
    CounterRecord,
    HardwareCounter,
    HardwareCounters,
    SimulatedCache,
)

# Each with what it is a part of.
_RATES = {
    "cache misses": "cache references",
    "branch misses": "branches",
    "L1d load misses": "L1d loads",
    "LLC load misses": "LLC loads",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterResult:
    """One counter; ``rate`` is the share of misses in what was looked up, None where that is not known."""

    name: str
    count: int | None
    reason: str | None
    counted_share: float | None
    rate: float | None
    rate_of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSet:
    """The counters of the process or of one thread."""

    name: str | None
    """The thread's; None: the process."""
    threads: int
    counters: tuple[CounterResult, ...]
    instructions_per_cycle: float | None

    @property
    def are_known(self) -> bool:
        """Whether anything was counted."""
        return any(counter.count is not None for counter in self.counters)

    def __getitem__(self, name: str) -> CounterResult | None:
        return next((counter for counter in self.counters if counter.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareResult:
    """What the processor counted; threads with the most instructions first."""

    source: str
    process: CounterSet
    threads: tuple[CounterSet, ...]
    with_forked_processes: bool
    advice: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheResult:
    """What one simulated cache was asked for, and how often it did not have it."""

    name: str
    references: int
    misses: int
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult:
    """One function of a library, without what it calls."""

    name: str
    library: str
    instructions: int
    share: float
    """Of all instructions."""
    data_references: int
    d1_misses: int
    d1_rate: float | None
    ll_misses: int
    ll_share: float | None
    """Of all misses of the last level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What valgrind counted; ``reason`` says why nothing, if that is so.

    ``scope``, ``models``, ``slowdown``, ``environment``, ``function_count`` and ``file`` are the record's.
    """

    source: str
    reason: str | None
    scope: str | None
    instructions: int | None
    caches: tuple[CacheResult, ...]
    functions: tuple[FunctionResult, ...]
    function_count: int
    models: tuple[SimulatedCache, ...]
    slowdown: float | None
    environment: dict[str, str]
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterResults:
    """All that was counted."""

    hardware: HardwareResult | None
    simulated: SimulationResult | None


def build_counter_results(record: CounterRecord | None) -> CounterResults | None:
    """What the counters of a run say; None when nothing was asked for."""
    if record is None:
        return None
    return CounterResults(
        hardware=None if record.hardware is None else _hardware(record.hardware),
        simulated=None if record.simulated is None else _simulation(record.simulated),
    )


def _hardware(hardware: HardwareCounters) -> HardwareResult:
    threads = [
        _counter_set(thread.counters, thread.thread_name, thread.threads) for thread in hardware.threads
    ]
    return HardwareResult(
        source="hardware",
        process=_counter_set(hardware.counters, None, 0),
        threads=tuple(sorted(threads, key=_instructions, reverse=True)),
        with_forked_processes=hardware.with_forked_processes,
        advice=hardware.advice,
    )


def _instructions(counters: CounterSet) -> int:
    found = counters["instructions"]
    return -1 if found is None or found.count is None else found.count


def _counter_set(counters: Iterable[HardwareCounter], name: str | None, threads: int) -> CounterSet:
    counters = tuple(counters)
    counts = {counter.name: counter.count for counter in counters}
    return CounterSet(
        name=name,
        threads=threads,
        counters=tuple(
            CounterResult(
                name=counter.name,
                count=counter.count,
                reason=counter.reason,
                counted_share=counter.counted_share,
                rate=_ratio(counter.count, counts.get(_RATES.get(counter.name, ""))),
                rate_of=_RATES.get(counter.name),
            )
            for counter in counters
        ),
        instructions_per_cycle=_ratio(counts.get("instructions"), counts.get("cycles")),
    )


def _simulation(simulation: CacheSimulation) -> SimulationResult:
    counts = simulation.counts
    return SimulationResult(
        source=f"simulated by {simulation.tool or 'valgrind'}",
        reason=simulation.reason,
        scope=simulation.scope,
        instructions=None if counts is None else counts.instructions,
        caches=() if counts is None else _caches(counts),
        functions=() if counts is None else tuple(_functions(simulation.functions, counts)),
        function_count=simulation.function_count,
        models=simulation.caches,
        slowdown=simulation.slowdown,
        environment=simulation.environment,
        file=simulation.file,
    )


def _functions(functions: Iterable[CountedFunction], all_counts: CacheCounts) -> Iterator[FunctionResult]:
    for function in functions:
        counts = function.counts
        references = counts.reads + counts.writes
        yield FunctionResult(
            name=function.name,
            library=function.library,
            instructions=counts.instructions,
            share=_ratio(counts.instructions, all_counts.instructions) or 0.0,
            data_references=references,
            d1_misses=_d1_misses(counts),
            d1_rate=_ratio(_d1_misses(counts), references),
            ll_misses=_ll_misses(counts),
            ll_share=_ratio(_ll_misses(counts), _ll_misses(all_counts)),
        )


def _caches(counts: CacheCounts) -> tuple[CacheResult, ...]:
    d1 = _d1_misses(counts)
    return (
        _cache("I1, instructions", counts.instructions, counts.i1_misses),
        _cache("D1, reads", counts.reads, counts.d1_read_misses),
        _cache("D1, writes", counts.writes, counts.d1_write_misses),
        _cache("D1, both", counts.reads + counts.writes, d1),
        _cache("LL, behind I1 and D1", counts.i1_misses + d1, _ll_misses(counts)),
    )


def _cache(name: str, references: int, misses: int) -> CacheResult:
    return CacheResult(name=name, references=references, misses=misses, rate=_ratio(misses, references))


def _d1_misses(counts: CacheCounts) -> int:
    return counts.d1_read_misses + counts.d1_write_misses


def _ll_misses(counts: CacheCounts) -> int:
    return counts.ll_instruction_misses + counts.ll_read_misses + counts.ll_write_misses


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole
