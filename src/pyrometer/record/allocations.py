"""What the process allocated: torch's CPU tensors, the rest of the heap, and where in the program."""

from typing import Annotated

import msgspec

from pyrometer.record.samples import MAX_FUNCTIONS, MAX_STACK_NODES, Function, Row, StackNode
from pyrometer.record.values import Count, SignedCount, Value

MAX_SITES = 200_000
MAX_ALLOCATING_PHASES = 64


class SampledBytes(Row, frozen=True):
    """A part of what was allocated: a sample stands for ``sampled_bytes``, a large one for itself."""

    samples: Count
    large_bytes: Count
    large_allocations: Count


class AllocationSite(Row, frozen=True):
    """What was allocated by one stack, whose innermost frame is the node ``stack``."""

    stack: Count
    samples: Count
    large_bytes: Count
    large_allocations: Count


class AllocationSites(Value, frozen=True, kw_only=True):
    """Where in the program memory was allocated, by a fair choice of all allocations.

    Of every ``sampled_bytes`` one is chosen, in allocations below ``large_from_bytes``; larger ones
    are all there. So a site's bytes are ``samples * sampled_bytes + large_bytes``, give or take
    ``sampled_bytes`` times the square root of ``samples``.
    """

    sampled_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**40)]
    large_from_bytes: Count
    functions: Annotated[tuple[Function, ...], msgspec.Meta(max_length=MAX_FUNCTIONS)] = ()
    nodes: Annotated[tuple[StackNode, ...], msgspec.Meta(max_length=MAX_STACK_NODES)] = ()
    sites: Annotated[tuple[AllocationSite, ...], msgspec.Meta(max_length=MAX_SITES)] = ()
    without_python: SampledBytes = SampledBytes(0, 0, 0)
    """On threads that run no Python."""
    missed: SampledBytes = SampledBytes(0, 0, 0)
    """Whose stack was not noted: two threads at the same time, or no more room."""


class PhaseAllocations(Value, frozen=True, kw_only=True):
    """What threads allocated and freed while in one phase, over the whole run."""

    name: str
    tensor_bytes: Count | None = None
    tensor_allocations: Count | None = None
    heap_bytes: Count
    heap_allocations: Count
    freed_bytes: Count
    kept_bytes: SignedCount
    peak_bytes: Count
    """The most that was live at any time in the phase, as ``ProcessAllocations.peak_bytes``."""
    python_bytes: Count | None = None
    python_allocations: Count | None = None


class ProcessAllocations(Value, frozen=True, kw_only=True):
    """What all threads of the process allocated and freed while it was counted.

    Allocated bytes are those asked for. Freed, live and peak ones are as large as the blocks were, a
    little more; live and peak are over what was there when counting began, and exact to 64 KiB a
    thread. What was allocated before and freed since makes ``live_bytes`` smaller.
    """

    tensor_bytes: Count | None = None
    """Of torch's CPU tensors; None where they were not counted, or there is no torch."""
    tensor_allocations: Count | None = None
    heap_bytes: Count
    """Of all else that came from ``malloc`` and its like: numpy, large Python objects, libraries."""
    heap_allocations: Count
    freed_bytes: Count
    """Of both."""
    frees: Count
    mapped_bytes: Count | None = None
    """Mapped by libraries for the process alone, Python's arenas of small objects among it; like the
    five below in no other figure, and None in records from before it was counted."""
    maps: Count | None = None
    mapped_shared_bytes: Count | None = None
    """Files, and memory shared with other processes, as a loader's workers hand batches over in."""
    shared_maps: Count | None = None
    unmapped_bytes: Count | None = None
    """Of both, and of what was mapped before counting began."""
    unmaps: Count | None = None
    live_bytes: SignedCount
    peak_bytes: Count
    python_bytes: Count | None = None
    """Of Python objects up to 512 bytes; None where they were not counted."""
    python_allocations: Count | None = None
    phases: Annotated[tuple[PhaseAllocations, ...], msgspec.Meta(max_length=MAX_ALLOCATING_PHASES)] = ()
    sites: AllocationSites | None = None
