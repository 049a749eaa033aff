"""From what a recorder holds to values of the record."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyrometer.capture import processes
from pyrometer.capture.losses import failures
from pyrometer.record.run import Loss
from pyrometer.record.values import ScopeNode, Strand, StrandParent
from pyrometer.units import format_duration

if TYPE_CHECKING:
    from pyrometer._native.twin_tree import RawNode

_LOSS_TEXTS = {
    "places": 'scopes that found the call tree full (20,000 places, 1,000 of them kept for "(other)"): '
    'they stand together as "(other)"',
    "depth": 'scopes nested deeper than 1,000: the deeper ones stand together as "(other)"',
    "threads": "more threads than are kept apart: their scopes are not seen",
    "out_of_order": "scopes closed out of order: closed with the scope around them",
    "unmatched_exits": "scopes left that were not entered here: entered before recording began, "
    "or on another thread",
    "unseen_suspensions": "suspensions of generators or coroutines that could not be seen: they ran "
    "before recording began, or another tool holds the interpreter's hooks",
}

_TORCH_LOSS_TEXTS = {
    "places": 'calls that found the tree of modules full (20,000 places, 1,000 of them kept for "(other)"): '
    'they stand together as "(other)"',
    "depth": 'modules called deeper than 1,000 in each other: the deeper ones stand together as "(other)"',
    "threads": "more threads than are kept apart: their calls of modules are not seen",
}


def strands_in(snapshot: Mapping[str, Any]) -> tuple[Strand, ...]:
    """The call trees of a recorder's snapshot."""
    return tuple(
        Strand(
            thread_id=thread_id,
            thread_name=thread_name,
            parent=None if parent is None else StrandParent(strand=parent[0], node=parent[1]),
            threads=threads,
            nodes=tuple(map(_node, nodes)),
        )
        for thread_id, thread_name, parent, threads, nodes in snapshot["strands"]
    )


def losses_in(snapshot: Mapping[str, Any], torch_losses: Mapping[str, int] | None = None) -> tuple[Loss, ...]:
    """What the recorder could not keep, what our hooks failed at, and what nobody watches.

    ``torch_losses`` is what the recorder of PyTorch calls could not keep.
    """
    losses = [
        Loss(collector="scopes", reason=_LOSS_TEXTS[kind], count=count)
        for kind, count in snapshot["losses"].items()
        if count
    ]
    losses += [
        Loss(collector="torch", reason=_TORCH_LOSS_TEXTS[kind], count=count)
        for kind, count in (torch_losses or {}).items()
        if count and kind in _TORCH_LOSS_TEXTS
    ]
    losses += [
        Loss(collector=collector, reason=reason, count=count)
        for (collector, reason), count in failures.copy().items()
    ]
    return (*losses, *_child_losses())


def _child_losses() -> tuple[Loss, ...]:
    used_s = processes.children_cpu_s()
    if processes.forks:
        reason = "forked child processes, whose scopes are not seen"
        if used_s:
            reason += f"; finished children used {format_duration(used_s * 1e9)} of CPU time"
        return (Loss(collector="processes", reason=reason, count=processes.forks),)
    if used_s:
        reason = f"child processes used {format_duration(used_s * 1e9)} of CPU time, not seen"
        return (Loss(collector="processes", reason=reason, count=1),)
    return ()


def _node(raw: "RawNode") -> ScopeNode:
    parent, name, calls, open_calls, total_ns, min_ns, max_ns, suspended_ns, wall_ns, buckets = raw[:10]
    allocated_bytes, allocations, heap_bytes, heap_allocations, freed_bytes, kept_bytes = raw[10:16]
    python_bytes, python_allocations, peak_bytes = raw[16:]
    counts_heap, counts_objects = heap_allocations >= 0, python_allocations >= 0
    return ScopeNode(
        name=name,
        parent=None if parent < 0 else parent,
        calls=calls,
        open_calls=open_calls,
        total_ns=total_ns,
        min_ns=min_ns if calls else None,
        max_ns=max_ns if calls else None,
        suspended_ns=suspended_ns,
        wall_ns=None if wall_ns < 0 else wall_ns,
        allocated_bytes=None if allocations < 0 else allocated_bytes,
        allocations=None if allocations < 0 else allocations,
        heap_bytes=heap_bytes if counts_heap else None,
        heap_allocations=heap_allocations if counts_heap else None,
        freed_bytes=freed_bytes if counts_heap else None,
        kept_bytes=kept_bytes if counts_heap else None,
        peak_bytes=None if peak_bytes < 0 else peak_bytes,
        python_bytes=python_bytes if counts_objects else None,
        python_allocations=python_allocations if counts_objects else None,
        buckets=buckets,
    )
