"""What must hold in the allocations of a run beyond the types of their fields."""

from collections.abc import Iterator

from pyrometer.record.allocations import AllocationSites, PhaseAllocations, ProcessAllocations
from pyrometer.record.tree_validation import Problem


def allocations_problems(allocations: ProcessAllocations, place: str) -> Iterator[Problem]:
    """What contradicts itself in the figures, or points at what is not there."""
    yield from _pair_problems(allocations, place)
    maps = ("mapped_bytes", "maps", "mapped_shared_bytes", "shared_maps", "unmapped_bytes", "unmaps")
    if len({getattr(allocations, field) is None for field in maps}) > 1:
        yield Problem(place=place, text=f"{', '.join(maps[:-1])} and {maps[-1]} must be there all or none")
    for index, phase in enumerate(allocations.phases):
        yield from _pair_problems(phase, f"{place}.phases[{index}]")
    if allocations.sites is not None:
        yield from _sites_problems(allocations.sites, f"{place}.sites")


def _pair_problems(figures: ProcessAllocations | PhaseAllocations, place: str) -> Iterator[Problem]:
    for kind in ("tensor", "python"):
        size, count = getattr(figures, f"{kind}_bytes"), getattr(figures, f"{kind}_allocations")
        if (size is None) != (count is None):
            text = f"{kind}_bytes and {kind}_allocations must be there both or neither"
            yield Problem(place=place, text=text)


def _sites_problems(sites: AllocationSites, place: str) -> Iterator[Problem]:
    for index, node in enumerate(sites.nodes):
        inside = f"{place}.nodes[{index}]"
        if node.parent is not None and node.parent >= index:
            text = f"node {node.parent} cannot call node {index}: a parent comes earlier in the list"
            yield Problem(place=inside, text=text)
        if node.function >= len(sites.functions):
            text = f"there is no function {node.function}, only {len(sites.functions)}"
            yield Problem(place=inside, text=text)
    for index, site in enumerate(sites.sites):
        if site.stack >= len(sites.nodes):
            text = f"there is no node {site.stack}, only {len(sites.nodes)}"
            yield Problem(place=f"{place}.sites[{index}]", text=text)
