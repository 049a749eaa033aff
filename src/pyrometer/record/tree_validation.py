"""What must hold in call trees and histograms, wherever they stand in a run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyrometer.record.values import MAX_NODES, ScopeNode, Strand

_SET_TOGETHER = (
    ("allocated_bytes", "allocations"),
    ("heap_bytes", "heap_allocations", "freed_bytes", "kept_bytes"),
    ("python_bytes", "python_allocations"),
)
_SUMS = {
    "total_ns": "ns",
    "allocated_bytes": "bytes",
    "allocations": "allocations",
    "heap_bytes": "bytes",
    "heap_allocations": "allocations",
    "freed_bytes": "bytes",
    "python_bytes": "bytes",
    "python_allocations": "allocations",
}
"""Of which a node has at least what its children have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a run that cannot be: where, as a JSON path, and what."""

    place: str
    text: str


def strand_problems(strands: Sequence[Strand], place: str) -> Iterator[Problem]:
    """What contradicts itself in these call trees."""
    nodes = sum(len(strand.nodes) for strand in strands)
    if nodes > MAX_NODES:
        yield Problem(place=place, text=f"{nodes} nodes are more than the {MAX_NODES} a run may have")
    for index, strand in enumerate(strands):
        inside = f"{place}[{index}]"
        yield from _parent_problems(strands, index, f"{inside}.parent")
        for node_index, node in enumerate(strand.nodes):
            yield from _node_problems(node, node_index, f"{inside}.nodes[{node_index}]")
        yield from _sum_problems(strand, inside)


def bucket_problems(
    buckets: Sequence[tuple[int, int]], count: int, place: str, *, unit: str, holder: str
) -> Iterator[Problem]:
    """What is wrong with a histogram that must hold ``count`` durations."""
    counted = sum(calls for _, calls in buckets)
    if counted != count:
        yield Problem(place=place, text=f"the buckets count {counted} {unit}, the {holder} {count}")
    if any(first[0] >= second[0] for first, second in pairwise(buckets)):
        yield Problem(place=place, text="the buckets are not in ascending order, each one once")


def _parent_problems(strands: Sequence[Strand], index: int, place: str) -> Iterator[Problem]:
    parent = strands[index].parent
    if parent is None:
        return
    if parent.strand >= index:
        yield Problem(
            place=f"{place}.strand",
            text=f"strand {parent.strand} cannot start strand {index}: a parent comes earlier in the list",
        )
    elif parent.node >= len(strands[parent.strand].nodes):
        yield Problem(place=f"{place}.node", text=f"strand {parent.strand} has no node {parent.node}")


def _node_problems(node: ScopeNode, index: int, place: str) -> Iterator[Problem]:
    if node.parent is not None and node.parent >= index:
        yield Problem(
            place=f"{place}.parent",
            text=f"node {node.parent} cannot enclose node {index}: a parent comes earlier in the list",
        )
    yield from bucket_problems(node.buckets, node.calls, f"{place}.buckets", unit="calls", holder="node")
    if (node.min_ns is not None, node.max_ns is not None) != (node.calls > 0, node.calls > 0):
        yield Problem(place=place, text="min_ns and max_ns must be there exactly when calls is not 0")
    elif node.min_ns is not None and node.max_ns is not None and node.min_ns > node.max_ns:
        yield Problem(place=f"{place}.min_ns", text=f"min_ns {node.min_ns} is more than max_ns {node.max_ns}")
    for fields in _SET_TOGETHER:
        if len({getattr(node, field) is None for field in fields}) > 1:
            together = f"{', '.join(fields[:-1])} and {fields[-1]}"
            all_or_none = "both or neither" if len(fields) == 2 else "all or none"
            yield Problem(place=place, text=f"{together} must be there {all_or_none}")
    if node.peak_bytes is not None and node.kept_bytes is None:
        yield Problem(place=place, text="peak_bytes cannot be there without kept_bytes")


def _sum_problems(strand: Strand, place: str) -> Iterator[Problem]:
    for field, unit in _SUMS.items():
        own = [getattr(node, field) or 0 for node in strand.nodes]
        inside = [0] * len(own)
        for node, figure in zip(strand.nodes, own, strict=True):
            if node.parent is not None:
                inside[node.parent] += figure
        for index, (figure, children) in enumerate(zip(own, inside, strict=True)):
            if children > figure:
                yield Problem(
                    place=f"{place}.nodes[{index}].{field}",
                    text=f"the children's {children} {unit} are more than the node's own {figure} {unit}",
                )
