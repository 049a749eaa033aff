"""A sheet of so many columns, and how text and tables are put on it."""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyrometer.report.blocks import (
    Block,
    Bullets,
    Checklist,
    Code,
    Column,
    Heading,
    Lines,
    Numbered,
    Pairs,
    Row,
    Section,
    Table,
)
from pyrometer.report.safe_text import for_terminal, shorten_end, shorten_middle, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHORTEST_NAME = 16
_LEAST_NAME = 8
"""Of a name, where even columns that are to stay have to go."""
_LEAST_BESIDE_A_GUIDE = 5
_DETAIL_INDENT = 4


class Page:
    """A sheet of so many columns."""

    def __init__(self, *, width: int, color: bool = False, ascii_only: bool = False) -> None:
        self.width = width
        self._color = color
        self._ascii_only = ascii_only

    def clean(self, text: str) -> str:
        """The text as this page can show it."""
        return for_terminal(text, ascii_only=self._ascii_only)

    def shorten(self, name: str, width: int, *, mark: str = "") -> str:
        """The name with its mark, in at most ``width`` columns."""
        name, mark, ellipsis = self.clean(visible(name)), self.clean(mark), self.clean("…")
        room = width - len(mark)
        if room <= len(ellipsis):
            return shorten_middle(name + mark, width, ellipsis=ellipsis)
        return shorten_middle(name, room, ellipsis=ellipsis) + mark

    def table(self, table: Table) -> Iterator["RenderableType"]:
        """Rows of figures under their headings, each led by a name made to fit the width."""
        from rich.cells import cell_len
        from rich.padding import Padding
        from rich.text import Text

        kept, dropped = self._fitting(table)
        columns = [table.columns[index] for index in kept]
        cells = [
            [self._cell(column, row.cells[index]) for index, column in zip(kept, columns, strict=True)]
            for row in table.rows
        ]
        headings = [self.clean(column.heading) for column in columns]
        widths = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
        names, gap = self._fit_names(table, widths)
        name_width = max(map(cell_len, (table.names, *names)))
        width = name_width + sum(widths) + gap * len(widths)

        def line(name: str, texts: Sequence[str], style: str, *, colored: bool = True) -> Padding:
            laid_out = Text(name, style=style, no_wrap=True, overflow="crop")
            laid_out.append(" " * (name_width - cell_len(name)))
            for column, text, column_width in zip(columns, texts, widths, strict=True):
                blanks = " " * (column_width - cell_len(text))
                laid_out.append(" " * gap if column.left else " " * gap + blanks)
                laid_out.append(text, column.color if colored and column.color else None)
                laid_out.append(blanks if column.left else "")
            # In a padding of nothing: rich would wrap a bare line at the width, whatever it says of itself.
            return Padding(laid_out, 0)

        yield line(table.names, headings, "bold", colored=False)
        yield Text(self.clean("─") * min(width, self.width))
        for name, texts, row in zip(names, cells, table.rows, strict=True):
            yield line(name, texts, row.emphasis.value)
            for detail in row.details:
                yield Padding(
                    Text(self.clean(detail), style="dim", overflow="fold"), (0, 0, 0, _DETAIL_INDENT)
                )
        if dropped:
            yield self.paragraph(f"Not shown for want of width: {', '.join(dropped)}.", style="dim")

    def _fitting(self, table: Table) -> tuple[list[int], list[str]]:
        """Which columns there is room for beside the names, and the headings of the others.

        A column is shown whole or not at all. Those that are to stay go last, from the right.
        """
        from rich.cells import cell_len

        kept = list(range(len(table.columns)))
        widths = [
            max(
                cell_len(self.clean(column.heading)),
                *(cell_len(self._cell(column, row.cells[index])) for row in table.rows),
            )
            for index, column in enumerate(table.columns)
        ]
        wanted, least = self._room_for_names(table)
        dropped = []
        for index in sorted(kept, key=lambda index: _turn_to_go(table.columns[index], index)):
            column = table.columns[index]
            room = self.width - sum(widths[i] + 1 for i in kept)
            if room >= (wanted if column.dropped else least):
                break
            kept.remove(index)
            dropped.append(_told_apart(column))
        return kept, dropped

    def _room_for_names(self, table: Table) -> tuple[int, int]:
        """How many columns the names should have, and how many they must have."""
        from rich.cells import cell_len

        heading, longest = cell_len(table.names), max(map(self._name_width, table.rows))
        deepest = max(len(row.guide) + _LEAST_BESIDE_A_GUIDE if row.guide else 0 for row in table.rows)
        wanted = longest if table.whole_names else min(longest, max(_SHORTEST_NAME, deepest))
        return max(heading, wanted), max(heading, min(longest, _LEAST_NAME))

    def _cell(self, column: Column, text: str) -> str:
        text = self.clean(text)
        return (
            text if column.widest is None else shorten_middle(text, column.widest, ellipsis=self.clean("…"))
        )

    def _name_width(self, row: Row) -> int:
        from rich.cells import cell_len

        return cell_len(self.clean(row.guide)) + cell_len(self._name(row, self.width))

    def _name(self, row: Row, room: int) -> str:
        if row.sentence:
            return shorten_end(self.clean(visible(row.name)), room, ellipsis=self.clean("…"))
        return self.shorten(row.name, room, mark=row.mark)

    def _fit_names(self, table: Table, widths: Sequence[int]) -> tuple[list[str], int]:
        """The names as they fit beside columns of these widths, and the gap before each column."""
        from rich.cells import cell_len

        whole = [self._guided(row, self.width) for row in table.rows]
        for gap in (2, 1):
            room = self.width - sum(widths) - gap * len(widths)
            names = [self._guided(row, room) for row in table.rows]
            if names == whole and cell_len(table.names) <= room:
                break
        return names, gap

    def _guided(self, row: Row, room: int) -> str:
        """The name below its guide; a guide too deep for the page loses what is nearest to the edge."""
        from rich.cells import cell_len

        guide = self.clean(row.guide)
        beside = min(cell_len(self._name(row, room)), _LEAST_BESIDE_A_GUIDE)
        guide = guide[max(len(guide) + beside - room, 0) :]
        return guide + self._name(row, room - len(guide))

    def paragraph(self, text: str, *, style: str = "") -> "RenderableType":
        """Words wrapped at the width."""
        from rich.text import Text

        return Text(self.clean(text), style=style, overflow="fold")

    def pairs(self, rows: Iterable[tuple[str, str]], *, gap: int, label_style: str = "") -> "RenderableType":
        """Labels, and beside each its text, wrapped in a column of its own."""
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid.grid(padding=(0, gap, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True, style=label_style)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(self.clean(label), Text(self.clean(text)))
        return grid

    def bullets(self, lines: Iterable[str]) -> "RenderableType":
        """A list, one line or more an item."""
        return self.pairs((("-", line) for line in lines), gap=1)

    def section(self, section: Section) -> Iterator["RenderableType"]:
        """A part of the report, below its title."""
        yield ""
        yield self.paragraph(section.title, style="bold cyan")
        for block in section.blocks:
            yield from self._block(block)

    def _block(self, block: Block) -> Iterator["RenderableType"]:
        if isinstance(block, Table):
            yield from self.table(block)
        elif isinstance(block, Lines):
            yield from (self.paragraph(line, style=block.emphasis.value) for line in block.lines)
        elif isinstance(block, Bullets):
            yield self.bullets(block.lines)
        elif isinstance(block, Numbered):
            yield from (
                self.paragraph(f"{number}. {line}") for number, line in enumerate(block.lines, start=1)
            )
        elif isinstance(block, Pairs):
            yield self.pairs(block.rows, gap=2, label_style="dim")
        elif isinstance(block, Checklist):
            yield self.pairs((("[x]" if met else "[ ]", text) for met, text in block.items), gap=1)
        elif isinstance(block, Code):
            yield from (self.paragraph(f"    {line}") for line in block.lines)
        elif isinstance(block, Heading):
            yield self.paragraph(block.text, style="bold")

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


def _told_apart(column: Column) -> str:
    return column.spelled or column.heading


def _turn_to_go(column: Column, index: int) -> tuple[int, int]:
    return -column.dropped, 0 if column.dropped else -index
