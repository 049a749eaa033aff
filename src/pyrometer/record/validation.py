"""What must hold in a run beyond the types of its fields.

Everything after the reader may rely on it: no analysis has to ask whether a parent exists
or whether the columns add up.
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyrometer.record.run import Run
from pyrometer.record.values import MAX_NODES, ScopeNode, Strand

_TIME_WITH_OFFSET = (
    r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3}|\.[0-9]{6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a run that cannot be: where, as a JSON path, and what."""

    place: str
    text: str


def first_problem(run: Run) -> Problem | None:
    """The first thing in a run that contradicts itself, or None."""
    return next(_problems(run), None)


def _problems(run: Run) -> Iterator[Problem]:
    if not _is_time_with_offset(run.started_at):
        yield Problem(
            place="$.started_at",
            text=f"{run.started_at[:40]!r} is not an ISO 8601 time with its offset to UTC",
        )
    nodes = sum(len(strand.nodes) for strand in run.strands)
    if nodes > MAX_NODES:
        yield Problem(place="$.strands", text=f"{nodes} nodes are more than the {MAX_NODES} a run may have")
    for index, strand in enumerate(run.strands):
        place = f"$.strands[{index}]"
        yield from _parent_problems(run, index, f"{place}.parent")
        for node_index, node in enumerate(strand.nodes):
            yield from _node_problems(node, node_index, f"{place}.nodes[{node_index}]")
        yield from _sum_problems(strand, place)


def _parent_problems(run: Run, index: int, place: str) -> Iterator[Problem]:
    parent = run.strands[index].parent
    if parent is None:
        return
    if parent.strand >= index:
        yield Problem(
            place=f"{place}.strand",
            text=f"strand {parent.strand} cannot start strand {index}: a parent comes earlier in the list",
        )
    elif parent.node >= len(run.strands[parent.strand].nodes):
        yield Problem(place=f"{place}.node", text=f"strand {parent.strand} has no node {parent.node}")


def _node_problems(node: ScopeNode, index: int, place: str) -> Iterator[Problem]:
    if node.parent is not None and node.parent >= index:
        yield Problem(
            place=f"{place}.parent",
            text=f"node {node.parent} cannot enclose node {index}: a parent comes earlier in the list",
        )
    counted = sum(calls for _, calls in node.buckets)
    if counted != node.calls:
        yield Problem(
            place=f"{place}.buckets", text=f"the buckets count {counted} calls, the node {node.calls}"
        )
    if any(first[0] >= second[0] for first, second in zip(node.buckets, node.buckets[1:], strict=False)):
        yield Problem(place=f"{place}.buckets", text="the buckets are not in ascending order, each one once")
    if (node.min_ns is not None, node.max_ns is not None) != (node.calls > 0, node.calls > 0):
        yield Problem(place=place, text="min_ns and max_ns must be there exactly when calls is not 0")
    elif node.min_ns is not None and node.max_ns is not None and node.min_ns > node.max_ns:
        yield Problem(place=f"{place}.min_ns", text=f"min_ns {node.min_ns} is more than max_ns {node.max_ns}")


def _sum_problems(strand: Strand, place: str) -> Iterator[Problem]:
    inside_ns = [0] * len(strand.nodes)
    for node in strand.nodes:
        if node.parent is not None:
            inside_ns[node.parent] += node.total_ns
    for index, (node, children_ns) in enumerate(zip(strand.nodes, inside_ns, strict=True)):
        if children_ns > node.total_ns:
            yield Problem(
                place=f"{place}.nodes[{index}].total_ns",
                text=f"the children's {children_ns} ns are more than the node's own {node.total_ns} ns",
            )


def _is_time_with_offset(text: str) -> bool:
    found = re.fullmatch(_TIME_WITH_OFFSET, text)
    if found is None:
        return False
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    return year > 0 and day <= calendar.monthrange(year, month)[1]
