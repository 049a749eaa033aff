"""What a run allocated, by operation and by line of the program."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyrometer.analysis.held_memory import HeldMemory, build_held_memory
from pyrometer.record.allocations import AllocationSites, PhaseAllocations, ProcessAllocations, SampledBytes
from pyrometer.record.run import Run
from pyrometer.record.values import ScopeNode, Strand
from pyrometer.stats.rates import per

MOST_LINES = 200
MOST_SPOTS = 200

_LIBRARY_FOLDERS = ("/site-packages/", "/dist-packages/", "/lib/python3.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSpot:
    """What one operation allocated by its own code: a phase, a module in it, or a scope."""

    kind: str
    """``phase``, ``module`` or ``scope``."""
    name: str
    bytes: int
    """Tensors and heap, without what is inside other operations of the same tree."""
    tensor_bytes: int
    allocations: int
    share: float
    """Of all that was allocated; the shares of phases and modules, or of scopes, never exceed 1."""
    bytes_per_allocation: float
    allocations_per_step: float | None
    """None without steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatingLine:
    """A line of the program, and what was allocated while it was the innermost line of the program's own.

    ``bytes`` is estimated from ``samples`` of small allocations, with a standard error of
    ``error_bytes``, and exact for the large ones.
    """

    function: str
    file: str
    line: int | None
    bytes: int
    error_bytes: int
    share: float
    """Of what all lines allocated, by the same estimate."""
    samples: int
    large_allocations: int
    mostly_in: str | None
    """The function of a library that asked for most of it; None where the line itself did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationResults:
    """The allocations of a run; ``bytes`` and ``allocations`` are tensors and heap together."""

    bytes: int
    allocations: int
    process: ProcessAllocations
    steps: int
    spots: tuple[AllocationSpot, ...]
    """Of phases and modules, most bytes first; then of scopes."""
    held: tuple[HeldMemory, ...]
    """The same operations, each with all that was called inside it; most bytes first."""
    lines: tuple[AllocatingLine, ...]
    sampled_bytes: int | None
    """One sample stands for so many; None where no lines were noted."""
    bytes_without_python: int
    """On threads that run no Python, as estimated."""
    bytes_missed: int
    """Whose lines could not be noted, as estimated."""


def build_allocations(run: Run) -> AllocationResults | None:
    """What a run says of its allocations; None where they were not counted."""
    process = run.allocations
    if process is None:
        return None
    sites = process.sites
    whole = process.heap_bytes + (process.tensor_bytes or 0)
    steps = 0 if run.torch is None else sum(group.steps for group in run.torch.groups)
    calls = () if run.torch is None else run.torch.calls
    return AllocationResults(
        bytes=whole,
        allocations=process.heap_allocations + (process.tensor_allocations or 0),
        process=process,
        steps=steps,
        spots=(
            *_spots(_own_parts(calls, ("phase", "module")), whole, steps),
            *_spots(_own_parts(run.strands, ("scope", "scope")), whole, steps),
        ),
        held=build_held_memory(run),
        lines=() if sites is None else _lines(sites),
        sampled_bytes=None if sites is None else sites.sampled_bytes,
        bytes_without_python=0 if sites is None else _estimate(sites, *_parts(sites.without_python)),
        bytes_missed=0 if sites is None else _estimate(sites, *_parts(sites.missed)),
    )


def phase_bytes(phase: PhaseAllocations) -> int:
    """Tensors and heap of a phase."""
    return phase.heap_bytes + (phase.tensor_bytes or 0)


# Operations.

_Own = tuple[str, str, int, int, int]
"""Kind, name, bytes, those of tensors, allocations."""


def _own_parts(strands: Sequence[Strand], kinds: tuple[str, str]) -> Iterator[_Own]:
    """What each node allocated without the nodes inside it; the kinds are those of top and inner nodes."""
    for strand in strands:
        own = [_figures(node) for node in strand.nodes]
        for node, figures in zip(strand.nodes, [*own], strict=True):
            if node.parent is not None:
                above = own[node.parent]
                own[node.parent] = (above[0] - figures[0], above[1] - figures[1], above[2] - figures[2])
        for node, (size, tensor_bytes, allocations) in zip(strand.nodes, own, strict=True):
            yield kinds[node.parent is not None], node.name, size, tensor_bytes, allocations


def _figures(node: ScopeNode) -> tuple[int, int, int]:
    tensor_bytes = node.allocated_bytes or 0
    return (
        tensor_bytes + (node.heap_bytes or 0),
        tensor_bytes,
        (node.allocations or 0) + (node.heap_allocations or 0),
    )


def _spots(parts: Iterable[_Own], whole: int, steps: int) -> tuple[AllocationSpot, ...]:
    gathered: dict[tuple[str, str], list[int]] = {}
    for kind, name, *figures in parts:
        total = gathered.setdefault((kind, name), [0, 0, 0])
        for index, figure in enumerate(figures):
            total[index] += figure
    spots = [
        AllocationSpot(
            kind=kind,
            name=name,
            bytes=size,
            tensor_bytes=tensor_bytes,
            allocations=allocations,
            share=min(size / whole, 1.0) if whole else 0.0,
            bytes_per_allocation=size / allocations,
            allocations_per_step=per(allocations, steps) if steps else None,
        )
        for (kind, name), (size, tensor_bytes, allocations) in gathered.items()
        if allocations > 0 and size > 0
    ]
    return tuple(sorted(spots, key=lambda spot: (-spot.bytes, spot.kind, spot.name))[:MOST_SPOTS])


# Lines.


@dataclass(slots=True)
class _LineTotal:
    samples: int = 0
    large_bytes: int = 0
    large_allocations: int = 0


def _lines(sites: AllocationSites) -> tuple[AllocatingLine, ...]:
    own_nodes = _own_nodes(sites)
    totals: dict[tuple[int, int | None], _LineTotal] = {}
    inside: dict[tuple[int, int | None], dict[int | None, int]] = {}
    for site in sites.sites:
        at = own_nodes[site.stack]
        place = sites.nodes[site.stack if at is None else at]
        key = (place.function, place.line)
        total = totals.setdefault(key, _LineTotal())
        total.samples += site.samples
        total.large_bytes += site.large_bytes
        total.large_allocations += site.large_allocations
        leaf = None if at is None or at == site.stack else sites.nodes[site.stack].function
        shares = inside.setdefault(key, {})
        shares[leaf] = shares.get(leaf, 0) + _estimate(sites, site.samples, site.large_bytes)
    whole = sum(_estimate(sites, total.samples, total.large_bytes) for total in totals.values())
    lines = [_line(sites, key, total, inside[key], whole) for key, total in totals.items()]
    return tuple(
        sorted(lines, key=lambda line: (-line.bytes, line.file, line.line or 0, line.function))[:MOST_LINES]
    )


def _line(
    sites: AllocationSites,
    key: tuple[int, int | None],
    total: _LineTotal,
    inside: dict[int | None, int],
    whole: int,
) -> AllocatingLine:
    function = sites.functions[key[0]]
    most = max(inside, key=lambda leaf: inside[leaf])
    size = _estimate(sites, total.samples, total.large_bytes)
    return AllocatingLine(
        function=function.name,
        file=function.file,
        line=key[1],
        bytes=size,
        error_bytes=round(sites.sampled_bytes * math.sqrt(total.samples)),
        share=size / whole if whole else 0.0,
        samples=total.samples,
        large_allocations=total.large_allocations,
        mostly_in=None if most is None else sites.functions[most].name,
    )


def _own_nodes(sites: AllocationSites) -> list[int | None]:
    """For each node the innermost one from there outwards that is in the program's own files."""
    found: list[int | None] = []
    is_own = [_is_own(function.file) for function in sites.functions]
    for index, node in enumerate(sites.nodes):
        if is_own[node.function]:
            found.append(index)
        else:
            found.append(None if node.parent is None else found[node.parent])
    return found


def _is_own(file: str) -> bool:
    return not file.startswith("<") and not any(folder in file for folder in _LIBRARY_FOLDERS)


def _estimate(sites: AllocationSites, samples: int, large_bytes: int) -> int:
    return samples * sites.sampled_bytes + large_bytes


def _parts(sampled: SampledBytes) -> tuple[int, int]:
    return sampled.samples, sampled.large_bytes
