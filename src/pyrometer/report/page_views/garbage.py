"""What Python's garbage collector took."""

from collections.abc import Iterator

from pyrometer.record.garbage import GarbageCollections
from pyrometer.record.run import Run
from pyrometer.report.page_views.blocks import Block, GridColumn, grid, heading, missing, text
from pyrometer.units import format_count, format_duration, format_share

_NOT_RECORDED = "Collections of garbage were not recorded; the run is older than that, or they could not be."


def garbage_blocks(run: Run) -> Iterator[Block]:
    """How often it ran, how long the program stood still, and when longest."""
    yield heading("Garbage collection")
    garbage = run.garbage
    if garbage is None:
        yield missing(_NOT_RECORDED, command="pyrometer run PROGRAM.py")
        return
    share = f", {format_share(garbage.total_ns / run.profiled_ns)} of the run" if run.profiled_ns else ""
    yield text(
        f"{format_count(garbage.collections, 'collection')} took {format_duration(garbage.total_ns)}{share}."
    )
    yield _generations(garbage)
    if garbage.longest:
        yield _pauses(garbage)


def _generations(garbage: GarbageCollections) -> Block:
    generations = garbage.generations
    return grid(
        "garbage",
        heading="generation",
        names=[str(number) for number in range(len(generations))],
        columns=[
            GridColumn(heading="collections", unit="count", values=[one.collections for one in generations]),
            GridColumn(heading="in all", unit="duration", values=[one.total_ns for one in generations]),
            GridColumn(heading="longest", unit="duration", values=[one.max_ns for one in generations]),
            GridColumn(
                heading="freed",
                spelled="objects found to be garbage, and freed",
                unit="count",
                values=[one.collected for one in generations],
            ),
            GridColumn(
                heading="not freed",
                spelled="objects found to be garbage that could not be freed",
                unit="count",
                values=[one.uncollectable for one in generations],
            ),
        ],
    )


def _pauses(garbage: GarbageCollections) -> Block:
    pauses = sorted(garbage.longest, key=lambda pause: -pause.duration_ns)
    return grid(
        "garbage-pauses",
        heading="longest pauses",
        names=[f"after {format_duration(pause.started_ns)}" for pause in pauses],
        columns=[
            GridColumn(heading="duration", unit="duration", values=[pause.duration_ns for pause in pauses]),
            GridColumn(heading="began", unit="duration", values=[pause.started_ns for pause in pauses]),
            GridColumn(heading="generation", unit="count", values=[pause.generation for pause in pauses]),
        ],
        sort=0,
    )
