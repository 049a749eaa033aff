"""Sections as Markdown: tables, lists, code.

Text from the run is escaped, so that it shows as it is and is never markup or HTML.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pyrometer.report.blocks import (
    Block,
    Bullets,
    Checklist,
    Code,
    Emphasis,
    Heading,
    Lines,
    Numbered,
    Pairs,
    Picture,
    Section,
    Table,
)
from pyrometer.report.safe_text import escape_controls, for_markdown, shorten_middle, visible

_LONGEST_NAME = 120


def sections_as_markdown(title: str, sections: Iterable[Section]) -> str:
    """A page of its own, made of such sections as reports have."""
    return "\n".join((f"# {for_markdown(title)}", *section_lines(sections))) + "\n"


def section_lines(sections: Iterable[Section]) -> Iterator[str]:
    """Each section under its title, after a blank line."""
    for section in sections:
        yield ""
        yield f"## {for_markdown(section.title)}"
        yield ""
        for index, block in enumerate(section.blocks):
            if index:
                yield ""
            yield from _block(block)


def contents_lines(titles: Iterable[str]) -> Iterator[str]:
    """A list of links to the sections of these titles, which must have none of the program's words."""
    return (f"- [{for_markdown(title)}](#{anchor_of(title)})" for title in titles)


def anchor_of(title: str) -> str:
    """What a link to the section of this title is called, by the rule of GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def markdown_name(name: str) -> str:
    """A name from the run, in a line."""
    return for_markdown(shorten_middle(visible(name), _LONGEST_NAME))


def markdown_line(text: str) -> str:
    """A sentence as a line of its own."""
    return unindented(for_markdown(visible(text)))


def unindented(line: str) -> str:
    """The same to see, but blanks at its start do not make it a piece of code, or a list in a list."""
    return f"&#32;{line[1:]}" if line.startswith(" ") else line


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Lines) and block.emphasis is not Emphasis.FAINT:
        yield "  \n".join(map(markdown_line, block.lines))
    elif isinstance(block, Bullets | Lines):
        yield from (f"- {markdown_line(line)}" for line in block.lines)
    elif isinstance(block, Numbered):
        yield from (f"{number}. {markdown_line(line)}" for number, line in enumerate(block.lines, start=1))
    elif isinstance(block, Pairs):
        yield from _pairs(block)
    elif isinstance(block, Checklist):
        yield from _checked(block)
    elif isinstance(block, Code):
        yield from _fenced("\n".join(map(escape_controls, block.lines)), language=block.language)
    elif isinstance(block, Heading):
        yield f"### {markdown_line(block.text)}"
    elif isinstance(block, Picture):
        yield from _picture(block)


def _table(table: Table) -> Iterator[str]:
    details = [table.details] if table.details else []
    headings = [column.spelled or column.heading for column in table.columns]
    yield _row([table.names, *map(for_markdown, headings), *details])
    yield _row(
        [":---", *(":---" if column.left else "---:" for column in table.columns), *[":---" for _ in details]]
    )
    for row in table.rows:
        name = markdown_name(row.qualified_name or row.name)
        cells = [
            (name if row.link is None else f"[{name}](<{row.link}>)") + for_markdown(row.mark),
            *map(for_markdown, row.cells),
        ]
        if details:
            cells.append(for_markdown(" ".join(row.details)))
        # Only our own words are set bold: stars next to a blank in a name would stay stars.
        yield _row([f"**{cell}**" if row.total and cell else cell for cell in cells])


def _pairs(pairs: Pairs) -> Iterator[str]:
    yield _row(["", ""])
    yield _row([":---", ":---"])
    for label, value in pairs.rows:
        yield _row([for_markdown(label), for_markdown(value)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _checked(checklist: Checklist) -> Iterator[str]:
    for met, text in checklist.items:
        box = "[x]" if met else "[ ]"
        yield f"- {box} {for_markdown(text)}{'' if met is not None else ' (cannot be told)'}"


def _picture(picture: Picture) -> Iterator[str]:
    address = quote(picture.target)
    image = f"![{for_markdown(picture.text)}]({address})"
    if not picture.opens:
        yield image
        return
    # A link to itself: opened, it can be zoomed and searched.
    yield f"[{image}]({address})"
    yield ""
    yield "Open the picture itself to zoom, to search and to see each frame's share."


def _fenced(text: str, *, language: str) -> Iterator[str]:
    """A code block; nothing in it can end it, as its fence is longer than any in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence
