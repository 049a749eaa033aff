"""Rows of plain values as the text of a CSV file."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pyrometer.report.safe_text import escape_controls

Cell = str | int | float | bool | tuple[str, ...] | None
"""A value; several texts are written with "; " between them, None as nothing."""

Record = dict[str, Cell]
"""A row by the headings of its columns."""

# A spreadsheet takes what begins so for a formula, and would run it.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_MOST_TEXTS = 1_000
_LEFT_OUT = "(left out)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """A table on its way to a file of its name."""

    name: str
    header: Sequence[str]
    rows: Iterable[Sequence[Cell]]


def table_of(name: str, records: Iterable[Record]) -> CsvTable | None:
    """The table of records that all have the same keys, which become its columns; None without records."""
    remaining = iter(records)
    first = next(remaining, None)
    if first is None:
        return None
    rows = (tuple(record.values()) for record in chain([first], remaining))
    return CsvTable(name=name, header=tuple(first), rows=rows)


def write_csv(table: CsvTable) -> str:
    """The text of the file: a line of headings, then one for each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_harmless(heading) for heading in table.header])
    writer.writerows([_cell(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _cell(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case int() | float():
            return repr(cell)
        case tuple():
            return _harmless("; ".join(map(_item, _few(cell))), is_clean=True)
        case str():
            return _harmless(cell)


def _harmless(text: str, *, is_clean: bool = False) -> str:
    """The text on one line, with an apostrophe in front where a spreadsheet would take it for a formula."""
    risky = text.startswith(_FORMULA_STARTS)
    clean = text if is_clean else escape_controls(text)
    return f"'{clean}" if risky or clean.startswith(_FORMULA_STARTS) else clean


def _item(text: str) -> str:
    # What stands between two texts is in none of them.
    return escape_controls(text).replace(";", ":")


def _few(texts: tuple[str, ...]) -> tuple[str, ...]:
    """All texts; of very many the first and last ones."""
    if len(texts) <= _MOST_TEXTS:
        return texts
    half = _MOST_TEXTS // 2
    return (*texts[:half], _LEFT_OUT, *texts[-half:])
