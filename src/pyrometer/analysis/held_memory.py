"""What modules and scopes allocated, freed, kept and held at most, with all that was called inside them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrometer.analysis.call_tree import greatest, sum_known
from pyrometer.record.run import Run
from pyrometer.record.values import ScopeNode, Strand

MOST_OPERATIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMemory:
    """What the calls of one operation did to memory, on their own thread, with all that they called.

    A call inside one of the same name is in that one's figures already.
    """

    kind: str
    """``phase``, ``module`` or ``scope``."""
    name: str
    calls: int
    bytes: int
    """Allocated for tensors and on the rest of the heap."""
    tensor_bytes: int | None
    """None where tensors were not counted."""
    allocations: int
    freed_bytes: int
    kept_bytes: int
    """Allocated less freed, as large as the blocks are; negative when more was freed."""
    peak_bytes: int | None
    """The most one call held at once, over what its thread held when it began; None in older runs."""


def build_held_memory(run: Run) -> tuple[HeldMemory, ...]:
    """Of phases and modules, and of scopes; those with most bytes first."""
    gathered: dict[tuple[str, str], list[ScopeNode]] = {}
    calls = () if run.torch is None else run.torch.calls
    for strands, kinds in ((calls, ("phase", "module")), (run.strands, ("scope", "scope"))):
        for kind, node in _outermost(strands, kinds):
            gathered.setdefault((kind, node.name), []).append(node)
    held = [_held(kind, name, nodes) for (kind, name), nodes in gathered.items()]
    busy = [each for each in held if each.allocations or each.freed_bytes]
    return tuple(sorted(busy, key=lambda each: (-each.bytes, each.kind, each.name))[:MOST_OPERATIONS])


def _outermost(strands: Sequence[Strand], kinds: tuple[str, str]) -> Iterator[tuple[str, ScopeNode]]:
    """Nodes that were counted and are in none of the same kind and name; kinds: of top and inner nodes."""
    for strand in strands:
        inside: dict[int | None, list[int]] = {}
        for index, node in enumerate(strand.nodes):
            inside.setdefault(node.parent, []).append(index)
        opened: Counter[tuple[str, str]] = Counter()
        waiting: list[tuple[int, bool]] = [(index, False) for index in inside.get(None, ())]
        while waiting:
            index, is_left = waiting.pop()
            node = strand.nodes[index]
            kind = kinds[node.parent is not None]
            if is_left:
                opened[kind, node.name] -= 1
                continue
            if node.kept_bytes is not None and not opened[kind, node.name]:
                yield kind, node
            opened[kind, node.name] += 1
            waiting.append((index, True))
            waiting += [(child, False) for child in inside.get(index, ())]


def _held(kind: str, name: str, nodes: Sequence[ScopeNode]) -> HeldMemory:
    tensor_bytes = sum_known([node.allocated_bytes for node in nodes])
    peak_bytes = None
    for node in nodes:
        peak_bytes = greatest(peak_bytes, node.peak_bytes)
    return HeldMemory(
        kind=kind,
        name=name,
        calls=sum(node.calls + node.open_calls for node in nodes),
        bytes=sum(node.heap_bytes or 0 for node in nodes) + (tensor_bytes or 0),
        tensor_bytes=tensor_bytes,
        allocations=sum((node.heap_allocations or 0) + (node.allocations or 0) for node in nodes),
        freed_bytes=sum(node.freed_bytes or 0 for node in nodes),
        kept_bytes=sum(node.kept_bytes or 0 for node in nodes),
        peak_bytes=peak_bytes,
    )
