"""All that a map says, worked out once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyrometer.analysis.codemap.cycles import Cycle, find_cycles, find_layers
from pyrometer.analysis.codemap.imports import (
    ON_IMPORT,
    RUNNING,
    Edge,
    Imports,
    edges_of_parts,
    find_imports,
    of_kinds,
)
from pyrometer.analysis.codemap.inventory import Part, Path, build_tree
from pyrometer.analysis.codemap.packages import Packages, find_packages
from pyrometer.record.code_map import CodeMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The parts at one depth, and how they depend on each other."""

    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    """All, those for type checkers too."""
    layers: tuple[tuple[str, ...], ...]
    """By what may be imported when a program runs, the lowest first."""

    @property
    def depended_on(self) -> list[tuple[str, int]]:
        """Each part by how many others import it, the most first."""
        return _counted(Counter(edge.imported for edge in self.edges), self.names)

    @property
    def depending(self) -> list[tuple[str, int]]:
        """Each part by how many others it imports, the most first."""
        return _counted(Counter(edge.importer for edge in self.edges), self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapResults:
    """What there is in the sources, and what depends on what."""

    code: CodeMap
    tree: Part
    imports: Imports
    edges: Mapping[Path, tuple[Edge, ...]]
    """In each part, those between the parts directly in it."""
    start: Part
    """Where there is first something to see: the root, or below it the only part that holds others."""
    top: Level
    """The parts directly below that."""
    modules: Level
    cycles: tuple[Cycle, ...]
    """Of modules, by imports that are carried out when they are imported."""
    packages: Packages

    @property
    def name(self) -> str:
        """What is mapped: the package in full, or the folder."""
        return self.code.package or self.code.name


def build_results(code: CodeMap) -> MapResults:
    """Everything from a map."""
    tree = build_tree(code)
    imports = find_imports(code)
    edges = edges_of_parts(imports.edges, code)
    modules = sorted({edge.importer for edge in imports.edges} | _modules(code))
    start = _start(tree, edges)
    return MapResults(
        code=code,
        tree=tree,
        imports=imports,
        edges=edges,
        start=start,
        top=level_below(start, edges),
        modules=level_of(tuple(modules), imports.edges),
        cycles=find_cycles(of_kinds(imports.edges, ON_IMPORT)),
        packages=find_packages(code, imports),
    )


def _start(tree: Part, edges: Mapping[Path, tuple[Edge, ...]]) -> Part:
    """A picture of one package and a few files beside it would show nothing of how it is built."""
    start = tree
    while not edges.get(start.path):
        inner = [part for part in start.parts.values() if part.parts]
        if len(inner) != 1:
            return tree
        start = inner[0]
    return start


def level_below(part: Part, edges: Mapping[Path, tuple[Edge, ...]]) -> Level:
    """The parts directly below one, and its own files."""
    own = () if part.own_name is None else (part.own_name,)
    return level_of((*part.parts, *own), edges.get(part.path, ()))


def level_of(names: tuple[str, ...], edges: tuple[Edge, ...]) -> Level:
    """A level of the map; parts without Python are in no layer."""
    linked = {name for edge in edges for name in (edge.importer, edge.imported)}
    return Level(
        names=names,
        edges=edges,
        layers=find_layers([name for name in names if name in linked], of_kinds(edges, RUNNING)),
    )


def _modules(code: CodeMap) -> set[str]:
    return {file.module for file in code.files if file.module is not None}


def _counted(counts: Counter[str], names: Sequence[str]) -> list[tuple[str, int]]:
    return sorted(((name, counts[name]) for name in names), key=lambda one: (-one[1], one[0]))
