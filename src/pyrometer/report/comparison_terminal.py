"""A comparison for a terminal: no line is wider than asked for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.analysis.comparison.model import Comparison
from pyrometer.analysis.identity import Level
from pyrometer.report.cells import COMPACT
from pyrometer.report.comparison_sections import (
    DEFAULT_TOP,
    Shape,
    build_opening,
    build_sections,
)
from pyrometer.report.comparison_summary import build_summary
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH

if TYPE_CHECKING:
    from rich.console import RenderableType

_NARROWEST = 40


def render_comparison_terminal(
    comparison: Comparison,
    *,
    top: int | None = DEFAULT_TOP,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The comparison as text of at most ``width`` columns (80 unless told, 40 at least).

    ``top`` is how many rows each table has at most, None: all; what is left out is summed up in a row.
    """
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    return page.render(_content(comparison, page, top))


def _content(comparison: Comparison, page: Page, top: int | None) -> Iterator["RenderableType"]:
    program = page.shorten(comparison.after.program, page.width - 20)
    yield page.paragraph(f"Comparison of {program}", style="bold")
    yield from page.section(build_opening(comparison))
    if comparison.comparability.level is Level.REFUSED:
        return
    yield from page.section(build_summary(comparison, COMPACT))
    for section in build_sections(comparison, Shape(style=COMPACT, top=top)):
        yield from page.section(section)
