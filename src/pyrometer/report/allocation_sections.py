"""What was allocated, as sections of a report: in all, by phase, by operation and by line."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.allocations import (
    AllocatingLine,
    AllocationResults,
    AllocationSpot,
    phase_bytes,
)
from pyrometer.analysis.held_memory import HeldMemory
from pyrometer.record.allocations import PhaseAllocations, ProcessAllocations
from pyrometer.report.blocks import Block, Column, Pairs, Row, Section, Table, notes
from pyrometer.report.cells import Style, write_known
from pyrometer.report.safe_text import shorten_middle, visible
from pyrometer.report.torch_wording import format_figure
from pyrometer.units import format_bytes, format_count, format_share

_MOST_LINES = 10
_MOST_HELD = 10
_LONGEST_NAME = 60
_SMALLEST_SHARE = 0.001

_SPOTS = (
    "Bytes of tensors and of the rest of the heap by its own code, in all; what an operation calls has rows "
    "of its own."
)
_SPOTS_BRIEFLY = "By an operation's own code; what it calls has rows of its own."
_HELD = (
    "With all that is called inside, on the same thread. Kept: allocated less freed, in all. Peak: the most "
    "one call held at once, over what its thread held when it began."
)
_HELD_BRIEFLY = "With all that is called inside. Peak: the most one call held, over its beginning."
_TWICE = "Scopes count the same bytes as phases and modules do, once more."


def build_allocation_sections(
    results: AllocationResults | None, style: Style, *, top: int, top_lines: int | None = None
) -> Iterator[Section]:
    """Nothing where nothing was counted: that is a loss, or was asked for.

    ``top_lines`` is how many lines, and operations by what they held, there are at most.
    """
    if results is None:
        return
    most_held = min(top_lines or top, _MOST_HELD)
    blocks: list[Block] = [Pairs(rows=tuple(_totals(results)))]
    if results.process.phases:
        blocks.append(_phases(results.process.phases, style))
    yield Section(title="Allocations", blocks=tuple(blocks))
    spots = [spot for spot in results.spots if spot.share >= _SMALLEST_SHARE]
    if spots:
        yield Section(
            title="Allocation hot spots",
            blocks=(
                _spots(spots[:top], style),
                *notes([*_about(spots[:top], style), *_not_shown(len(spots[top:]), "operation")]),
            ),
        )
    held = [each for each in results.held if each.kind != "phase"]
    if held:
        yield Section(
            title="Memory of modules and scopes",
            blocks=(
                _held(held[:most_held], style),
                *notes(
                    [_HELD if style.wordy else _HELD_BRIEFLY, *_not_shown(len(held[most_held:]), "operation")]
                ),
            ),
        )
    if results.lines:
        yield _lines(results, style, top=min(top_lines or top, _MOST_LINES))


def _totals(results: AllocationResults) -> Iterator[tuple[str, str]]:
    process = results.process
    if process.tensor_bytes is not None and process.tensor_allocations is not None:
        yield "CPU tensors", _amount(process.tensor_bytes, process.tensor_allocations)
    yield "other heap", _amount(process.heap_bytes, process.heap_allocations)
    if process.python_bytes is not None and process.python_allocations is not None:
        yield "small objects", _amount(process.python_bytes, process.python_allocations)
    yield "freed", f"{format_bytes(process.freed_bytes)} in {format_count(process.frees, 'block')}"
    yield from _maps(process)
    grown = "more" if process.live_bytes >= 0 else "less"
    live = f"{format_bytes(abs(process.live_bytes))} {grown} than when counting began"
    yield "live", f"{live}, {format_bytes(process.peak_bytes)} at the peak"


def _maps(process: ProcessAllocations) -> Iterator[tuple[str, str]]:
    parts = (
        ("", process.mapped_bytes, process.maps, "map"),
        ("files and shared ", process.mapped_shared_bytes, process.shared_maps, "map"),
        ("unmapped ", process.unmapped_bytes, process.unmaps, "part"),
    )
    told = [
        f"{what}{format_bytes(size)} in {format_count(calls, noun)}"
        for what, size, calls, noun in parts
        if size is not None and calls
    ]
    if told:
        yield "mapped", "; ".join(told)


def _amount(size: int, allocations: int) -> str:
    return f"{format_bytes(size)} in {format_count(allocations, 'allocation')}"


def _phases(phases: Sequence[PhaseAllocations], style: Style) -> Table:
    columns = (
        Column(heading="tensors"),
        Column(heading="heap", spelled="other heap"),
        Column(heading="allocs", spelled="allocations", dropped=1),
        Column(heading="freed"),
        Column(heading="kept"),
        Column(heading="peak", spelled="peak, over the start"),
    )
    rows = tuple(
        Row(
            name=phase.name,
            cells=(
                write_known(phase.tensor_bytes, style.size),
                style.size(phase.heap_bytes),
                style.count(phase.heap_allocations + (phase.tensor_allocations or 0)),
                style.size(phase.freed_bytes),
                _change(phase.kept_bytes, style),
                style.size(phase.peak_bytes),
            ),
        )
        for phase in sorted(phases, key=phase_bytes, reverse=True)
    )
    return Table(names="phase", columns=columns, rows=rows)


def _change(size: int, style: Style) -> str:
    return f"{'-' if size < 0 else ''}{style.size(abs(size))}"


def _held(held: Sequence[HeldMemory], style: Style) -> Table:
    columns = (
        Column(heading="what", left=True),
        Column(heading="calls", dropped=2),
        Column(heading="allocated"),
        Column(heading="allocs", spelled="allocations", dropped=1),
        Column(heading="freed"),
        Column(heading="kept"),
        Column(heading="peak", spelled="peak of a call"),
    )
    rows = tuple(
        Row(
            name=each.name,
            cells=(
                each.kind,
                style.count(each.calls),
                style.size(each.bytes),
                style.count(each.allocations),
                style.size(each.freed_bytes),
                _change(each.kept_bytes, style),
                write_known(each.peak_bytes, style.size),
            ),
        )
        for each in held
    )
    return Table(names="operation", columns=columns, rows=rows)


def _about(spots: Sequence[AllocationSpot], style: Style) -> Iterator[str]:
    kinds = {spot.kind for spot in spots}
    yield _SPOTS if style.wordy else _SPOTS_BRIEFLY
    if "scope" in kinds and len(kinds) > 1:
        yield _TWICE


def _spots(spots: Sequence[AllocationSpot], style: Style) -> Table:
    columns = (
        Column(heading="what", left=True),
        Column(heading="bytes"),
        Column(heading="%", spelled="% of all"),
        Column(heading="allocs", spelled="allocations"),
        Column(heading="each", spelled="bytes each"),
        Column(heading="a step", spelled="allocations a step", dropped=1),
    )
    rows = tuple(
        Row(
            name=spot.name,
            cells=(
                spot.kind,
                style.size(spot.bytes),
                style.share(spot.share),
                style.count(spot.allocations),
                style.size(spot.bytes_per_allocation),
                write_known(spot.allocations_per_step, format_figure),
            ),
        )
        for spot in spots
    )
    return Table(names="operation", columns=columns, rows=rows)


def _lines(results: AllocationResults, style: Style, *, top: int) -> Section:
    columns = (
        Column(heading="bytes"),
        Column(heading="±", spelled="± (standard error)"),
        Column(heading="%"),
        *((Column(heading="samples"), Column(heading="large allocations")) if style.wordy else ()),
        Column(heading="mostly in", left=True, widest=None if style.wordy else 22, dropped=1),
    )
    rows = tuple(
        Row(
            name=_place(line, style),
            cells=(
                style.size(line.bytes),
                style.size(line.error_bytes),
                style.share(line.share),
                *((style.count(line.samples), style.count(line.large_allocations)) if style.wordy else ()),
                "" if line.mostly_in is None else shorten_middle(visible(line.mostly_in), _LONGEST_NAME),
            ),
        )
        for line in results.lines[:top]
    )
    table = Table(names="line", columns=columns, rows=rows)
    return Section(
        title="Lines that allocate",
        blocks=(
            table,
            *notes([*_how_sampled(results, style), *_not_shown(len(results.lines[top:]), "line")]),
        ),
    )


def _place(line: AllocatingLine, style: Style) -> str:
    file = line.file if style.wordy else line.file.rpartition("/")[2]
    return f"{file}:{'?' if line.line is None else line.line} {line.function}"


def _how_sampled(results: AllocationResults, style: Style) -> Iterator[str]:
    if results.sampled_bytes is None:
        return
    size = format_bytes(results.sampled_bytes)
    if style.wordy:
        large = "and every allocation from 1.00 MiB on"
        yield f"By a sample each {size} or so, {large}; of the program's own lines."
    else:
        yield f"The program's own lines, by a sample each {size} or so."
    for what, amount in (
        ("on threads that run no Python", results.bytes_without_python),
        ("whose line was not noted", results.bytes_missed),
    ):
        if amount and results.bytes:
            share = format_share(min(amount / results.bytes, 1))
            yield f"Besides about {format_bytes(amount)} ({share} of all) {what}."


def _not_shown(number: int, what: str) -> list[str]:
    return [f"{format_count(number, f'more {what}')} not shown (see --top)."] if number else []
