"""Counts what the process allocates while it is recorded, and notes where in the program.

The counting itself is the compiled core's; here it is switched on and off with the recording, and
becomes a value of the record.
"""

from __future__ import annotations

import os
from operator import add

from pyrometer._native import allocations as core
from pyrometer.capture.losses import note_loss

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from pyrometer.record.allocations import AllocationSites, PhaseAllocations, ProcessAllocations

SAMPLED_BYTES = 512 * 1_024
"""One stack is noted for about so many bytes."""
LARGE_FROM_BYTES = 1_024 * 1_024
"""From here on the core notes the stack of every allocation: allocation_sites.h."""

_OURS = __file__.rpartition(f"{os.sep}capture{os.sep}")[0]

_wanted = True
_wants_objects = False
_starts = 0
_counts = False
_counts_objects = False
_notes_sites = False


def configure(*, counted: bool = True, python_objects: bool = False) -> None:
    """Say what is to be counted, before the recording begins."""
    global _wanted, _wants_objects
    _wanted, _wants_objects = counted, python_objects


def start() -> None:
    """Begin to count. Starts nest: it takes as many stops to end it."""
    global _starts, _counts, _counts_objects, _notes_sites
    _starts += 1
    if not _wanted or _starts > 1:
        core.count_in_libraries()
        return
    reason = core.count_allocations()
    _counts = reason is None
    if reason is not None:
        note_loss("memory", f"allocations are not counted: {reason}")
        return
    reason = core.note_allocation_sites(SAMPLED_BYTES)
    _notes_sites = reason is None
    if reason is not None:
        note_loss("memory", f"lines that allocate are not noted: {reason}")
    if _wants_objects:
        reason = _why_objects_are_in_the_heap() or core.count_objects()
        _counts_objects = reason is None
        if reason is not None:
            note_loss("memory", f"small Python objects are not counted: {reason}")


def stop() -> None:
    """Undo one ``start()``; what was counted stays."""
    global _starts
    if _starts == 0:
        return
    _starts -= 1
    if _starts > 0 or not _counts:
        return
    if _counts_objects:
        core.stop_counting_objects()
    if _notes_sites:
        core.note_allocation_sites(0)
    core.stop_counting_allocations()


def reset() -> None:
    """Forget what was counted so far."""
    core.reset_allocations()


def look_for_libraries() -> None:
    """Count in libraries that were loaded since the last look, too; next to nothing where there are none."""
    if _counts and _starts > 0:
        core.count_in_libraries()


def counts_tensors() -> bool:
    """Whether torch's CPU tensors are counted; if not although they should be, that is a loss."""
    if not _wanted:
        return False
    look_for_libraries()
    reason = core.why_tensors_are_uncounted()
    if reason is not None and _counts:
        note_loss("memory", f"allocations of tensors are not counted: {reason}")
    return reason is None


def peak_live_bytes() -> int | None:
    """The most that was allocated at once so far; None where that is not counted."""
    return max(core.process_allocations()["peak"], 0) if _counts else None


def record(
    phases: Sequence[str] = (), by_phase: Iterable[Sequence[int]] = (), *, with_tensors: bool = False
) -> ProcessAllocations | None:
    """What was counted so far; None where nothing was. ``by_phase``: what a watch says of its ``phases``."""
    if not _counts:
        return None
    from pyrometer.record.allocations import ProcessAllocations

    seen = core.process_allocations()
    for library in seen["uncounted"]:
        _note_uncounted(library)
    return ProcessAllocations(
        tensor_bytes=seen["tensors"][0] if with_tensors else None,
        tensor_allocations=seen["tensors"][1] if with_tensors else None,
        heap_bytes=seen["heap"][0],
        heap_allocations=seen["heap"][1],
        freed_bytes=seen["freed"][0],
        frees=seen["freed"][1],
        mapped_bytes=seen["mapped"][0],
        maps=seen["mapped"][1],
        mapped_shared_bytes=seen["mapped_shared"][0],
        shared_maps=seen["mapped_shared"][1],
        unmapped_bytes=seen["unmapped"][0],
        unmaps=seen["unmapped"][1],
        live_bytes=seen["live"],
        peak_bytes=max(seen["peak"], 0),
        python_bytes=seen["python"][0] if _counts_objects else None,
        python_allocations=seen["python"][1] if _counts_objects else None,
        phases=tuple(_phases(phases, by_phase, with_tensors=with_tensors)),
        sites=_sites(core.allocation_sites_seen()) if _notes_sites else None,
    )


_noted: set[str] = set()


def _note_uncounted(library: str) -> None:
    if library not in _noted:
        _noted.add(library)
        note_loss("memory", f"not counted: what {library} allocates by an allocator of its own or another's")


def _phases(
    names: Sequence[str], by_phase: Iterable[Sequence[int]], *, with_tensors: bool
) -> Iterable[PhaseAllocations]:
    from pyrometer.record.allocations import PhaseAllocations

    for name, row in zip(names, by_phase, strict=False):
        tensor_bytes, tensors, heap_bytes, heap, freed, kept, peak, object_bytes, objects = row
        if any(row[:5]) or objects:
            yield PhaseAllocations(
                name=name,
                tensor_bytes=tensor_bytes if with_tensors else None,
                tensor_allocations=tensors if with_tensors else None,
                heap_bytes=heap_bytes,
                heap_allocations=heap,
                freed_bytes=freed,
                kept_bytes=kept,
                peak_bytes=max(peak, 0),
                python_bytes=object_bytes if _counts_objects else None,
                python_allocations=objects if _counts_objects else None,
            )


def _sites(seen: dict[str, Any] | None) -> AllocationSites | None:
    from pyrometer.record.allocations import AllocationSite, AllocationSites, SampledBytes
    from pyrometer.record.samples import Function, StackNode

    if seen is None:
        return None
    # Taken out, so that they are gone before the same is made anew.
    nodes, sites = _without_importing(seen["functions"], seen.pop("nodes"), seen.pop("sites"))
    return AllocationSites(
        sampled_bytes=SAMPLED_BYTES,
        large_from_bytes=LARGE_FROM_BYTES,
        functions=tuple(Function(name, _shown(file), max(line, 0)) for name, file, line in seen["functions"]),
        nodes=tuple(
            StackNode(None if parent < 0 else parent, function, None if line < 0 else line)
            for parent, function, line in nodes
        ),
        sites=tuple(AllocationSite(stack, *figures) for stack, figures in sites.items()),
        without_python=SampledBytes(*seen["elsewhere"]),
        missed=SampledBytes(*seen["missed"]),
    )


def _without_importing(
    functions: Iterable[tuple[str, str, int]],
    nodes: Iterable[tuple[int, int, int]],
    seen_sites: Iterable[Sequence[int]],
) -> tuple[list[tuple[int, int, int]], dict[int, list[int]]]:
    """The nodes without those of Python's import system, and what each that is left has allocated.

    An import goes through six functions of it: what those allocate is the importing line's.
    """
    importing = [file.startswith("<frozen importlib") for _, file, _ in functions]
    kept: list[tuple[int, int, int]] = []
    places: list[int] = []
    for parent, function, line in nodes:
        above = -1 if parent < 0 else places[parent]
        if importing[function] and above >= 0:
            places.append(above)
        else:
            places.append(len(kept))
            kept.append((above, function, line))
    sites: dict[int, list[int]] = {}
    for stack, *figures in seen_sites:
        total = sites.setdefault(places[stack], [0, 0, 0])
        total[:] = map(add, total, figures)
    return kept, sites


def _shown(file: str) -> str:
    """Our own files are told from the program's."""
    return f"<pyrometer>{file[len(_OURS) :]}" if file.startswith(_OURS + os.sep) else file


def _why_objects_are_in_the_heap() -> str | None:
    chosen = os.environ.get("PYTHONMALLOC", "")
    if chosen.startswith("malloc"):
        return f"PYTHONMALLOC={chosen} makes all of them come from malloc, and so be counted there"
    return None
