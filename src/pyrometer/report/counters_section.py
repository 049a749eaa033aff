"""What the processor or valgrind counted, as sections of a report."""

from collections.abc import Iterator

from pyrometer.analysis.counters import (
    CounterResult,
    CounterResults,
    CounterSet,
    FunctionResult,
    HardwareResult,
    SimulationResult,
)
from pyrometer.record.counters import SimulatedCache
from pyrometer.report.blocks import Column, Lines, Row, Section, Table, notes, without_unknown_columns
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.units import format_bytes, format_count, format_share

_PYTHON_IS_NOT_SEEN = (
    "Self counts. Functions in Python cannot be seen: to valgrind, all are the interpreter's."
)
_THREADS = "Misses are in % of references and branches. Threads that Python has not started have no rows."
_CHOOSES_KERNELS = "ATEN_CPU_CAPABILITY"
# Of instructions, and of misses of the last level: a function with less is not worth a line.
_LEAST_SHARE, _LEAST_LL_SHARE = 0.001, 0.01
_LIMITS = (
    "A model: no level between D1 and LL, no prefetching, no TLB, no other program; threads run one at a "
    "time; caches are empty when counting begins. Compare its counts with each other, not with times."
)


def build_counter_sections(results: CounterResults | None, style: Style, *, top: int) -> Iterator[Section]:
    """Nothing where nothing was asked for."""
    if results is None:
        return
    if results.hardware is not None:
        yield _hardware(results.hardware, style)
        if len(results.hardware.threads) > 1:
            yield _threads(results.hardware, style, top=top)
    if results.simulated is not None:
        yield _simulation(results.simulated, style)
        if any(map(_matters, results.simulated.functions)):
            yield _functions(results.simulated, style, top=top)


def _hardware(hardware: HardwareResult, style: Style) -> Section:
    title = "Hardware counters"
    if not hardware.process.are_known:
        reasons = _reasons(hardware.process.counters)
        advice = [hardware.advice] if hardware.advice else []
        return Section(title=title, blocks=(Lines(lines=("Unavailable.", *reasons, *advice)),))
    return Section(
        title=title, blocks=(_counter_table(hardware.process, style), *notes(_hardware_notes(hardware)))
    )


def _threads(hardware: HardwareResult, style: Style, *, top: int) -> Section:
    left_out = len(hardware.threads[top:])
    more = [f"{format_count(left_out, 'more thread')} not shown (see --top)."] if left_out else []
    return Section(
        title="Hardware counters, by thread",
        blocks=(_thread_table(hardware.threads[:top], style), *notes([_THREADS, *more])),
    )


def _counter_table(process: CounterSet, style: Style) -> Table:
    rows = tuple(
        Row(
            name=counter.name,
            cells=(
                write_known(counter.count, style.count),
                _describe_rate(process, counter),
                _describe_share(counter),
            ),
        )
        for counter in process.counters
        if counter.count is not None
    )
    columns = (
        Column(heading="count"),
        Column(heading="that is", left=True, dropped=1),
        Column(heading="scaled", left=True, dropped=2),
    )
    return without_unknown_columns(Table(names="counter", columns=columns, rows=rows), ("",))


def _describe_rate(process: CounterSet, counter: CounterResult) -> str:
    if counter.name == "instructions" and process.instructions_per_cycle is not None:
        return f"{process.instructions_per_cycle:.2f} a cycle"
    if counter.rate is not None and counter.rate_of is not None:
        return f"{format_share(counter.rate)} of {counter.rate_of}"
    return ""


def _describe_share(counter: CounterResult) -> str:
    if counter.counted_share is None or counter.counted_share >= 1:
        return ""
    return f"from {format_share(counter.counted_share)} of the time"


def _thread_table(threads: tuple[CounterSet, ...], style: Style) -> Table:
    columns = ("instructions", "cycles", "a cycle", "cache misses", "branch misses")
    return Table(
        names="thread",
        columns=tuple(Column(heading=heading) for heading in columns),
        rows=tuple(
            Row(
                name=thread.name or "",
                mark=f" ({thread.threads:,})" if thread.threads > 1 else "",
                cells=(
                    _count(thread["instructions"], style),
                    _count(thread["cycles"], style),
                    write_known(thread.instructions_per_cycle, "{:.2f}".format),
                    _rate(thread["cache misses"], style),
                    _rate(thread["branch misses"], style),
                ),
            )
            for thread in threads
        ),
    )


def _count(counter: CounterResult | None, style: Style) -> str:
    return UNKNOWN_CELL if counter is None else write_known(counter.count, style.count)


def _rate(counter: CounterResult | None, style: Style) -> str:
    return UNKNOWN_CELL if counter is None else write_known(counter.rate, style.share)


def _hardware_notes(hardware: HardwareResult) -> Iterator[str]:
    yield "Source: the processor's own counters, in the program and its libraries, not in the system."
    if hardware.with_forked_processes:
        yield "This kernel cannot tell threads from forked processes: those are counted too."
    missing = _reasons(counter for counter in hardware.process.counters if counter.count is None)
    yield from missing
    if missing and hardware.advice:
        yield hardware.advice


def _reasons(counters: "Iterator[CounterResult] | tuple[CounterResult, ...]") -> tuple[str, ...]:
    """Each reason once, with the counters it holds for."""
    named: dict[str, list[str]] = {}
    for counter in counters:
        named.setdefault(counter.reason or "unknown", []).append(counter.name)
    return tuple(f"{', '.join(names)}: {reason}." for reason, names in named.items())


def _simulation(result: SimulationResult, style: Style) -> Section:
    title = "Simulated caches"
    if result.instructions is None:
        return Section(title=title, blocks=(Lines(lines=(f"Unavailable: {result.reason}.",)),))
    counted = Lines(lines=(_describe_counted(result),))
    return Section(
        title=title, blocks=(counted, _cache_table(result, style), *notes(_simulation_notes(result)))
    )


def _functions(result: SimulationResult, style: Style, *, top: int) -> Section:
    shown = tuple(function for function in result.functions if _matters(function))[:top]
    left_out = result.function_count - len(shown)
    more = f"{format_count(left_out, 'more function')} not shown: see {result.file}"
    return Section(
        title="Functions in machine code, by simulated instructions",
        blocks=(
            _function_table(shown, style),
            *notes([_PYTHON_IS_NOT_SEEN, *([f"{more}."] if left_out > 0 else [])]),
        ),
    )


def _matters(function: FunctionResult) -> bool:
    return function.share >= _LEAST_SHARE or (function.ll_share or 0) >= _LEAST_LL_SHARE


def _describe_counted(result: SimulationResult) -> str:
    instructions = format_count(result.instructions or 0, "instruction")
    if result.scope is None:
        return f"The whole program, all threads: {instructions}."
    return f"Scope {result.scope!r}, on the threads that entered it: {instructions}."


def _cache_table(result: SimulationResult, style: Style) -> Table:
    return Table(
        names="cache",
        columns=(Column(heading="references"), Column(heading="misses"), Column(heading="%")),
        rows=tuple(
            Row(
                name=cache.name,
                cells=(
                    style.count(cache.references),
                    style.count(cache.misses),
                    write_known(cache.rate, style.share),
                ),
            )
            for cache in result.caches
        ),
    )


def _function_table(functions: tuple[FunctionResult, ...], style: Style) -> Table:
    columns = (
        Column(heading="library", left=True, widest=24, dropped=2),
        Column(heading="instr.", spelled="instructions"),
        Column(heading="%"),
        Column(heading="D1 misses"),
        Column(heading="D1 %", spelled="D1 % of references"),
        Column(heading="LL misses", dropped=1),
    )
    return Table(
        names="function",
        columns=columns,
        rows=tuple(
            Row(
                name=function.name,
                cells=(
                    function.library.rpartition("/")[2] or UNKNOWN_CELL,
                    style.count(function.instructions),
                    style.share(function.share),
                    style.count(function.d1_misses),
                    write_known(function.d1_rate, style.share),
                    style.count(function.ll_misses),
                ),
            )
            for function in functions
        ),
    )


def _simulation_notes(result: SimulationResult) -> Iterator[str]:
    yield f"Source: {result.source}. {'. '.join(map(_describe_cache, result.models))}."
    yield _LIMITS
    yield _describe_slowdown(result.slowdown)
    if result.environment:
        variables = " ".join(f"{name}={value}" for name, value in result.environment.items())
        kernels = " torch then uses other kernels than it would without."
        yield f"Set for this run: {variables}.{kernels if _CHOOSES_KERNELS in result.environment else ''}"


def _describe_cache(cache: SimulatedCache) -> str:
    shape = f"{cache.name} {format_bytes(cache.size_bytes)}, {cache.ways} ways, lines of {cache.line_bytes} B"
    origins = {"machine": "", "rounded": " (rounded to what can be simulated)"}
    return shape + origins.get(cache.origin, f" ({cache.origin})")


def _describe_slowdown(slowdown: float | None) -> str:
    if slowdown is None:
        return "Every time in this report is one under valgrind; how much slower that is was not measured."
    return (
        f"Every time in this report is one under valgrind: while it counted, a loop in Python took about "
        f"{slowdown:.0f} × as long. Numeric kernels may take more."
    )
