"""A comparison as Markdown, fit for a pull request: the summary in sight, tables of parts folded.

Whether the runs may be compared is told before any figure, and all that differs in a folded section.
"""

from collections.abc import Iterator

from pyrometer.analysis.comparison.model import Comparison
from pyrometer.analysis.identity import Level
from pyrometer.report import comparison_words as words
from pyrometer.report.blocks import Section
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.comparison_sections import (
    DEFAULT_TOP,
    Shape,
    build_opening,
    build_sections,
)
from pyrometer.report.comparison_summary import build_summary
from pyrometer.report.markdown_blocks import markdown_line, markdown_name, section_lines
from pyrometer.report.safe_text import for_markdown


def render_comparison_markdown(comparison: Comparison, *, top: int | None = DEFAULT_TOP) -> str:
    """The comparison as CommonMark with GitHub's tables; ``top`` as for the terminal."""
    return "\n".join(_lines(comparison, top)) + "\n"


def _lines(comparison: Comparison, top: int | None) -> Iterator[str]:
    yield f"# Comparison of {markdown_name(comparison.after.program)}"
    opening = build_opening(comparison)
    if comparison.comparability.level is Level.REFUSED:
        yield from section_lines((opening,))
        return
    yield from _comparability(comparison)
    yield from section_lines((build_summary(comparison, SPACIOUS),))
    whole, *parts = build_sections(comparison, Shape(style=SPACIOUS, top=top))
    yield from section_lines((whole,))
    for section in parts:
        yield from _folded(section)
    yield from _folded(opening)


def _comparability(comparison: Comparison) -> Iterator[str]:
    yield ""
    yield f"**{for_markdown(words.describe_level(comparison))}**"
    differences = [markdown_line(line) for line in words.describe_weighty_differences(comparison)]
    if differences:
        yield ""
        yield from (f"- {line}" for line in differences)


def _folded(section: Section) -> Iterator[str]:
    """A section that opens when it is asked for; its title has none of the program's words."""
    _, _, _, *content = section_lines((section,))
    yield ""
    yield f"<details><summary>{for_markdown(section.title)}</summary>"
    yield ""
    yield from content
    yield ""
    yield "</details>"
