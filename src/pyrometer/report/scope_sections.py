"""The program's own scopes: as a table, as a tree, by thread, and what stands in no column."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.report import wording
from pyrometer.report.blocks import (
    Block,
    Code,
    Emphasis,
    Lines,
    Numbered,
    Row,
    Section,
    Table,
    columns_of,
    notes,
)
from pyrometer.report.cells import COMPACT, Style, apart_cells, scope_cells, tree_cells
from pyrometer.report.document import Document
from pyrometer.report.page import Page
from pyrometer.report.tree_rows import RowKind, TreeRow
from pyrometer.units import format_duration

PARALLEL_MARK = " ∥"

# Dropped from the left when not even short names leave room for all columns.
_DROPPED_FIRST = ("allocated", "p50", "min", "avg", "p95", "max", "self")
_EMPHASES = {RowKind.SCOPE: Emphasis.NONE, RowKind.THREAD: Emphasis.STRONG}
_TREE_WIDTH = 100
_HOW_TO_MARK = Section(
    title="Scopes",
    blocks=(Lines(lines=(wording.NO_SCOPES,)), Code(lines=wording.HOW_TO_MARK, language="python")),
)


def build_scope_sections(document: Document, style: Style, *, explained: bool = True) -> Iterator[Section]:
    """Threads if asked for, scopes, their tree, what is shown apart; without scopes how to mark some.

    ``explained``: with how to read it, which findings spare.
    """
    if document.by_thread:
        yield _by_thread(document, style)
    if document.scopes:
        yield _scopes(document, style)
        yield build_tree_section(document, style)
        if document.apart:
            yield _apart(document, style)
        if explained:
            yield Section(title="How to read it", blocks=(Numbered(lines=document.how_to_read),))
    elif document.asks_for_marks:
        yield _HOW_TO_MARK


def build_tree_section(document: Document, style: Style) -> Section:
    """The scopes where they were called."""
    title = "Tree" if style.wordy else "Tree, by total time"
    return Section(title=title, blocks=(_tree(document.tree, style),))


def tree_table(rows: Sequence[TreeRow]) -> Table:
    """A tree of scopes with its figures."""
    cells = [tree_cells(row, COMPACT) for row in rows]
    return Table(
        columns=columns_of(cells[0]),
        rows=tuple(
            Row(
                name=row.name,
                guide=row.guide,
                mark=mark(parallel=row.parallel),
                cells=tuple(row_cells.values()),
                emphasis=_EMPHASES.get(row.kind, Emphasis.FAINT),
            )
            for row, row_cells in zip(rows, cells, strict=True)
        ),
    )


def as_drawn(table: Table) -> Code:
    """A table as it looks on a terminal: a tree keeps its lines where tables cannot draw any."""
    page = Page(width=_TREE_WIDTH)
    return Code(lines=tuple(page.render(page.table(table)).splitlines()), language="text")


def mark(*, parallel: bool) -> str:
    """What stands behind the name of a scope that ran beside others."""
    return PARALLEL_MARK if parallel else ""


def _tree(rows: Sequence[TreeRow], style: Style) -> Block:
    table = tree_table(rows)
    return as_drawn(table) if style.wordy else table


def _titled(document: Document, style: Style, title: str, *blocks: Block) -> Section:
    """The section with what shares are of: in its title where room is short."""
    profiled = format_duration(document.headline.profiled_ns)
    if style.wordy:
        line = Lines(lines=(f"By total time; % is of the {profiled} profiled.",))
        return Section(title=title, blocks=(line, *blocks))
    return Section(title=f"{title}, by total time (% of the {profiled} profiled)", blocks=blocks)


def _by_thread(document: Document, style: Style) -> Section:
    tree = _tree(document.by_thread, style)
    return _titled(document, style, "Threads", tree, *notes(document.by_thread_notes))


def _scopes(document: Document, style: Style) -> Section:
    table = _scope_table(
        document.scopes,
        [scope_cells(document, scope, style) for scope in document.scopes],
        hottest=document.headline.hottest,
    )
    small_print = notes([*_not_shown(document.scopes_not_shown, style), *document.marks])
    return _titled(document, style, "Scopes", table, *small_print)


def _apart(document: Document, style: Style) -> Section:
    table = _scope_table(
        document.apart, [apart_cells(document, scope, style) for scope in document.apart], hottest=None
    )
    small_print = notes([*_not_shown(document.apart_not_shown, style), *document.apart_notes])
    return Section(title="Shown apart", blocks=(table, *small_print))


def _scope_table(
    scopes: Sequence[ScopeSummary], cells: Sequence[dict[str, str]], *, hottest: ScopeSummary | None
) -> Table:
    return Table(
        columns=columns_of(cells[0], dropped_first=_DROPPED_FIRST),
        rows=tuple(
            Row(
                name=scope.name,
                mark=mark(parallel=scope.parallel),
                cells=tuple(row.values()),
                emphasis=Emphasis.STRONG if scope is hottest else Emphasis.NONE,
            )
            for scope, row in zip(scopes, cells, strict=True)
        ),
    )


def _not_shown(count: int, style: Style) -> Iterator[str]:
    if count:
        yield f"{count:,} more not shown{'' if style.wordy else ' (see --top)'}."
