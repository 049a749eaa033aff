"""Two code maps side by side as JSON, for programs, and the JSON Schema of that.

What is not in one of the two maps is null there. The text is plain ASCII. Keys stay, new ones may come,
and ``version`` rises when the meaning of one changes. Write the schema anew after a change:
``python -m pyrometer.report.codemap_comparison_json > docs/map-comparison.schema.json``.
"""

import json
import sys
from collections.abc import Iterable
from typing import Literal

import msgspec

from pyrometer._version import __version__
from pyrometer.analysis.codemap.comparison import EdgeGrowth, MapComparison, PartGrowth
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.record.code_map import LineCounts
from pyrometer.report.comparison_json import Content

MAP_COMPARISON_VERSION: Literal[1] = 1


class MapSideContent(Content, frozen=True, kw_only=True):
    """One of the two maps, as a whole."""

    name: str
    root: str
    made_at: str
    files: int
    lines: LineCounts


class GrowthContent(Content, frozen=True, kw_only=True):
    """A part: lines of code, and how many files."""

    name: str
    code_before: int | None
    code_after: int | None
    files_before: int | None
    files_after: int | None


class EdgeGrowthContent(Content, frozen=True, kw_only=True):
    """By how many statements one part imports another."""

    importer: str
    imported: str
    imports_before: int | None
    imports_after: int | None


class FunctionGrowthContent(Content, frozen=True, kw_only=True):
    """A function in both whose complexity grew."""

    name: str
    path: str
    complexity_before: int | None
    complexity_after: int | None


class ChangedCycleContent(Content, frozen=True, kw_only=True):
    """A circle as it is now, and the modules that have come to it, or left it."""

    members: tuple[str, ...]
    come: tuple[str, ...]
    gone: tuple[str, ...]


class MapComparisonContent(Content, frozen=True, kw_only=True):
    """The file."""

    format: Literal["pyrometer-map-comparison"]
    version: Literal[1]
    pyrometer_version: str
    before: MapSideContent
    after: MapSideContent
    modules: tuple[GrowthContent, ...]
    """Directly below the root, most change of code first; those that stayed the same too."""
    files: tuple[GrowthContent, ...]
    """Modules and folders at every depth, by the files directly in them; those that changed."""
    edges: tuple[EdgeGrowthContent, ...]
    """Between parts directly below the root, those that changed."""
    module_edges: tuple[EdgeGrowthContent, ...]
    """Between modules, those that changed."""
    functions: tuple[FunctionGrowthContent, ...]
    new_cycles: tuple[tuple[str, ...], ...]
    gone_cycles: tuple[tuple[str, ...], ...]
    changed_cycles: tuple[ChangedCycleContent, ...]
    new_packages: tuple[str, ...]
    gone_packages: tuple[str, ...]


def render_map_comparison_json(comparison: MapComparison) -> str:
    """Everything that changed."""
    content = MapComparisonContent(
        format="pyrometer-map-comparison",
        version=MAP_COMPARISON_VERSION,
        pyrometer_version=__version__,
        before=_side(comparison.before),
        after=_side(comparison.after),
        modules=_growths(comparison.parts),
        files=_growths(comparison.files),
        edges=_edges(comparison.edges),
        module_edges=_edges(comparison.module_edges),
        functions=tuple(
            FunctionGrowthContent(
                name=one.name, path=one.path, complexity_before=one.before, complexity_after=one.after
            )
            for one in comparison.functions
        ),
        new_cycles=tuple(cycle.members for cycle in comparison.new_cycles),
        gone_cycles=tuple(cycle.members for cycle in comparison.gone_cycles),
        changed_cycles=tuple(
            ChangedCycleContent(members=cycle.members, come=come, gone=gone)
            for cycle, come, gone in comparison.changed_cycles
        ),
        new_packages=comparison.new_packages,
        gone_packages=comparison.gone_packages,
    )
    return json.dumps(msgspec.to_builtins(content), indent=1, allow_nan=False) + "\n"


def _side(results: MapResults) -> MapSideContent:
    return MapSideContent(
        name=results.name,
        root=results.code.root,
        made_at=results.code.made_at,
        files=results.tree.file_count,
        lines=results.tree.lines,
    )


def _growths(found: Iterable[PartGrowth]) -> tuple[GrowthContent, ...]:
    return tuple(
        GrowthContent(
            name=one.name,
            code_before=None if one.before is None else one.code[0],
            code_after=None if one.after is None else one.code[1],
            files_before=one.file_counts[0],
            files_after=one.file_counts[1],
        )
        for one in found
    )


def _edges(found: Iterable[EdgeGrowth]) -> tuple[EdgeGrowthContent, ...]:
    return tuple(
        EdgeGrowthContent(
            importer=one.importer,
            imported=one.imported,
            imports_before=one.before or None,
            imports_after=one.after or None,
        )
        for one in found
    )


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Comparison of two Pyrometer code maps, format version {MAP_COMPARISON_VERSION}",
        **msgspec.json.schema(MapComparisonContent),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
