"""Memory over time, and what allocates it."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.allocations import AllocatingLine, AllocationResults, AllocationSpot
from pyrometer.analysis.held_memory import HeldMemory
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.observed import Observed
from pyrometer.record.allocations import PhaseAllocations
from pyrometer.report import torch_wording
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import Pairs
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.page_views.blocks import Block, GridColumn, grid, heading, missing, pairs, plain, view
from pyrometer.report.page_views.garbage import garbage_blocks

_NO_SERIES = "Resident memory was not recorded over time: the program was too short, or it could not be read."
_NOT_COUNTED = (
    "Allocations were not counted: it was switched off (--no-memory), or cannot be done here; "
    "losses say so then."
)
_NO_LINES = "No lines that allocate were noted."


def build_memory_view(observed: Observed) -> Block:
    """Resident memory, then what was allocated."""
    blocks = [*_resident(observed)]
    allocations = observed.allocations
    if allocations is None:
        blocks += [heading("Allocations"), missing(_NOT_COUNTED, command="pyrometer run --memory PROGRAM.py")]
    else:
        blocks += _allocated(allocations)
    blocks += garbage_blocks(observed.run)
    return view("memory", "Memory", blocks)


def _resident(observed: Observed) -> Iterator[Block]:
    memory = observed.memory
    if memory is None or not memory.series:
        yield missing(_NO_SERIES)
    else:
        yield _chart(observed, memory)
    rows = [("host", torch_wording.describe_host_memory(memory))]
    if memory is not None and memory.series:
        rows.append(("growth", torch_wording.describe_growth(memory)))
    if observed.torch is not None:
        rows.append(("GPU", torch_wording.describe_gpu(observed.torch.gpu)))
        gpu = observed.torch.gpu
        if gpu is not None and gpu.phase_peak_bytes:
            rows.append(("GPU peaks", torch_wording.describe_phase_peaks(gpu)))
    yield pairs(rows)


def _chart(observed: Observed, memory: MemoryResult) -> Block:
    main = None if observed.torch is None else observed.torch.main
    return {
        "type": "line",
        "title": "Resident memory of the process",
        "unit": "bytes",
        "points": [list(point) for point in memory.series],
        "peak": memory.peak_bytes,
        "warmupNs": 0 if main is None else main.steady_from_ns,
        "summary": plain(f"Resident memory: {torch_wording.describe_host_memory(memory)}."),
    }


def _allocated(results: AllocationResults) -> Iterator[Block]:
    yield heading("Allocations")
    for section in build_allocation_sections(results, SPACIOUS, top=1):
        if section.title == "Allocations":
            yield from (pairs(block.rows) for block in section.blocks if isinstance(block, Pairs))
    if results.process.phases:
        yield _phases(results.process.phases)
    if results.spots:
        yield heading("Allocation hot spots")
        yield _spots(results.spots)
    if results.held:
        yield heading("Memory of modules and scopes")
        yield _held(results.held)
    yield heading("Lines that allocate")
    if results.lines:
        yield _lines(results.lines)
    else:
        yield missing(_NO_LINES, command="pyrometer run --memory PROGRAM.py")


def _phases(phases: Sequence[PhaseAllocations]) -> Block:
    return grid(
        "allocations-by-phase",
        heading="phase",
        names=[phase.name for phase in phases],
        columns=[
            GridColumn(heading="tensors", unit="bytes", values=[phase.tensor_bytes for phase in phases]),
            GridColumn(heading="other heap", unit="bytes", values=[phase.heap_bytes for phase in phases]),
            GridColumn(
                heading="allocations",
                unit="count",
                values=[phase.heap_allocations + (phase.tensor_allocations or 0) for phase in phases],
            ),
            GridColumn(heading="freed", unit="bytes", values=[phase.freed_bytes for phase in phases]),
            GridColumn(heading="kept", unit="bytes", values=[phase.kept_bytes for phase in phases]),
            GridColumn(
                heading="peak",
                spelled="the most that was live, over the start",
                unit="bytes",
                values=[phase.peak_bytes for phase in phases],
            ),
        ],
    )


def _spots(spots: Sequence[AllocationSpot]) -> Block:
    return grid(
        "allocation-spots",
        heading="operation",
        names=[spot.name for spot in spots],
        columns=[
            GridColumn(heading="what", unit="text", values=[spot.kind for spot in spots]),
            GridColumn(
                heading="%",
                spelled="% of all that was allocated",
                unit="share",
                values=[spot.share for spot in spots],
                bar=True,
            ),
            GridColumn(heading="bytes", unit="bytes", values=[spot.bytes for spot in spots]),
            GridColumn(heading="tensors", unit="bytes", values=[spot.tensor_bytes for spot in spots]),
            GridColumn(heading="allocations", unit="count", values=[spot.allocations for spot in spots]),
            GridColumn(
                heading="each",
                spelled="bytes each",
                unit="bytes",
                values=[spot.bytes_per_allocation for spot in spots],
            ),
            GridColumn(
                heading="a step",
                spelled="allocations a step",
                unit="figure",
                values=[spot.allocations_per_step for spot in spots],
            ),
        ],
        notes=[
            "By its own code, in all; what an operation calls has rows of its own.",
            "Scopes count the same bytes as phases and modules do, once more.",
        ],
    )


def _held(held: Sequence[HeldMemory]) -> Block:
    return grid(
        "memory-held",
        heading="operation",
        names=[each.name for each in held],
        columns=[
            GridColumn(heading="what", unit="text", values=[each.kind for each in held]),
            GridColumn(heading="calls", unit="count", values=[each.calls for each in held]),
            GridColumn(heading="allocated", unit="bytes", values=[each.bytes for each in held]),
            GridColumn(heading="allocations", unit="count", values=[each.allocations for each in held]),
            GridColumn(heading="freed", unit="bytes", values=[each.freed_bytes for each in held]),
            GridColumn(heading="kept", unit="bytes", values=[each.kept_bytes for each in held]),
            GridColumn(
                heading="peak",
                spelled="the most one call held at once",
                unit="bytes",
                values=[each.peak_bytes for each in held],
            ),
        ],
        notes=[
            "With all that is called inside, on the same thread. Kept: allocated less freed.",
            "Peak: the most one call held at once, over what its thread held when it began.",
        ],
    )


def _lines(lines: Sequence[AllocatingLine]) -> Block:
    return grid(
        "allocating-lines",
        heading="line",
        names=[f"{line.file.rpartition('/')[2]}:{'?' if line.line is None else line.line}" for line in lines],
        full_names=[f"{line.file}:{'?' if line.line is None else line.line}" for line in lines],
        columns=[
            GridColumn(heading="function", unit="text", values=[line.function for line in lines]),
            GridColumn(
                heading="%",
                spelled="% of what all lines allocated",
                unit="share",
                values=[line.share for line in lines],
                bar=True,
            ),
            GridColumn(heading="bytes", unit="bytes", values=[line.bytes for line in lines]),
            GridColumn(
                heading="±",
                spelled="standard error",
                unit="bytes",
                values=[line.error_bytes for line in lines],
            ),
            GridColumn(heading="samples", unit="count", values=[line.samples for line in lines]),
            GridColumn(
                heading="large",
                spelled="large allocations",
                unit="count",
                values=[line.large_allocations for line in lines],
            ),
            GridColumn(heading="mostly in", unit="text", values=[line.mostly_in for line in lines]),
        ],
        notes=["Estimated from samples of small allocations, and exact for those from 1 MiB on."],
    )
