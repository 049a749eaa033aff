"""A code map as JSON, for programs: all that was read, and what follows from it.

Paths are as seen from ``root``. The text is plain ASCII. Keys stay, new ones may come, and ``version``
rises when the meaning of one changes. Write the schema anew after a change:
``python -m pyrometer.report.codemap_json > docs/map.schema.json``.
"""

import json
import sys
from typing import Any, Literal

import msgspec

from pyrometer.analysis.codemap.cycles import Cycle
from pyrometer.analysis.codemap.heat import Heat, MapHeat
from pyrometer.analysis.codemap.imports import Edge
from pyrometer.analysis.codemap.inventory import Part, languages_of, largest_files
from pyrometer.analysis.codemap.packages import ExternalPackage
from pyrometer.analysis.codemap.results import Level, MapResults
from pyrometer.record.code_map import MAP_VERSION, CodeMap, Declaration, LineCounts
from pyrometer.report.comparison_json import Content

_LARGEST = 5


class PartContent(Content, frozen=True, kw_only=True):
    """A package, folder or module, with all that is below it."""

    name: str
    files: int
    lines: LineCounts
    functions: int
    classes: int
    complexity: int
    largest_files: tuple[str, ...]


class LanguageContent(Content, frozen=True, kw_only=True):
    """All files of a language."""

    language: str
    files: int
    lines: LineCounts


class EdgeContent(Content, frozen=True, kw_only=True):
    """One part imports another."""

    importer: str
    imported: str
    imports: int
    """How many statements."""
    kinds: dict[str, int]
    """Of them: ``always``, ``conditional``, ``lazy``, ``typing``."""


class CutContent(Content, frozen=True, kw_only=True):
    """An edge without which a circle would be cut, or be smaller."""

    importer: str
    imported: str
    sites: tuple[str, ...]
    """``path:line`` of each statement."""


class CycleContent(Content, frozen=True, kw_only=True):
    """Modules that import each other in a circle."""

    members: tuple[str, ...]
    shortest: tuple[str, ...]
    cut: tuple[CutContent, ...]
    is_least: bool


class LevelContent(Content, frozen=True, kw_only=True):
    """Parts at one depth."""

    edges: tuple[EdgeContent, ...]
    layers: tuple[tuple[str, ...], ...]
    """The lowest first."""
    depended_on: dict[str, int]
    """By how many others each is imported."""
    depending: dict[str, int]
    """How many others each imports."""


class PackageContent(Content, frozen=True, kw_only=True):
    """A package from elsewhere."""

    import_name: str
    distributions: tuple[str, ...]
    version: str | None
    imports: int
    files: int
    is_standard_library: bool
    is_for_types_only: bool
    is_undeclared: bool | None
    """None: not known."""
    declarations: tuple[Declaration, ...]


class DependenciesContent(Content, frozen=True, kw_only=True):
    """What depends on what."""

    start: str
    """Empty for the root; else the only part below it that holds others."""
    top: LevelContent
    """Parts directly below ``start``."""
    modules: LevelContent
    cycles: tuple[CycleContent, ...]
    packages: tuple[PackageContent, ...]
    unused: tuple[Declaration, ...]
    """Declared, and imported nowhere in the map."""
    perhaps_unused: tuple[Declaration, ...]
    """The same, but not installed here: they may be imported under another name."""
    without_source: dict[str, int]
    """Own modules that are imported, by how many statements, and have no source: compiled, or missing."""


class InventoryContent(Content, frozen=True, kw_only=True):
    """What there is."""

    languages: tuple[LanguageContent, ...]
    totals: PartContent
    modules: tuple[PartContent, ...]
    """Directly below the root, the largest first."""
    parts: tuple[PartContent, ...]
    """At every depth."""


class HeatContent(Content, frozen=True, kw_only=True):
    """What a run spent in a place."""

    name: str
    """A part or file; of a function ``path:line name``."""
    own_ns: int
    total_ns: int
    allocated_bytes: int | None


class RunHeatContent(Content, frozen=True, kw_only=True):
    """A run on the map."""

    program: str
    samples: int
    cpu_ns: int
    """Of the whole run."""
    parts: tuple[HeatContent, ...]
    files: tuple[HeatContent, ...]
    functions: tuple[HeatContent, ...]
    untouched: tuple[str, ...]
    """Files whose functions no sample met."""


class MapContent(CodeMap, frozen=True, kw_only=True, omit_defaults=False):
    """The file: the map as it was read, and what follows from it."""

    inventory: InventoryContent
    dependencies: DependenciesContent
    heat: RunHeatContent | None


def render_map_json(results: MapResults, heat: MapHeat | None = None) -> str:
    """Everything."""
    content = MapContent(
        **{name: getattr(results.code, name) for name in CodeMap.__struct_fields__},
        inventory=_inventory(results),
        dependencies=_dependencies(results),
        heat=None if heat is None else _run_heat(heat),
    )
    return _text(msgspec.to_builtins(content))


def render_inventory_json(results: MapResults) -> str:
    """``module_inventory.json``: what there is."""
    return _text({**_head(results, "pyrometer-inventory"), **msgspec.to_builtins(_inventory(results))})


def render_dependencies_json(results: MapResults) -> str:
    """``module_dependencies.json``: what depends on what."""
    return _text({**_head(results, "pyrometer-dependencies"), **msgspec.to_builtins(_dependencies(results))})


def _head(
    results: MapResults, form: Literal["pyrometer-inventory", "pyrometer-dependencies"]
) -> dict[str, Any]:
    code = results.code
    return {
        "format": form,
        "version": MAP_VERSION,
        "pyrometer_version": code.pyrometer_version,
        "name": code.name,
        "package": code.package,
        "root": code.root,
        "made_at": code.made_at,
    }


def _text(content: Any) -> str:
    # A map may have a million lines: the encoder that indents by itself is Python, and takes seconds.
    return msgspec.json.format(json.dumps(content, allow_nan=False), indent=1) + "\n"


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer code map, format version {MAP_VERSION}",
        **msgspec.json.schema(MapContent),
    }
    return json.dumps(schema, indent=2) + "\n"


def _inventory(results: MapResults) -> InventoryContent:
    tree = results.tree
    return InventoryContent(
        languages=tuple(
            LanguageContent(language=one.language, files=one.files, lines=one.lines)
            for one in languages_of(results.code.files)
        ),
        totals=_part(tree),
        modules=tuple(map(_part, tree.sorted_parts())),
        parts=tuple(_part(part) for part in tree.walk() if part.path),
    )


def _part(part: Part) -> PartContent:
    return PartContent(
        name=part.dotted,
        files=part.file_count,
        lines=part.lines,
        functions=part.function_count,
        classes=part.class_count,
        complexity=part.complexity,
        largest_files=tuple(file.path for file in largest_files(part, _LARGEST)),
    )


def _dependencies(results: MapResults) -> DependenciesContent:
    return DependenciesContent(
        start=results.start.dotted,
        top=_level(results.top),
        modules=_level(results.modules),
        cycles=tuple(map(_cycle, results.cycles)),
        packages=tuple(map(_package, results.packages.imported)),
        unused=results.packages.unused,
        perhaps_unused=results.packages.perhaps_unused,
        without_source={name: len(sites) for name, sites in results.imports.without_source.items()},
    )


def _level(level: Level) -> LevelContent:
    return LevelContent(
        edges=tuple(map(_edge, level.edges)),
        layers=level.layers,
        depended_on=dict(level.depended_on),
        depending=dict(level.depending),
    )


def _edge(edge: Edge) -> EdgeContent:
    kinds: dict[str, int] = {}
    for site in edge.sites:
        kinds[site.kind.value] = kinds.get(site.kind.value, 0) + 1
    return EdgeContent(
        importer=edge.importer, imported=edge.imported, imports=edge.weight, kinds=dict(sorted(kinds.items()))
    )


def _cycle(cycle: Cycle) -> CycleContent:
    return CycleContent(
        members=cycle.members,
        shortest=cycle.shortest,
        cut=tuple(
            CutContent(
                importer=edge.importer,
                imported=edge.imported,
                sites=tuple(f"{site.path}:{site.line}" for site in edge.sites),
            )
            for edge in cycle.cut
        ),
        is_least=cycle.is_least,
    )


def _package(one: ExternalPackage) -> PackageContent:
    return PackageContent(
        import_name=one.import_name,
        distributions=one.distributions,
        version=one.version,
        imports=len(one.sites),
        files=len({site.path for site in one.sites}),
        is_standard_library=one.is_standard_library,
        is_for_types_only=one.is_for_types_only,
        is_undeclared=one.is_undeclared,
        declarations=one.declarations,
    )


def _run_heat(heat: MapHeat) -> RunHeatContent:
    return RunHeatContent(
        program=heat.program,
        samples=heat.samples,
        cpu_ns=heat.cpu_ns,
        parts=tuple(_heat(".".join(path), its) for path, its in sorted(heat.parts.items())),
        files=tuple(_heat(path, its) for path, its in sorted(heat.files.items())),
        functions=tuple(
            _heat(f"{one.place.file.path}:{one.place.function.line} {one.place.function.name}", one.heat)
            for one in heat.functions
        ),
        untouched=tuple(file.path for file in heat.untouched),
    )


def _heat(name: str, heat: Heat) -> HeatContent:
    return HeatContent(
        name=name, own_ns=heat.own_ns, total_ns=heat.total_ns, allocated_bytes=heat.allocated_bytes
    )


if __name__ == "__main__":
    sys.stdout.write(schema_text())
