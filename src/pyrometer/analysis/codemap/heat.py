"""Where a run's time and memory went on the map: by part, file and function."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from pyrometer.analysis.code_origin import CodePlaces, Origin
from pyrometer.analysis.codemap.inventory import Path, PlacedFunction, part_of
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.analysis.frame_tree import are_outermost, read_stacks, with_children
from pyrometer.record.allocations import AllocationSites
from pyrometer.record.code_map import FileFacts, FunctionFacts
from pyrometer.record.run import Run
from pyrometer.record.samples import Function

_OURSELVES = "pyrometer"
"""In records of allocations, files of the profiler itself have no folder."""
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class Heat:
    """What a run spent in a place."""

    own_ns: int = 0
    """CPU time in its own code, and in native code that it called."""
    total_ns: int = 0
    """CPU time while it was on the stack."""
    allocated_bytes: int | None = None
    """By its own code, as estimated from samples; None where that was not looked at."""


class HeatBy(StrEnum):
    """What makes a place warm."""

    OWN = "own"
    TOTAL = "total"
    ALLOCATED = "allocated"

    def of(self, heat: Heat) -> int:
        """How much of it there was: nanoseconds, or bytes."""
        match self:
            case HeatBy.OWN:
                return heat.own_ns
            case HeatBy.TOTAL:
                return heat.total_ns
            case HeatBy.ALLOCATED:
                return heat.allocated_bytes or 0


LEAST_SHARE = 0.01
"""Of the CPU time: from there on a function is hot."""
LARGE_LINES = 50
COMPLEX_FROM = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HotFunction:
    """A function of the map that samples met."""

    place: PlacedFunction
    heat: Heat


@dataclass(frozen=True, slots=True, kw_only=True)
class MapHeat:
    """A run on a map."""

    program: str
    samples: int
    """Of stacks: what none of them met took little, if anything."""
    cpu_ns: int
    """Of the whole run, the parts that are not on the map too."""
    parts: Mapping[Path, Heat]
    """At every depth; own time of a part is that of all below it."""
    files: Mapping[str, Heat]
    functions: tuple[HotFunction, ...]
    """Most time of its own first."""
    untouched: tuple[FileFacts, ...]
    """Python files with functions that no sample met, the largest first."""
    has_allocations: bool

    @property
    def kinds(self) -> tuple[HeatBy, ...]:
        """What it can be told by."""
        return tuple(one for one in HeatBy if one is not HeatBy.ALLOCATED or self.has_allocations)

    @property
    def on_map_ns(self) -> int:
        """What of the CPU time was in code of the map."""
        return sum(heat.own_ns for heat in self.files.values())

    def hot(self) -> list[HotFunction]:
        """The functions in which at least ``LEAST_SHARE`` of the CPU time went."""
        return [one for one in self.functions if self.share(one.heat) >= LEAST_SHARE]

    def share(self, heat: Heat | None) -> float:
        """Of all CPU time, a place's own."""
        return 0.0 if heat is None or not self.cpu_ns else heat.own_ns / self.cpu_ns


def find_heat(results: MapResults, run: Run) -> MapHeat | None:
    """The run on the map; None where its stacks were not sampled."""
    if run.samples is None:
        return None
    stacks = read_stacks(run.program, run.samples)
    places = _PlacesOnMap(results, run)
    found = [places.find(stacks.samples.functions[node.function]) for node in stacks.samples.nodes]
    own = [parts.cpu_ns for parts in stacks.own]
    totals = with_children(stacks.parents, own)
    spent = _Spent(stacks.parents, own, totals)
    files = spent.by([None if one is None else one.file.path for one in found])
    functions = spent.by([None if one is None else one.key for one in found])
    by_part: dict[Path, Heat] = {}
    deepest = max((len(one.part) for one in found if one is not None), default=0)
    for depth in range(1, deepest + 1):
        by_part |= spent.by(
            [None if one is None or len(one.part) < depth else one.part[:depth] for one in found]
        )
    sites = None if run.allocations is None else run.allocations.sites
    if sites is not None:
        _add_allocations(sites, places, by_part, files, functions)
    known = {one.key: one for one in places.known}
    return MapHeat(
        program=run.program.name,
        samples=run.samples.samples,
        cpu_ns=sum(own),
        parts=by_part,
        files=files,
        functions=tuple(
            HotFunction(place=PlacedFunction(file=known[key].file, function=known[key].function), heat=heat)
            for key, heat in sorted(functions.items(), key=lambda one: -one[1].own_ns)
        ),
        untouched=_untouched(results.code.files, files),
        has_allocations=sites is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPlace:
    """Where on the map a function is."""

    where: str
    """``path:line``."""
    part: Path
    """The module it is in."""
    is_function: bool
    """Whether it is one of the map's own: the level of a module itself is none."""


def find_places(results: MapResults, run: Run) -> dict[tuple[str, int, str], MapPlace]:
    """Where on the map each sampled function is; by its file, first line and name there."""
    if run.samples is None:
        return {}
    places = _PlacesOnMap(results, run)
    found = {one: places.find(one) for one in run.samples.functions}
    return {
        (one.file, one.first_line, one.name): MapPlace(
            where=f"{place.file.path}:{place.function.line}",
            part=place.part,
            is_function=place.function in place.file.functions,
        )
        for one, place in found.items()
        if place is not None
    }


def _untouched(files: Iterable[FileFacts], met: Collection[str]) -> tuple[FileFacts, ...]:
    cold = [file for file in files if file.functions and file.path not in met]
    return tuple(sorted(cold, key=lambda file: (-file.lines.code, file.path)))


@dataclass(frozen=True, slots=True)
class _Spent:
    """CPU time of the nodes of a tree of stacks."""

    parents: Sequence[int]
    own: Sequence[int]
    totals: Sequence[int]

    def by(self, keys: Sequence[_Key | None]) -> dict[_Key, Heat]:
        """What was spent under each key; what calls itself is counted once. None is nobody."""
        spent: dict[_Key, Heat] = {}
        for key, own_ns, total_ns, is_outermost in zip(
            keys, self.own, self.totals, are_outermost(self.parents, keys), strict=True
        ):
            if key is not None:
                heat = spent.setdefault(key, Heat())
                heat.own_ns += own_ns
                heat.total_ns += total_ns if is_outermost else 0
        return spent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    file: FileFacts
    function: FunctionFacts
    part: Path

    @property
    def key(self) -> tuple[str, str, int]:
        return self.file.path, self.function.name, self.function.line


@dataclass(slots=True)
class _PlacesOnMap:
    """Functions that a run met, on the map: by their files, or by their modules where those lie elsewhere."""

    results: MapResults
    run: Run
    known: list[_Place] = field(default_factory=list)
    _by_path: dict[str, FileFacts] = field(default_factory=dict)
    _by_module: dict[str, FileFacts] = field(default_factory=dict)
    _found: dict[Function, _Place | None] = field(default_factory=dict)
    _code_places: CodePlaces = field(init=False)

    def __post_init__(self) -> None:
        self._code_places = CodePlaces(self.run.program)
        root = self.results.code.root.rstrip("/")
        for file in self.results.code.files:
            self._by_path[f"{root}/{file.path}"] = file
            if self.results.code.package == _OURSELVES:
                self._by_path[f"<{_OURSELVES}>/{file.path}"] = file
            if file.module is not None:
                self._by_module.setdefault(file.module, file)

    def find(self, function: Function) -> _Place | None:
        if function not in self._found:
            self._found[function] = self._look_up(function)
        return self._found[function]

    def _from_elsewhere(self, function: Function) -> FileFacts | None:
        """The same module of another copy: not one of Python's own that happens to have its name."""
        file = self._by_module.get(self._code_places.module(function.file))
        if file is None or self._code_places.origin(function.file) is Origin.STDLIB:
            return None
        return file if any(one.name == function.name for one in file.functions) else None

    def _look_up(self, function: Function) -> _Place | None:
        file = self._by_path.get(function.file) or self._from_elsewhere(function)
        if file is None:
            return None
        place = _Place(
            file=file, function=_function_in(file, function), part=part_of(file, self.results.code)
        )
        self.known.append(place)
        return place


def _function_in(file: FileFacts, function: Function) -> FunctionFacts:
    """The function as it was read; what has no name of its own is part of the function around it."""
    name = function.name
    while name.endswith(">") and ".<locals>." in name:
        name = name.rpartition(".<locals>.")[0]
    named = [one for one in file.functions if one.name == name]
    for one in named:
        if one.line <= function.first_line < one.line + one.lines:
            return one
    if named:
        return named[0]  # the file has changed since
    return FunctionFacts(name=name, line=function.first_line, lines=0, complexity=0)


def _add_allocations(
    sites: AllocationSites,
    places: _PlacesOnMap,
    by_part: dict[Path, Heat],
    files: dict[str, Heat],
    functions: dict[tuple[str, str, int], Heat],
) -> None:
    for heat in (*by_part.values(), *files.values(), *functions.values()):
        heat.allocated_bytes = 0
    for site in sites.sites:
        place = places.find(sites.functions[sites.nodes[site.stack].function])
        if place is None:
            continue
        size = site.samples * sites.sampled_bytes + site.large_bytes
        around = [by_part.setdefault(place.part[:depth], Heat()) for depth in range(1, len(place.part) + 1)]
        for heat in (
            *around,
            files.setdefault(place.file.path, Heat()),
            functions.setdefault(place.key, Heat()),
        ):
            heat.allocated_bytes = (heat.allocated_bytes or 0) + size
