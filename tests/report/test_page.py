"""Tables on a page: whatever its width, a column is shown whole or not at all."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.cells import cell_len

from pyrometer.report import render_terminal
from pyrometer.report.blocks import Column, Row, Table
from pyrometer.report.page import Page
from pyrometer.report.safe_text import for_terminal, shorten_middle
from tests.torch_runs import TORCH_RUNS

NOT_SHOWN = "Not shown for want of width: "
WIDTHS = range(40, 141)


def drawn(table: Table, width: int) -> tuple[list[str], list[str]]:
    """The lines of a table on a page so wide, without the details of rows, and the names of columns gone."""
    page = Page(width=width)
    bare = replace(table, rows=tuple(replace(row, details=()) for row in table.rows))
    lines = page.render(page.table(bare)).splitlines()
    rows, rest = lines[: len(table.rows) + 2], " ".join(lines[len(table.rows) + 2 :])
    return rows, rest.removeprefix(NOT_SHOWN).removesuffix(".").split(", ") if rest else []


def words_shown(table: Table, row: Row, gone: list[str]) -> list[str]:
    """What stands in the cells of a row, in the columns that are not gone."""
    texts = [
        cell if column.widest is None else shorten_middle(for_terminal(cell), column.widest)
        for column, cell in zip(table.columns, row.cells, strict=True)
        if (column.spelled or column.heading) not in gone
    ]
    return " ".join(map(for_terminal, texts)).split()


@pytest.fixture
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Table]:
    """Every table of the report of the run so named, on a terminal."""
    seen: list[Table] = []
    laid_out = Page.table

    def table(self: Page, table: Table) -> Iterator[object]:
        seen.append(table)
        return laid_out(self, table)

    monkeypatch.setattr(Page, "table", table)
    render_terminal(TORCH_RUNS[request.param]())
    monkeypatch.undo()
    return seen


@pytest.mark.parametrize("tables", TORCH_RUNS, indirect=True)
def test_at_any_width_each_column_is_shown_whole_or_named_as_not_shown(tables: list[Table]) -> None:
    for table in tables:
        for width in WIDTHS:
            (headings, _, *rows), gone = drawn(table, width)
            assert max(map(cell_len, (headings, *rows))) <= width
            assert all(gone)
            kept = [column for column in table.columns if (column.spelled or column.heading) not in gone]
            assert len(kept) + len(gone) == len(table.columns)
            expected = " ".join([table.names, *(column.heading for column in kept)])
            assert headings.split() == expected.split()
            for row, line in zip(table.rows, rows, strict=True):
                words = words_shown(table, row, gone)
                assert line.split()[len(line.split()) - len(words) :] == words


def test_a_heading_wider_than_its_names_takes_its_room() -> None:
    table = Table(
        names="module",
        columns=(Column(heading="forward"), Column(heading="allocated", dropped=1)),
        rows=(Row(name="m", cells=("10.0ms", "121.5KiB")),),
    )
    assert drawn(table, 24)[0][2] == "m       10.0ms  121.5KiB"
    assert drawn(table, 23)[1] == ["allocated"]


def test_a_tree_deeper_than_the_page_loses_its_guides_first() -> None:
    table = Table(
        names="module",
        columns=(Column(heading="forward"), Column(heading="class", dropped=1)),
        rows=(Row(name="attention", guide="│  " * 12 + "└─ ", cells=("10.0ms", "Linear")),),
    )
    (*_, row), gone = drawn(table, 40)
    assert gone == ["class"]
    assert row.endswith("└─ at…on  10.0ms")
    assert cell_len(row) == 40
