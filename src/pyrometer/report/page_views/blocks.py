"""The blocks that views are made of, as the page's script reads them.

Dicts, because this is the border: what stands here is written into a file next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrometer.report.blocks import Bullets, Checklist, Code, Emphasis, Lines, Pairs, Section, Table
from pyrometer.report.safe_text import escape_controls, visible

Block = dict[str, Any]
Figure = float | str | None

MOST_ROWS = 5_000
"""Of a table beside a tree that has all of it."""

_LONGEST_INTEGER = 2**53
_MARKS = {True: "✓", False: "✗", None: "?"}


def plain(text: str) -> str:
    """A sentence, with everything that does not print written out."""
    return escape_controls(text)


def name_of(name: str) -> str:
    """A name out of a run, in quotes where there would be nothing to see."""
    return escape_controls(visible(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class GridColumn:
    """A column: raw figures, written by the page in their unit.

    Units are ``duration`` (ns), ``bytes``, ``count``, ``calls``, ``figure``, ``digits``, ``share``,
    ``flops`` and ``text``.
    """

    heading: str
    unit: str
    values: Sequence[Figure]
    spelled: str | None = None
    """Said of it on hovering, and in a file."""
    texts: Sequence[str | None] | None = None
    """What stands in a cell instead of the figure, as where a column must add up as it is printed."""
    bar: bool = False
    """Whether a bar is drawn behind a share."""
    width: int | None = None
    """At least so many pixels, where its texts need more than its unit does."""
    links: Sequence[str | None] | None = None
    """Where a text leads to, as an address seen from the page."""

    def as_block(self) -> Block:
        """As the page reads it."""
        values = [_short(value) for value in self.values]
        column: Block = {"heading": self.heading, "unit": self.unit, "values": values}
        if self.spelled is not None:
            column["spelled"] = self.spelled
        if self.texts is not None and any(self.texts):
            column["texts"] = [None if text is None else plain(text) for text in self.texts]
        if self.bar:
            column["bar"] = True
        if self.width is not None:
            column["width"] = self.width
        if self.links is not None:
            column["links"] = list(self.links)
        return column

    @property
    def is_known(self) -> bool:
        """Whether any row has a figure."""
        return any(value is not None for value in self.values) or any(self.texts or ())


def _short(value: Figure) -> Figure:
    """Seven digits of what is no count: more than is ever shown, and half the size of the page."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LONGEST_INTEGER else float(f"{value:.7g}")
    return value


def grid(
    key: str,
    *,
    heading: str,
    names: Sequence[str],
    columns: Iterable[GridColumn],
    full_names: Sequence[str] | None = None,
    parents: Sequence[int] | None = None,
    sort: int | None = None,
    total: tuple[str, Sequence[str]] | None = None,
    details: Sequence[str] | None = None,
    colours: Sequence[str] | None = None,
    closed: bool = False,
    notes: Iterable[str] = (),
) -> Block:
    """A table that can be sorted and searched; with ``parents`` a tree.

    ``key`` is its name on the page and that of its file. ``total`` is a last row, of texts for the
    columns that have a figure. ``sort`` is the column it comes sorted by. ``details`` stand below a row. A
    tree comes a few levels open unless it is ``closed``.
    """
    known = [column for column in columns if column.is_known]
    block: Block = {
        "type": "grid",
        "key": key,
        "heading": heading,
        "names": [name_of(name) for name in names],
        "columns": [column.as_block() for column in known],
        "notes": [plain(note) for note in notes],
    }
    optional: Block = {
        "fullNames": None if full_names is None else [name_of(name) for name in full_names],
        "parents": None if parents is None else list(parents),
        "sort": sort,
        "total": None if total is None else {"name": total[0], "cells": list(total[1])},
        "details": None if details is None else [plain(text) for text in details],
        "colours": None if colours is None else list(colours),
        "closed": closed or None,
    }
    return block | {name: value for name, value in optional.items() if value is not None}


def left_out(number: int) -> list[str]:
    """What a table beside a tree is short of."""
    are = "is" if number == 1 else "are"
    return [f"{number:,} more, with less time, {are} in the tree above."] if number > 0 else []


def heading(text: str) -> Block:
    """A title within a view."""
    return {"type": "heading", "text": plain(text)}


def text(*lines: str) -> Block:
    """Sentences."""
    return {"type": "text", "lines": [plain(line) for line in lines]}


def small_print(lines: Iterable[str]) -> list[Block]:
    """Sentences in small print; nothing where there are none."""
    kept = [plain(line) for line in lines]
    return [{"type": "notes", "lines": kept}] if kept else []


def bullets(lines: Iterable[str]) -> Block:
    """A list."""
    return {"type": "bullets", "lines": [plain(line) for line in lines]}


def pairs(rows: Iterable[tuple[str, str]]) -> Block:
    """Labels, and beside each its text."""
    return {"type": "pairs", "rows": [[plain(label), plain(value)] for label, value in rows]}


def code(lines: Iterable[str]) -> Block:
    """Lines to be copied."""
    return {"type": "code", "text": "\n".join(escape_controls(line) for line in lines)}


def missing(what: str, *, command: str | None = None) -> Block:
    """What is not there, and the command that would record it."""
    return {"type": "missing", "text": plain(what), "command": command}


def view(key: str, title: str, blocks: Iterable[Block], *, count: int | None = None) -> Block:
    """A view under its title; ``count`` stands beside its name in the list of views."""
    return {"key": key, "title": title, "count": count or 0, "blocks": list(blocks)}


def one_group(title: str, views: Iterable[Block]) -> list[Block]:
    """The list of views of a page that has them all together."""
    entries = [{**{name: one[name] for name in ("key", "title", "count")}, "empty": False} for one in views]
    return [{"title": title, "views": entries}]


def from_sections(sections: Iterable[Section]) -> list[Block]:
    """Sections of the other reports, whose figures are written already."""
    found: list[Block] = []
    for section in sections:
        found.append(heading(section.title))
        for block in section.blocks:
            found += _from_block(section, block)
    return found


def _from_block(section: Section, block: object) -> list[Block]:
    match block:
        case Table():
            return [_from_table(section, block)]
        case Lines(emphasis=Emphasis.FAINT):
            return small_print(block.lines)
        case Lines():
            found = text(*map(visible, block.lines))
        case Bullets():
            found = bullets(block.lines)
        case Pairs():
            found = pairs(block.rows)
        case Code():
            found = code(block.lines)
        case Checklist():
            found = bullets(f"{_MARKS[met]} {line}" for met, line in block.items)
        case _:
            return []
    return [found]


def _from_table(section: Section, table: Table) -> Block:
    """Its cells are texts: it cannot be sorted, as 1 ms stands behind 2 µs."""
    return {
        "type": "table",
        "key": "-".join(section.title.lower().replace(":", "").replace(",", "").split()[:4]),
        "heading": table.names,
        "columns": [
            {"heading": column.spelled or column.heading, "left": column.left} for column in table.columns
        ],
        "rows": [
            {
                "name": name_of(row.qualified_name or row.name) + plain(row.mark),
                "cells": [plain(cell) for cell in row.cells],
                "total": row.total,
                "details": plain(" ".join(row.details)),
            }
            for row in table.rows
        ],
    }
