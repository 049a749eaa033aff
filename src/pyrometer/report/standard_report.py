"""The standard report: one screen."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.hot_places import find_hot_places
from pyrometer.analysis.targets import TargetResult
from pyrometer.report.blocks import Block, Lines, Section, notes
from pyrometer.report.call_tree_section import build_call_tree_section
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.document import Document
from pyrometer.report.findings_section import FINDINGS_TITLE, findings_table
from pyrometer.report.findings_wording import NOTHING_FOUND, describe_not_shown
from pyrometer.report.hot_path_sections import build_ranked_section
from pyrometer.report.in_short import cost_line, generation_lines, loss_line, memory_line, target_lines
from pyrometer.report.scope_sections import build_tree_section
from pyrometer.report.torch_steps import build_step_sections

MOST_FINDINGS = 5
_MOST_RANKED = 5
_MOST_FRAMES = 12
_ENOUGH_SCOPES = 3
_MORE = "More: pyrometer report RUN --format markdown --level deep, or --level comprehensive."


def build_standard_sections(document: Document, targets: Sequence[TargetResult] = ()) -> Iterator[Section]:
    """Phases, findings, hot paths by time and allocation, the call tree, and the rest in a line each."""
    if document.torch is not None:
        main, *_ = build_step_sections(document.torch)
        yield main
    yield Section(title=FINDINGS_TITLE, blocks=tuple(short_findings(document)))
    hot = find_hot_places(document.observed, document.findings.found)
    yield build_ranked_section(document, hot, most=_MOST_RANKED)
    yield from _tree(document)
    lines = (
        *generation_lines(document),
        memory_line(document),
        *target_lines(targets),
        cost_line(document.run),
        loss_line(document),
        _MORE,
    )
    yield Section(title="In short", blocks=(Lines(lines=lines),))


def short_findings(document: Document) -> Iterator[Block]:
    """The first findings as a table, or that there are none."""
    findings = document.findings
    if not findings.found:
        yield Lines(lines=(NOTHING_FOUND,))
        return
    yield findings_table(findings.found[:MOST_FINDINGS], briefly=True)
    yield from notes(describe_not_shown(len(findings.found[MOST_FINDINGS:]) + findings.not_shown))


def _tree(document: Document) -> Iterator[Section]:
    """That of the scopes, unless samples have more to tell than those few."""
    sampled = document.samples
    tree = None if sampled is None else build_call_tree_section(sampled, most=_MOST_FRAMES)
    if document.scopes and (tree is None or len(document.scopes) >= _ENOUGH_SCOPES):
        yield build_tree_section(document, SPACIOUS)
    elif tree is not None:
        yield tree
