"""Python's garbage collector: how often it ran, and how long the program stood still."""

from collections.abc import Iterator

from pyrometer.record.garbage import GarbageCollections, GarbageGeneration
from pyrometer.record.run import Run
from pyrometer.report.blocks import Column, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL, Style
from pyrometer.units import format_count, format_duration, format_share

GARBAGE_TITLE = "Garbage collection"

_COLUMNS = (
    Column(heading="collections"),
    Column(heading="time", spelled="time in all"),
    Column(heading="longest"),
    Column(heading="collected", spelled="objects collected"),
    Column(heading="uncollectable", spelled="objects that cannot be"),
)


def build_garbage_section(run: Run, style: Style) -> Section | None:
    """All collections, by generation where there is room; None where they were not watched."""
    garbage = run.garbage
    if garbage is None:
        return None
    line = Lines(lines=(_in_a_line(garbage, run.profiled_ns),))
    if not style.wordy or not garbage.collections:
        return Section(title=GARBAGE_TITLE, blocks=(line,))
    rows = tuple(
        _row(f"generation {number}", generation, style)
        for number, generation in enumerate(garbage.generations)
    )
    table = Table(names="generation", columns=_COLUMNS, rows=rows)
    return Section(title=GARBAGE_TITLE, blocks=(line, table, *notes(_untimed(garbage))))


def _in_a_line(garbage: GarbageCollections, profiled_ns: int) -> str:
    if not garbage.collections:
        return "No collection ran."
    share = f" ({format_share(garbage.total_ns / profiled_ns)} of the time profiled)" if profiled_ns else ""
    return (
        f"{format_count(garbage.collections, 'collection')} took {format_duration(garbage.total_ns)} in all"
        f"{share}, the longest {format_duration(garbage.max_ns)}."
    )


def _row(name: str, generation: GarbageGeneration, style: Style) -> Row:
    timed = generation.timed_collections > 0
    return Row(
        name=name,
        cells=(
            style.count(generation.collections),
            style.duration(generation.total_ns) if timed else UNKNOWN_CELL,
            style.duration(generation.max_ns) if timed else UNKNOWN_CELL,
            style.count(generation.collected),
            style.count(generation.uncollectable),
        ),
    )


def _untimed(garbage: GarbageCollections) -> Iterator[str]:
    missed = garbage.collections - garbage.timed_collections
    if missed > 0:
        yield f"{format_count(missed, 'collection')} could not be timed: the times are of the others."
