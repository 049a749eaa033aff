"""Two maps side by side: what grew, what is new, what is gone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyrometer.analysis.codemap.cycles import Cycle
from pyrometer.analysis.codemap.inventory import Part
from pyrometer.analysis.codemap.results import Level, MapResults, level_below


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGrowth:
    """A part in both maps; None: it is not in that one."""

    name: str
    before: Part | None
    after: Part | None

    of_own_files: bool = False
    """Whether it is told of its own files alone, without the parts below."""

    @property
    def code(self) -> tuple[int, int]:
        """Lines of code, before and after."""
        return self._code(self.before), self._code(self.after)

    @property
    def file_counts(self) -> tuple[int | None, int | None]:
        """How many files, before and after."""
        return self._files(self.before), self._files(self.after)

    @property
    def has_changed(self) -> bool:
        """Whether anything about its own files has."""
        return self.before is None or self.after is None or self.before.files != self.after.files

    def _files(self, part: Part | None) -> int | None:
        if part is None:
            return None
        return len(part.files) if self.of_own_files else part.file_count

    def _code(self, part: Part | None) -> int:
        if part is None:
            return 0
        return sum(file.lines.code for file in part.files) if self.of_own_files else part.lines.code

    @property
    def grown(self) -> int:
        """By how many lines of code."""
        before, after = self.code
        return after - before


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeGrowth:
    """An edge in both maps, by statements; 0: it is not in that one."""

    importer: str
    imported: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionGrowth:
    """A function whose complexity changed; None: it is not in that map."""

    name: str
    path: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapComparison:
    """What changed from one map to another."""

    before: MapResults
    after: MapResults
    parts: tuple[PartGrowth, ...]
    """Those directly below the root, most change of code first; those that stayed the same too."""
    files: tuple[PartGrowth, ...]
    """Modules and folders at every depth that hold files and changed, most change first."""
    edges: tuple[EdgeGrowth, ...]
    """Between parts directly below the root, those that changed: new ones first, then vanished ones."""
    module_edges: tuple[EdgeGrowth, ...]
    """Between modules, the same."""
    functions: tuple[FunctionGrowth, ...]
    """Whose complexity grew, most first."""
    new_cycles: tuple[Cycle, ...]
    """Of which no module was in a circle before."""
    gone_cycles: tuple[Cycle, ...]
    """Of which no module is in one now."""
    changed_cycles: tuple[tuple[Cycle, tuple[str, ...], tuple[str, ...]], ...]
    """Circles as they are now, with the modules that have come and those that have gone."""
    new_packages: tuple[str, ...]
    gone_packages: tuple[str, ...]


def compare_maps(before: MapResults, after: MapResults) -> MapComparison:
    """What changed."""
    packages = [
        {one.import_name for one in results.packages.imported if not one.is_standard_library}
        for results in (before, after)
    ]
    return MapComparison(
        before=before,
        after=after,
        parts=tuple(_growths(before.tree.parts.values(), after.tree.parts.values())),
        files=tuple(
            one
            for one in _growths(_with_files(before.tree), _with_files(after.tree), of_own_files=True)
            if one.has_changed
        ),
        edges=tuple(_edges(*_same_level(before, after))),
        module_edges=tuple(_edges(before.modules, after.modules)),
        functions=tuple(_functions(before, after)),
        new_cycles=tuple(one for one in after.cycles if not _sharing(one, before.cycles)),
        gone_cycles=tuple(one for one in before.cycles if not _sharing(one, after.cycles)),
        changed_cycles=tuple(_changed_cycles(before.cycles, after.cycles)),
        new_packages=tuple(sorted(packages[1] - packages[0])),
        gone_packages=tuple(sorted(packages[0] - packages[1])),
    )


def _same_level(before: MapResults, after: MapResults) -> tuple[Level, Level]:
    """Both as they start, or from the root where they start elsewhere."""
    if before.start.path == after.start.path:
        return before.top, after.top
    return level_below(before.tree, before.edges), level_below(after.tree, after.edges)


def _sharing(cycle: Cycle, others: Iterable[Cycle]) -> set[str]:
    """The modules of all circles that have one in common with this one."""
    members = set(cycle.members)
    return {name for other in others if members & set(other.members) for name in other.members}


def _changed_cycles(
    before: Iterable[Cycle], after: Iterable[Cycle]
) -> Iterator[tuple[Cycle, tuple[str, ...], tuple[str, ...]]]:
    for cycle in after:
        earlier = _sharing(cycle, before)
        if earlier and earlier != set(cycle.members):
            now = set(cycle.members)
            yield cycle, tuple(sorted(now - earlier)), tuple(sorted(earlier - now))


def _with_files(tree: Part) -> list[Part]:
    return [part for part in tree.walk() if part.path and part.files]


def _growths(
    before: Iterable[Part], after: Iterable[Part], *, of_own_files: bool = False
) -> list[PartGrowth]:
    sides = [{part.dotted: part for part in parts} for parts in (before, after)]
    names = dict.fromkeys((*sides[0], *sides[1]))
    found = [
        PartGrowth(name=name, before=sides[0].get(name), after=sides[1].get(name), of_own_files=of_own_files)
        for name in names
    ]
    return sorted(found, key=lambda one: (-abs(one.grown), one.name))


def _edges(before: Level, after: Level) -> list[EdgeGrowth]:
    sides = [
        {(edge.importer, edge.imported): edge.weight for edge in level.edges} for level in (before, after)
    ]
    found = [
        EdgeGrowth(importer=one, imported=other, before=weight[0], after=weight[1])
        for (one, other), weight in _both(sides[0], sides[1]).items()
        if weight[0] != weight[1]
    ]
    return sorted(
        found, key=lambda one: (bool(one.before), bool(one.after), -abs(one.after - one.before), one.importer)
    )


def _both(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], tuple[int, int]]:
    return {key: (before.get(key, 0), after.get(key, 0)) for key in dict.fromkeys((*before, *after))}


def _functions(before: MapResults, after: MapResults) -> list[FunctionGrowth]:
    sides = [
        {
            (file.module or file.path, one.name): (file.path, one.complexity)
            for file in results.code.files
            for one in file.functions
        }
        for results in (before, after)
    ]
    grown = [
        FunctionGrowth(
            name=key[1], path=path, before=sides[0][key][1] if key in sides[0] else None, after=complexity
        )
        for key, (path, complexity) in sides[1].items()
        if key in sides[0] and complexity > sides[0][key][1]
    ]
    return sorted(grown, key=lambda one: ((one.before or 0) - (one.after or 0), one.path, one.name))
