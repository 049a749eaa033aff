"""The report for a terminal: no line is wider than asked for, no row is wrapped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.run import Run
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import Bullets, Pairs, Section
from pyrometer.report.cells import COMPACT, hottest_amount
from pyrometer.report.counters_section import build_counter_sections
from pyrometer.report.document import Document, Headline, build_document
from pyrometer.report.findings_section import MOST_ON_TERMINAL, build_findings_section
from pyrometer.report.garbage_section import build_garbage_section
from pyrometer.report.page import Page
from pyrometer.report.sample_sections import build_sample_sections
from pyrometer.report.scope_sections import build_scope_sections, mark
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.report.targets_section import build_target_section
from pyrometer.report.torch_hotspots import build_hotspot_section
from pyrometer.report.torch_sections import build_flow_sections, build_model_sections
from pyrometer.report.torch_steps import build_step_sections
from pyrometer.report.torch_wording import describe_headline
from pyrometer.units import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

_NARROWEST = 40
_SHORTEST_NAME = 16


def render_terminal(
    run: Run | Observed,
    *,
    top: int | None = None,
    by_thread: bool = False,
    functions: bool = False,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
    findings: Findings | None = None,
    targets: Sequence[TargetResult] = (),
) -> str:
    """The report as text of at most ``width`` columns (80 unless told, 40 at least).

    ``top`` is how many rows its tables have at most; without it the 20 largest scopes and fewer of
    what is seldom read. ``by_thread`` adds the ``top`` largest threads, each with its own tree;
    ``functions`` all that stack samples say: ``top`` functions, lines, and more call stacks.
    ``findings`` spares looking for them. Text from the run is shown, never interpreted: neither
    rich's markup nor escape sequences.
    """
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    most = _Most.of(top)
    document = build_document(observe(run), top=most.scopes, by_thread=by_thread, findings=findings)
    aims = build_target_section(targets)
    return page.render(_content(document, page, most=most, functions=functions, targets=aims))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """How many rows parts of the report have at most."""

    scopes: int = 20
    modules: int = 10
    placed: int = 3
    operators: int = 6
    allocations: int = 5
    lines: int = 3
    counted: int = 8
    findings: int = MOST_ON_TERMINAL
    functions: int = 20

    @classmethod
    def of(cls, top: int | None) -> "_Most":
        """So many of everything; fewer of what is seldom read, unless told."""
        if top is None:
            return cls()
        return cls(
            scopes=top,
            modules=top,
            placed=top,
            operators=top,
            allocations=top,
            lines=top,
            counted=top,
            findings=max(top, MOST_ON_TERMINAL),
            functions=top,
        )


def _content(
    document: Document, page: Page, *, most: _Most, functions: bool, targets: Section | None
) -> Iterator["RenderableType"]:
    yield page.paragraph(_headline(document, page), style="bold")
    yield page.paragraph(document.findings.verdict)
    for section in _sections(document, most=most, functions=functions, targets=targets):
        yield from page.section(section)


def _sections(
    document: Document, *, most: _Most, functions: bool, targets: Section | None
) -> Iterator[Section]:
    torch, found = document.torch, bool(document.findings.found)
    findings = build_findings_section(document.findings, most=most.findings)
    if torch is not None:
        yield from build_step_sections(torch)
    leads = torch is not None or found
    if leads:
        yield findings
    yield from () if targets is None else (targets,)
    if torch is not None:
        hotspots = build_hotspot_section(torch.hotspots, COMPACT, advised=not found)
        yield from () if hotspots is None else (hotspots,)
        yield from build_model_sections(
            torch, COMPACT, top=most.modules, top_placed=most.placed, top_operators=most.operators
        )
        yield from build_flow_sections(torch, document.memory, COMPACT)
    garbage = build_garbage_section(document.run, COMPACT)
    yield from () if garbage is None else (garbage,)
    if document.samples is not None:
        yield from build_sample_sections(document.samples, COMPACT, top=most.functions, whole=functions)
    yield from build_scope_sections(document, COMPACT, explained=not found)
    if not leads:
        yield findings
    yield from build_allocation_sections(
        document.allocations, COMPACT, top=most.allocations, top_lines=most.lines
    )
    yield from build_counter_sections(document.counters, COMPACT, top=most.counted)
    yield Section(title="The profiler's own cost", blocks=(Bullets(lines=document.cost),))
    yield Section(title="Losses", blocks=(Bullets(lines=document.losses),))
    yield Section(title="Machine and software", blocks=(Pairs(rows=document.facts),))


def _headline(document: Document, page: Page) -> str:
    headline = document.headline
    program = page.shorten(headline.program, page.width * 3 // 10)
    ending = page.shorten(headline.ending, page.width // 2)
    if document.torch is not None and document.torch.headline is not None:
        return f"{program} {ending}: {describe_headline(document.torch)}"
    return _scopes_headline(headline, f"{program} {ending}", page)


def _scopes_headline(headline: Headline, start: str, page: Page) -> str:
    start += f" · {format_duration(headline.profiled_ns)} profiled · "
    if headline.hottest is None:
        return f"{start}no scopes"
    start += "most self: "
    amount = hottest_amount(headline)
    room = max(page.width - len(page.clean(f"{start} {amount}")), _SHORTEST_NAME)
    hottest = page.shorten(headline.hottest.name, room, mark=mark(parallel=headline.hottest.parallel))
    return f"{start}{hottest} {amount}"
