"""The report for a terminal: no line is wider than asked for, no row is wrapped."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyrometer.record.run import Run
from pyrometer.report import wording
from pyrometer.report.cells import COMPACT, apart_cells, hottest_amount, scope_cells, tree_cells
from pyrometer.report.document import Document, Headline, build_document
from pyrometer.report.safe_text import for_terminal, shorten_middle, visible
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.report.tree_rows import RowKind, TreeRow
from pyrometer.units import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

PARALLEL_MARK = " ∥"

_NARROWEST = 40
_SHORTEST_NAME = 16
# Dropped from the left when not even short names leave room for all columns.
_DROPPED_FIRST = ("p50", "min", "avg", "p95", "max", "self")
_ROW_STYLES = {RowKind.SCOPE: "", RowKind.THREAD: "bold"}
_RULE_BELOW_HEADINGS = "    \n    \n {0}{0} \n    \n    \n    \n    \n    \n"


def render_terminal(
    run: Run,
    *,
    top: int = 20,
    by_thread: bool = False,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The report as text of at most ``width`` columns (80 unless told, 40 at least).

    ``by_thread`` adds the ``top`` largest threads, each with its own tree. Text from the run is
    shown, never interpreted: neither rich's markup nor escape sequences.
    """
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    return page.render(_sections(build_document(run, top=top, by_thread=by_thread), page))


class Page:
    """A sheet of so many columns, and how text is put on it."""

    def __init__(self, *, width: int, color: bool = False, ascii_only: bool = False) -> None:
        self.width = width
        self._color = color
        self._ascii_only = ascii_only

    def clean(self, text: str) -> str:
        """The text as this page can show it."""
        return for_terminal(text, ascii_only=self._ascii_only)

    def shorten(self, name: str, width: int, *, mark: str = "") -> str:
        """The name with its mark, in at most ``width`` columns."""
        mark = self.clean(mark)
        return shorten_middle(self.clean(visible(name)), width - len(mark), ellipsis=self.clean("…")) + mark

    def table(
        self, names: Sequence[Callable[[int], str]], rows: Sequence[Mapping[str, str]], styles: Sequence[str]
    ) -> "Table":
        """Rows of figures under their headings, each row led by a name made to fit the width."""
        from rich.box import Box
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        headings = list(rows[0])
        cells = [[self.clean(row[heading]) for heading in headings] for row in rows]
        columns = zip(headings, *cells, strict=True)
        widths = [max(map(cell_len, column)) for column in columns]
        for gap in (2, 1):
            name_room = self.width - sum(widths) - gap * len(widths)
            fitted = [name(name_room) for name in names]
            if gap == 1 or fitted == [name(self.width) for name in names]:
                break
        rule = Box(_RULE_BELOW_HEADINGS.format(self.clean("─")), ascii=self._ascii_only)
        table = Table(box=rule, show_edge=False, pad_edge=False, padding=0, header_style="bold")
        table.add_column("name", no_wrap=True)
        for heading, column_width in zip(headings, widths, strict=True):
            table.add_column(heading, justify="right", no_wrap=True, min_width=column_width + gap - 1)
        for name, row, style in zip(fitted, cells, styles, strict=True):
            table.add_row(Text(name), *map(Text, row), style=style)
        return table

    def paragraph(self, text: str, *, style: str = "") -> "RenderableType":
        """Words wrapped at the width."""
        from rich.text import Text

        return Text(self.clean(text), style=style, overflow="fold")

    def pairs(self, rows: Iterable[tuple[str, str]], *, gap: int, label_style: str = "") -> "RenderableType":
        """Labels, and beside each its text, wrapped in a column of its own."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, gap, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True, style=label_style)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(self.clean(label), Text(self.clean(text)))
        return grid

    def bullets(self, lines: Iterable[str]) -> "RenderableType":
        """A list, one line or more an item."""
        return self.pairs((("-", line) for line in lines), gap=1)

    def render(self, content: Iterable["RenderableType"]) -> str:
        """The content as text, without blanks at the ends of lines."""
        from rich.console import Console

        console = Console(
            file=io.StringIO(),
            width=self.width,
            color_system="standard" if self._color else None,
            force_terminal=self._color,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
            # The same text wherever it is made: the surroundings are asked by the caller.
            _environ={},
        )
        with console.capture() as capture:
            for part in content:
                console.print(part)
        return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def tree_table(rows: Sequence[TreeRow], page: Page) -> "Table":
    """A tree of scopes with its figures."""
    names = []
    for row in rows:
        guide = page.clean(row.guide)

        def name(
            room: int, row_name: str = row.name, guide: str = guide, mark: str = _mark(parallel=row.parallel)
        ) -> str:
            return guide + page.shorten(row_name, max(room - len(guide), 5), mark=mark)

        names.append(name)
    styles = [_ROW_STYLES.get(row.kind, "dim") for row in rows]
    return page.table(names, [tree_cells(row, COMPACT) for row in rows], styles)


def _sections(document: Document, page: Page) -> Iterator["RenderableType"]:
    yield page.paragraph(_headline(document.headline, page), style="bold")
    if document.by_thread:
        yield from _by_thread(document, page)
    if document.scopes:
        yield from _scopes(document, page)
        yield from _section(page, "Tree, by total time", tree_table(document.tree, page))
        if document.apart:
            yield from _apart(document, page)
        numbered = ((f"{number}.", line) for number, line in enumerate(document.how_to_read, start=1))
        yield from _section(page, "How to read it", *(page.paragraph(" ".join(line)) for line in numbered))
    else:
        yield from _section(page, "Scopes", *map(page.paragraph, _how_to_mark()))
    yield from _section(page, "The profiler's own cost", page.bullets(document.cost))
    yield from _section(page, "Losses", page.bullets(document.losses))
    yield from _section(page, "Machine and software", page.pairs(document.facts, gap=2, label_style="dim"))


def _section(page: Page, title: str, *content: "RenderableType") -> Iterator["RenderableType"]:
    yield ""
    yield page.paragraph(title, style="bold cyan")
    yield from content


def _how_to_mark() -> Iterator[str]:
    yield wording.NO_SCOPES
    yield from (f"    {line}" for line in wording.HOW_TO_MARK)


def _headline(headline: Headline, page: Page) -> str:
    program = page.shorten(headline.program, page.width * 3 // 10)
    ending = page.shorten(headline.ending, page.width // 2)
    start = f"{program} {ending} · {format_duration(headline.profiled_ns)} profiled · "
    if headline.hottest is None:
        return f"{start}no scopes"
    start += "most self: "
    amount = hottest_amount(headline)
    room = max(page.width - len(page.clean(f"{start} {amount}")), _SHORTEST_NAME)
    hottest = page.shorten(headline.hottest.name, room, mark=_mark(parallel=headline.hottest.parallel))
    return f"{start}{hottest} {amount}"


def _by_thread(document: Document, page: Page) -> Iterator["RenderableType"]:
    profiled = format_duration(document.headline.profiled_ns)
    title = f"Threads, by total time (% of the {profiled} profiled)"
    yield from _section(page, title, tree_table(document.by_thread, page))
    for note in document.by_thread_notes:
        yield page.paragraph(note, style="dim")


def _scopes(document: Document, page: Page) -> Iterator["RenderableType"]:
    rows = [scope_cells(document, scope, COMPACT) for scope in document.scopes]
    dropped = []
    for heading in _DROPPED_FIRST:
        widest = sum(max(len(heading), *(len(row[heading]) for row in rows)) + 1 for heading in rows[0])
        if page.width - widest >= _SHORTEST_NAME:
            break
        dropped.append(heading)
        rows = [{key: cell for key, cell in row.items() if key != heading} for row in rows]
    hottest = document.headline.hottest
    table = page.table(
        [_name_to_fit(page, scope.name, parallel=scope.parallel) for scope in document.scopes],
        rows,
        ["bold" if scope is hottest else "" for scope in document.scopes],
    )
    profiled = format_duration(document.headline.profiled_ns)
    yield from _section(page, f"Scopes, by total time (% of the {profiled} profiled)", table)
    if dropped:
        yield page.paragraph(f"Not shown for want of width: {', '.join(dropped)}.", style="dim")
    if document.scopes_not_shown:
        yield page.paragraph(f"{document.scopes_not_shown:,} more not shown (see --top).", style="dim")
    for note in document.marks:
        yield page.paragraph(note, style="dim")


def _apart(document: Document, page: Page) -> Iterator["RenderableType"]:
    table = page.table(
        [_name_to_fit(page, scope.name, parallel=scope.parallel) for scope in document.apart],
        [apart_cells(document, scope, COMPACT) for scope in document.apart],
        [""] * len(document.apart),
    )
    yield from _section(page, "Shown apart", table)
    if document.apart_not_shown:
        yield page.paragraph(f"{document.apart_not_shown:,} more not shown (see --top).", style="dim")
    for note in document.apart_notes:
        yield page.paragraph(note, style="dim")


def _name_to_fit(page: Page, name: str, *, parallel: bool) -> Callable[[int], str]:
    return lambda room: page.shorten(name, room, mark=_mark(parallel=parallel))


def _mark(*, parallel: bool) -> str:
    return PARALLEL_MARK if parallel else ""
