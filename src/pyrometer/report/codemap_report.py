"""A code map for a terminal, and as Markdown: the inventory, and the dependency graph."""

from collections.abc import Iterator

from pyrometer.analysis.codemap.results import MapResults
from pyrometer.report.blocks import Section
from pyrometer.report.codemap_sections import (
    DEFAULT_TOP,
    dependency_sections,
    inventory_sections,
    skipped_section,
    tree_section,
)
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.units import format_count

_NARROWEST = 40


def render_map_terminal(
    results: MapResults,
    *,
    top: int | None = DEFAULT_TOP,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The map as text of at most ``width`` columns; ``top`` rows a table, None: all."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    content = [page.paragraph(_headline(results), style="bold")]
    for section in _sections(results, top=top):
        content += page.section(section)
    return page.render(iter(content))


def _headline(results: MapResults) -> str:
    tree, name = results.tree, results.code.package or results.code.name
    files, lines = format_count(tree.file_count, "file"), format_count(tree.lines.code, "line")
    return f"Map of {name}: {files}, {lines} of code"


def _sections(results: MapResults, *, top: int | None) -> Iterator[Section]:
    yield from inventory_sections(results, top=top)
    yield from dependency_sections(results, top=top)
    yield skipped_section(results.code.skipped, results.code.files, top=top)


def render_inventory_markdown(results: MapResults, *, top: int | None = DEFAULT_TOP) -> str:
    """``module_inventory.md``."""
    sections = (
        *inventory_sections(results, top=top),
        tree_section(results),
        skipped_section(results.code.skipped, results.code.files, top=None),
    )
    return sections_as_markdown(f"Module inventory of {results.code.package or results.code.name}", sections)


def render_dependencies_markdown(results: MapResults, *, top: int | None = DEFAULT_TOP) -> str:
    """``dependency_graph.md``."""
    sections = dependency_sections(results, top=top)
    return sections_as_markdown(f"Dependency graph of {results.code.package or results.code.name}", sections)
