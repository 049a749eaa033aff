"""The report as Markdown, at the level asked for."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.run import Run
from pyrometer.report.brief_report import build_brief_sections
from pyrometer.report.cells import hottest_amount
from pyrometer.report.comprehensive_report import build_comprehensive_sections
from pyrometer.report.deep_report import build_deep_sections
from pyrometer.report.document import Document, build_document
from pyrometer.report.levels import Level
from pyrometer.report.map_links import MapLinks
from pyrometer.report.markdown_blocks import (
    contents_lines,
    markdown_line,
    markdown_name,
    section_lines,
    unindented,
)
from pyrometer.report.pictures import Pictures
from pyrometer.report.safe_text import for_markdown
from pyrometer.report.scope_sections import mark
from pyrometer.report.standard_report import build_standard_sections
from pyrometer.report.targets_section import build_target_section
from pyrometer.report.torch_wording import describe_headline
from pyrometer.units import format_duration


def render_markdown(
    run: Run | Observed,
    *,
    level: Level = Level.DEEP,
    brief: bool = False,
    top: int = 20,
    by_thread: bool = False,
    flamegraph: str | None = None,
    roofline_file: str | None = None,
    on_map: MapLinks | None = None,
    findings: Findings | None = None,
    targets: Sequence[TargetResult] = (),
) -> str:
    """The report as CommonMark with GitHub's tables; ``top`` and ``by_thread`` as for the terminal.

    ``brief`` is short enough for a comment, whatever the level. ``flamegraph`` and ``roofline_file`` are
    where these pictures are, as seen from the report, ``on_map`` links functions to a code map.
    ``findings`` spares looking for them.
    """
    document = build_document(observe(run), top=top, by_thread=by_thread, findings=findings)
    pictures = Pictures(flamegraph=flamegraph, roofline=roofline_file, on_map=on_map)
    aims = build_target_section(targets)
    lines = list(_opening(document))
    if brief:
        lines += section_lines(build_brief_sections(document, targets))
    elif level is Level.STANDARD:
        lines += section_lines(build_standard_sections(document, targets))
    elif level is Level.DEEP:
        lines += section_lines(build_deep_sections(document, top=top, pictures=pictures, targets=aims))
    else:
        sections = tuple(build_comprehensive_sections(document, pictures=pictures, targets=aims))
        lines += ("", *contents_lines(section.title for section in sections))
        lines += section_lines(sections)
    return "\n".join(lines) + "\n"


def _opening(document: Document) -> Iterator[str]:
    yield f"# Pyrometer: {markdown_name(document.headline.program)}"
    yield ""
    yield _headline(document)
    yield ""
    yield markdown_line(document.findings.verdict)


def _headline(document: Document) -> str:
    headline = document.headline
    start = f"{unindented(markdown_name(headline.program))} {for_markdown(headline.ending)}"
    if document.torch is not None and document.torch.headline is not None:
        return f"{start}: {for_markdown(describe_headline(document.torch))}."
    # Only our own words are set bold: stars next to a blank in a name would stay stars.
    start += f", **{format_duration(headline.profiled_ns)} profiled**"
    if headline.hottest is None:
        return f"{start}, no scopes."
    hottest = markdown_name(headline.hottest.name) + mark(parallel=headline.hottest.parallel)
    return f"{start}, most self time: {hottest} ({hottest_amount(headline)})."
