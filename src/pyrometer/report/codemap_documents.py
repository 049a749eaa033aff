"""The documents a code map makes, by format and under their default names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pyrometer.analysis.codemap.heat import MapHeat
from pyrometer.analysis.codemap.picture import draw_system_map
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.report.blocks import Code, Lines, Picture, Section
from pyrometer.report.codemap_graphs import render_dot, render_mermaid
from pyrometer.report.codemap_heat import describe_heat, heat_colors, heat_sections
from pyrometer.report.codemap_html import render_map_html
from pyrometer.report.codemap_json import render_dependencies_json, render_inventory_json, render_map_json
from pyrometer.report.codemap_sections import (
    DEFAULT_TOP,
    dependency_sections,
    inventory_sections,
    skipped_section,
    tree_section,
)
from pyrometer.report.codemap_svg import draw_map_svg
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.units import format_count

INVENTORY, DEPENDENCIES, SYSTEM_MAP = "module_inventory", "dependency_graph", "system_map"
DEPENDENCIES_FILE = "module_dependencies.json"
_NARROWEST = 40


class MapFormat(StrEnum):
    """The forms of a map."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    SVG = "svg"
    HTML = "html"
    MERMAID = "mermaid"
    DOT = "dot"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapReport:
    """A map, a run on it if there is one, and how many rows tables have; None: all."""

    results: MapResults
    heat: MapHeat | None = None
    top: int | None = DEFAULT_TOP

    @property
    def name(self) -> str:
        """What is mapped."""
        return self.results.code.package or self.results.code.name


def render_map_terminal(
    report: MapReport, *, width: int | None = None, color: bool = False, ascii_only: bool = False
) -> str:
    """The map as text of at most ``width`` columns."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    content = [page.paragraph(_headline(report), style="bold")]
    for section in _sections(report):
        content += page.section(section)
    return page.render(iter(content))


def _headline(report: MapReport) -> str:
    tree = report.results.tree
    files, lines = format_count(tree.file_count, "file"), format_count(tree.lines.code, "line")
    return f"Map of {report.name}: {files}, {lines} of code"


def _sections(report: MapReport) -> Iterator[Section]:
    results, top = report.results, report.top
    if report.heat is not None:
        yield from heat_sections(results, report.heat, top=top)
    yield from inventory_sections(results, top=top)
    yield from dependency_sections(results, top=top)
    yield skipped_section(results.code.skipped, results.code.files, top=top)


def render_map(report: MapReport, chosen: MapFormat) -> str:
    """The map in one file, or on the screen."""
    return _RENDERERS[chosen](report)


def _markdown(report: MapReport) -> str:
    diagram = Section(title="System map", blocks=(_diagram(report),))
    return sections_as_markdown(_headline(report), (diagram, *_sections(report)))


def render_map_svg(report: MapReport) -> str:
    """The system map, coloured by the run where there is one."""
    heat = report.heat
    title = f"System map of {report.name}"
    picture = draw_system_map(report.results)
    if heat is None:
        return draw_map_svg(picture, title=title)
    return draw_map_svg(
        picture,
        title=f"{title}, by the CPU time of {heat.program}",
        colors=heat_colors(report.results, heat),
        said=lambda name: describe_heat(heat, heat.parts.get((name,))),
    )


def _diagram(report: MapReport) -> Code:
    return Code(lines=tuple(render_mermaid(report.results.top).splitlines()), language="mermaid")


def map_documents(report: MapReport) -> dict[str, str]:
    """All documents by their default names."""
    results = report.results
    return {
        f"{INVENTORY}.md": sections_as_markdown(
            f"Module inventory of {report.name}",
            (
                *inventory_sections(results, top=report.top),
                tree_section(results),
                skipped_section(results.code.skipped, results.code.files, top=None),
            ),
        ),
        f"{DEPENDENCIES}.md": sections_as_markdown(
            f"Dependency graph of {report.name}",
            (
                Section(title="Diagram", blocks=(_diagram(report),)),
                *dependency_sections(results, top=report.top),
            ),
        ),
        f"{SYSTEM_MAP}.md": _system_map_page(report),
        f"{SYSTEM_MAP}.svg": render_map_svg(report),
        f"{INVENTORY}.json": render_inventory_json(results),
        DEPENDENCIES_FILE: render_dependencies_json(results),
        "code_map.json": render_map_json(results, report.heat),
        "code_map.html": render_map_html(results, report.heat),
    }


def _system_map_page(report: MapReport) -> str:
    said = "Each box is a module, as large as its code; lines go from who imports down to what is imported."
    sections = [
        Section(
            title="Picture",
            blocks=(
                Picture(text=f"System map of {report.name}", target=f"{SYSTEM_MAP}.svg"),
                Lines(lines=(said,)),
            ),
        )
    ]
    if report.heat is not None:
        sections += heat_sections(report.results, report.heat, top=report.top)
    return sections_as_markdown(f"System map of {report.name}", sections)


_RENDERERS: dict[MapFormat, Callable[[MapReport], str]] = {
    MapFormat.TERMINAL: render_map_terminal,
    MapFormat.MARKDOWN: _markdown,
    MapFormat.JSON: lambda report: render_map_json(report.results, report.heat),
    MapFormat.SVG: render_map_svg,
    MapFormat.HTML: lambda report: render_map_html(report.results, report.heat),
    MapFormat.MERMAID: lambda report: render_mermaid(report.results.top),
    MapFormat.DOT: lambda report: render_dot(report.results.top),
}
