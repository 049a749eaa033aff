"""What reports say of Python's garbage collector."""

import msgspec

from pyrometer.record.garbage import GarbageCollections, GarbageGeneration
from pyrometer.record.run import Run
from pyrometer.report.blocks import Lines, Table
from pyrometer.report.cells import COMPACT, SPACIOUS
from pyrometer.report.garbage_section import build_garbage_section
from tests.report.sample_runs import MS, S, run_of

NOTHING = GarbageGeneration()
COLLECTED = GarbageCollections(
    generations=(
        GarbageGeneration(collections=10, collected=500, timed_collections=10, total_ns=8 * MS, max_ns=MS),
        NOTHING,
        GarbageGeneration(collections=2, timed_collections=1, total_ns=12 * MS, max_ns=12 * MS),
    ),
    interval_pause_ns=(20 * MS,),
)


def run_with(garbage: GarbageCollections) -> Run:
    return msgspec.structs.replace(run_of(profiled_ns=S), garbage=garbage)


def test_where_room_is_short_it_is_told_in_a_line() -> None:
    section = build_garbage_section(run_with(COLLECTED), COMPACT)
    assert section is not None
    (block,) = section.blocks
    assert isinstance(block, Lines)
    assert block.lines == (
        "12 collections took 20.0 ms in all (2.0 % of the time profiled), the longest 12.0 ms.",
    )


def test_each_generation_has_a_row_and_what_was_not_timed_is_said() -> None:
    section = build_garbage_section(run_with(COLLECTED), SPACIOUS)
    assert section is not None
    table, missed = section.blocks[1:]
    assert isinstance(table, Table)
    assert [row.cells for row in table.rows] == [
        ("10", "8.00 ms", "1.00 ms", "500", "0"),
        ("0", "–", "–", "0", "0"),
        ("2", "12.0 ms", "12.0 ms", "0", "0"),
    ]
    assert isinstance(missed, Lines)
    assert missed.lines == ("1 collection could not be timed: the times are of the others.",)


def test_where_none_ran_that_is_said_and_where_none_was_watched_nothing() -> None:
    idle = GarbageCollections(generations=(NOTHING, NOTHING, NOTHING))
    section = build_garbage_section(run_with(idle), SPACIOUS)
    assert section is not None
    assert section.blocks == (Lines(lines=("No collection ran.",)),)
    assert build_garbage_section(run_of(profiled_ns=S), SPACIOUS) is None
