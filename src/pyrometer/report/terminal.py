"""The report for a terminal: no line is wider than asked for, no row is wrapped."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.record.run import Run
from pyrometer.report import wording
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import (
    Block,
    Bullets,
    Emphasis,
    Lines,
    Pairs,
    Row,
    Section,
    Table,
    columns_of,
    notes,
)
from pyrometer.report.cells import COMPACT, apart_cells, hottest_amount, scope_cells, tree_cells
from pyrometer.report.counters_section import build_counter_sections
from pyrometer.report.document import Document, Headline, build_document
from pyrometer.report.page import Page
from pyrometer.report.sample_sections import build_sample_sections
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.report.torch_sections import build_torch_sections
from pyrometer.report.torch_wording import describe_headline
from pyrometer.report.tree_rows import RowKind, TreeRow
from pyrometer.units import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

PARALLEL_MARK = " ∥"

_NARROWEST = 40
_SHORTEST_NAME = 16
# Dropped from the left when not even short names leave room for all columns.
_DROPPED_FIRST = ("allocated", "p50", "min", "avg", "p95", "max", "self")
_EMPHASES = {RowKind.SCOPE: Emphasis.NONE, RowKind.THREAD: Emphasis.STRONG}


def render_terminal(
    run: Run,
    *,
    top: int = 20,
    by_thread: bool = False,
    functions: bool = False,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The report as text of at most ``width`` columns (80 unless told, 40 at least).

    ``by_thread`` adds the ``top`` largest threads, each with its own tree; ``functions`` all that
    stack samples say: ``top`` functions, lines, and more call stacks. Text from the run is
    shown, never interpreted: neither rich's markup nor escape sequences.
    """
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    document = build_document(run, top=top, by_thread=by_thread)
    return page.render(_content(document, page, top=top, functions=functions))


def tree_table(rows: Sequence[TreeRow]) -> Table:
    """A tree of scopes with its figures."""
    cells = [tree_cells(row, COMPACT) for row in rows]
    return Table(
        columns=columns_of(cells[0]),
        rows=tuple(
            Row(
                name=row.name,
                guide=row.guide,
                mark=_mark(parallel=row.parallel),
                cells=tuple(row_cells.values()),
                emphasis=_EMPHASES.get(row.kind, Emphasis.FAINT),
            )
            for row, row_cells in zip(rows, cells, strict=True)
        ),
    )


def _content(document: Document, page: Page, *, top: int, functions: bool) -> Iterator["RenderableType"]:
    yield page.paragraph(_headline(document, page), style="bold")
    for section in _sections(document, top=top, functions=functions):
        yield from page.section(section)


def _sections(document: Document, *, top: int, functions: bool) -> Iterator[Section]:
    if document.torch is not None:
        yield from build_torch_sections(document.torch, document.memory, COMPACT, top=top)
    if document.samples is not None:
        yield from build_sample_sections(document.samples, COMPACT, top=top, whole=functions)
    if document.by_thread:
        yield _by_thread(document)
    if document.scopes:
        yield _scopes(document)
        yield Section(title="Tree, by total time", blocks=(tree_table(document.tree),))
        if document.apart:
            yield _apart(document)
        numbered = tuple(f"{number}. {line}" for number, line in enumerate(document.how_to_read, start=1))
        yield Section(title="How to read it", blocks=(Lines(lines=numbered),))
    elif document.asks_for_marks:
        yield Section(title="Scopes", blocks=(Lines(lines=_how_to_mark()),))
    yield from build_allocation_sections(document.allocations, COMPACT, top=top)
    yield from build_counter_sections(document.counters, COMPACT, top=top)
    yield Section(title="The profiler's own cost", blocks=(Bullets(lines=document.cost),))
    yield Section(title="Losses", blocks=(Bullets(lines=document.losses),))
    yield Section(title="Machine and software", blocks=(Pairs(rows=document.facts),))


def _how_to_mark() -> tuple[str, ...]:
    return (wording.NO_SCOPES, *(f"    {line}" for line in wording.HOW_TO_MARK))


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
    hottest = page.shorten(headline.hottest.name, room, mark=_mark(parallel=headline.hottest.parallel))
    return f"{start}{hottest} {amount}"


def _by_thread(document: Document) -> Section:
    profiled = format_duration(document.headline.profiled_ns)
    return Section(
        title=f"Threads, by total time (% of the {profiled} profiled)",
        blocks=(tree_table(document.by_thread), *notes(document.by_thread_notes)),
    )


def _scopes(document: Document) -> Section:
    profiled = format_duration(document.headline.profiled_ns)
    table = _scope_table(
        document.scopes,
        [scope_cells(document, scope, COMPACT) for scope in document.scopes],
        hottest=document.headline.hottest,
    )
    return Section(
        title=f"Scopes, by total time (% of the {profiled} profiled)",
        blocks=(table, *_not_shown(document.scopes_not_shown), *notes(document.marks)),
    )


def _apart(document: Document) -> Section:
    table = _scope_table(
        document.apart, [apart_cells(document, scope, COMPACT) for scope in document.apart], hottest=None
    )
    return Section(
        title="Shown apart",
        blocks=(table, *_not_shown(document.apart_not_shown), *notes(document.apart_notes)),
    )


def _scope_table(
    scopes: Sequence[ScopeSummary], cells: Sequence[dict[str, str]], *, hottest: ScopeSummary | None
) -> Table:
    return Table(
        columns=columns_of(cells[0], dropped_first=_DROPPED_FIRST),
        rows=tuple(
            Row(
                name=scope.name,
                mark=_mark(parallel=scope.parallel),
                cells=tuple(row.values()),
                emphasis=Emphasis.STRONG if scope is hottest else Emphasis.NONE,
            )
            for scope, row in zip(scopes, cells, strict=True)
        ),
    )


def _not_shown(count: int) -> tuple[Block, ...]:
    return notes([f"{count:,} more not shown (see --top)."] if count else [])


def _mark(*, parallel: bool) -> str:
    return PARALLEL_MARK if parallel else ""
