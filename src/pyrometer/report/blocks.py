"""What sections of a report are made of, before a renderer lays them out.

Texts may hold names from the run as they are: a renderer makes them harmless.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Emphasis(Enum):
    """How a row stands out; the value is its style on a terminal."""

    NONE = ""
    STRONG = "bold"
    FAINT = "dim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of figures."""

    heading: str
    spelled: str | None = None
    """The heading where there is room for a longer one."""
    left: bool = False
    """Set from the left, as words are."""
    widest: int | None = None
    """Longer texts lose their middle."""
    color: str = ""
    """Of its cells, on a terminal that has colours."""
    dropped: int = 0
    """When the width is short, columns go, the highest number first; 0 stays as long as it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A name with its cells, one for each column."""

    name: str
    cells: tuple[str, ...]
    guide: str = ""
    """Drawn before the name, from the rows above it."""
    mark: str = ""
    """Put after the name, and kept when that is shortened."""
    qualified_name: str | None = None
    """The name where no guide is drawn."""
    emphasis: Emphasis = Emphasis.NONE
    total: bool = False
    """Whether it sums up the rows above, and has none of the program's words in it."""
    details: tuple[str, ...] = ()
    """Sentences that belong underneath."""
    sentence: bool = False
    """Whether the name is a sentence, which loses its end where it is too long, and not its middle."""
    link: str | None = None
    """Where its name leads to, in Markdown: an address as seen from the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of figures, each led by a name."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    names: str = "name"
    """The heading above the names."""
    whole_names: bool = False
    """Whether columns go before a name is shortened."""
    details: str = ""
    """The heading of the rows' details, where those have a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Sentences, each on a line of its own."""

    lines: tuple[str, ...]
    emphasis: Emphasis = Emphasis.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A list whose order matters."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Labels, and beside each its text."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Lines to be copied as they are."""

    lines: tuple[str, ...]
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """Points and whether each holds; None: cannot be told."""

    items: tuple[tuple[bool | None, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A title inside a section."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in a file of its own; where there are none, nothing."""

    text: str
    """What it shows."""
    target: str
    """The file, as seen from the report."""
    opens: bool = False
    """Whether there is more to it when it is opened by itself."""


Block = Table | Lines | Bullets | Numbered | Pairs | Code | Checklist | Heading | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report under its title."""

    title: str
    blocks: tuple[Block, ...]


def together(title: str, sections: Iterable[Section]) -> Section:
    """Sections as one, each below a heading of its own."""
    return Section(
        title=title,
        blocks=tuple(
            block for section in sections for block in (Heading(text=section.title), *section.blocks)
        ),
    )


def without_unknown_columns(table: Table, unknown: Collection[str]) -> Table:
    """The table less the columns in which no row has a figure."""
    kept = [
        index
        for index in range(len(table.columns))
        if any(row.cells[index] not in unknown for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(replace(row, cells=tuple(row.cells[index] for index in kept)) for row in table.rows),
    )


def notes(lines: Iterable[str]) -> tuple[Lines, ...]:
    """Sentences in small print; nothing at all where there are none."""
    kept = tuple(lines)
    return (Lines(lines=kept, emphasis=Emphasis.FAINT),) if kept else ()


def columns_of(row: Mapping[str, str], *, dropped_first: Sequence[str] = ()) -> tuple[Column, ...]:
    """Columns named by the keys of a row, those in ``dropped_first`` dropped in that order."""
    order = {heading: len(dropped_first) - index for index, heading in enumerate(dropped_first)}
    return tuple(Column(heading=heading, dropped=order.get(heading, 0)) for heading in row)
