"""Measured benchmarks as text: for a terminal, as Markdown, and as JSON."""

from collections.abc import Iterator, Sequence

import msgspec

from pyrometer.analysis.bench_figures import ENOUGH_PROCESSES, BenchmarkFigures, all_figures
from pyrometer.record.benchmarks import PEAK_RESOLUTION_BYTES, BenchmarkResults
from pyrometer.report.blocks import Block, Bullets, Code, Column, Lines, Pairs, Row, Section, Table, notes
from pyrometer.report.cells import COMPACT, SPACIOUS, UNKNOWN_CELL, Style, write_known
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.units import format_count

_NARROWEST = 40
_SHOWN_CHECKSUM = 8
_SHOWN_NAMES = 4
_NO_VERDICT = (
    "Another time all of these may lie elsewhere. Only pyrometer gate, which has two versions take turns, "
    "says whether something got slower."
)
_COLUMNS = (
    Column(heading="a call", spelled="a call, median"),
    Column(heading="99 %", spelled="99 % interval"),
    Column(heading="calls", spelled="timed calls", dropped=6),
    Column(heading="warm", spelled="processes warmed up", dropped=5),
    Column(heading="allocs", spelled="allocations a call", dropped=4),
    Column(heading="bytes", spelled="bytes allocated a call", dropped=1),
    Column(heading="peak", spelled="most held in a call", dropped=3),
    Column(heading="output", spelled="checksum of the output", left=True, dropped=2),
)


def render_bench_terminal(
    results: BenchmarkResults, *, width: int | None = None, color: bool = False, ascii_only: bool = False
) -> str:
    """The results as text of at most ``width`` columns."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    heading = page.paragraph(_headline(results), style="bold")
    return page.render(
        [heading, *(part for section in _sections(results, COMPACT) for part in page.section(section))]
    )


def render_bench_markdown(results: BenchmarkResults) -> str:
    """The results as a page of Markdown."""
    return sections_as_markdown(_headline(results), _sections(results, SPACIOUS))


def render_bench_json(results: BenchmarkResults) -> str:
    """Every value that was measured, and the figures they come to."""
    content = {**msgspec.to_builtins(results), "figures": msgspec.to_builtins(all_figures(results))}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _headline(results: BenchmarkResults) -> str:
    measured = format_count(len(results.benchmarks), "benchmark")
    return f"{measured}, each in {format_count(results.wanted_processes, 'fresh process', 'fresh processes')}"


def _sections(results: BenchmarkResults, style: Style) -> Iterator[Section]:
    figures = all_figures(results)
    yield Section(title="Benchmarks", blocks=(_table(figures, style),))
    remarks = tuple(_remarks(results, figures))
    if remarks:
        yield Section(title="Mind", blocks=(Bullets(lines=remarks),))
    failures = tuple(_failures(results))
    if failures:
        yield Section(title="Failed", blocks=failures)
    yield Section(
        title="How it was measured",
        blocks=(
            Pairs(rows=tuple(_facts(results))),
            *notes([_NO_VERDICT]),
        ),
    )


def _table(figures: Sequence[BenchmarkFigures], style: Style) -> Table:
    rows = tuple(
        Row(name=one.name, cells=_cells(one, style), mark=" failed" if one.failed else "") for one in figures
    )
    return Table(names="benchmark", columns=_COLUMNS, rows=rows, whole_names=True)


def _cells(one: BenchmarkFigures, style: Style) -> tuple[str, ...]:
    measured, memory = one.processes > 0, one.memory
    interval = UNKNOWN_CELL
    if one.low_ns is not None and one.high_ns is not None:
        interval = f"{style.duration(one.low_ns)}–{style.duration(one.high_ns)}"
    output = "differs" if one.agreement in {"differs", "by hash seed"} else UNKNOWN_CELL
    return (
        write_known(one.call_ns, style.duration),
        interval,
        style.count(one.calls) if measured else UNKNOWN_CELL,
        f"{one.warm_processes}/{one.processes}" if measured else UNKNOWN_CELL,
        *(
            [UNKNOWN_CELL] * 3
            if memory is None
            else (
                style.count(memory.allocations),
                style.size(memory.allocated_bytes),
                _peak(memory.peak_bytes, style),
            )
        ),
        output if one.checksum is None else one.checksum[:_SHOWN_CHECKSUM],
    )


def _peak(peak_bytes: int, style: Style) -> str:
    if peak_bytes < PEAK_RESOLUTION_BYTES:
        return f"<{style.size(PEAK_RESOLUTION_BYTES)}"
    return style.size(peak_bytes)


def _remarks(results: BenchmarkResults, figures: Sequence[BenchmarkFigures]) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for one in figures:
        for remark in _remarks_on(one):
            told.setdefault(remark, []).append(one.name)
    for remark, names in told.items():
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        yield f"{', '.join(names[:_SHOWN_NAMES])}{more}: {remark}"
    for reason in sorted({one.why_uncounted for one in results.benchmarks if one.why_uncounted is not None}):
        yield f"Allocations were not counted: {reason}."
    fewest = min((one.processes for one in figures if one.processes), default=ENOUGH_PROCESSES)
    if fewest < ENOUGH_PROCESSES:
        yield (
            f"Of {format_count(fewest, 'process', 'processes')} an interval is rough, or cannot be told: "
            f"processes differ from each other. Take --processes {ENOUGH_PROCESSES} or more."
        )


def _remarks_on(one: BenchmarkFigures) -> Iterator[str]:
    if one.agreement == "differs":
        yield (
            "returned different results in two processes with the same hash seed, although random, numpy and "
            "torch were seeded. What it does may differ as well."
        )
    elif one.agreement == "by hash seed":
        yield (
            "returned the same under one hash seed, and something else under another. It depends on the "
            "order of a set, or on hash()."
        )
    elif one.agreement == "unchecked":
        yield f"the output is not checkable: {one.why_unchecked}. Say with check= what to look at."
    if one.changes_arguments:
        yield (
            "changes its arguments: each call is given what the one before has left. If that is not meant, "
            "copy them inside."
        )
    if one.warm_processes < one.processes:
        yield (
            f"the end of the warm-up was not reached in {one.processes - one.warm_processes} of "
            f"{format_count(one.processes, 'process', 'processes')}. Calls had not settled, or are too "
            "long to wait for that."
        )


def _failures(results: BenchmarkResults) -> Iterator[Block]:
    for one in results.benchmarks:
        if one.failure is not None:
            first, *said = one.failure.splitlines() or [""]
            yield Lines(lines=(f"{one.benchmark.name}: {first}",))
            if said:
                yield Code(lines=tuple(said), language="text")


def _facts(results: BenchmarkResults) -> Iterator[tuple[str, str]]:
    yield "when", results.started_at
    yield "where", f"{results.cpu_model or 'a processor of unknown name'}, Python {results.python_version}"
    yield "threads", "as libraries choose" if results.threads is None else f"{results.threads} for libraries"
    yield (
        "a call",
        "the median over turns of a few milliseconds, after a warm-up; garbage is collected between",
    )
    yield "99 %", "of the medians that as many other processes would give lie within"
    yield "bytes", "one call's, counted once and not timed; without Python objects up to 512 bytes"
