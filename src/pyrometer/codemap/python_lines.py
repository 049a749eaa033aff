"""Of which kind each line of a Python file is."""

import io
import re
import token
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyrometer.record.code_map import LineCounts

_TRIPLE = re.compile(r"""[A-Za-z]{0,2}('{3}|"{3})""")
_STARTS = frozenset({token.STRING, getattr(token, "FSTRING_START", -1)})
_ENDS = frozenset({token.STRING, getattr(token, "FSTRING_END", -1)})


class PlacedString(NamedTuple):
    """Where a string begins and ends: lines from 1, columns in bytes."""

    line: int
    column: int
    end_line: int
    end_column: int


def lines_of(text: str) -> list[str]:
    """The lines of a text; one that ends with its line's end has no empty line after it."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def count_python_lines(
    text: str, *, documentation: Sequence[PlacedString], strings: Sequence[PlacedString]
) -> LineCounts:
    """How many of each kind there are.

    Blank: nothing but white space, wherever it stands. Docstring: nothing but a string that is a
    statement by itself, or a part of it. Comment: begins with ``#``, and not in a string. Code: all else.
    ``documentation`` are the strings that are statements, ``strings`` all that go over several lines.
    """
    lines = lines_of(text)
    begin_in_string, all_in_string = _lines_in_strings(lines, strings)
    documented = {number for one in documentation for number in _lines_of_it_alone(lines, one)}
    blank = comment = docstring = in_strings = 0
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped:
            blank += 1
        elif stripped[0] == "#" and number not in begin_in_string:
            comment += 1
        elif number in documented:
            docstring += 1
        elif number in all_in_string:
            in_strings += 1
    return LineCounts(
        total=len(lines),
        code=len(lines) - blank - comment - docstring,
        comment=comment,
        docstring=docstring,
        blank=blank,
        in_strings=in_strings,
    )


def _lines_of_it_alone(lines: Sequence[str], one: PlacedString) -> Iterator[int]:
    for number in range(one.line, one.end_line + 1):
        before = _bytes_of(lines, number)[: one.column] if number == one.line else b""
        after = _bytes_of(lines, number)[one.end_column :].strip() if number == one.end_line else b""
        if not before.strip() and (not after or after.startswith(b"#")):
            yield number


def _bytes_of(lines: Sequence[str], number: int) -> bytes:
    return lines[number - 1].encode("utf-8", "surrogatepass")


def _lines_in_strings(lines: Sequence[str], strings: Iterable[PlacedString]) -> tuple[set[int], set[int]]:
    """The lines that begin in a string, and those that are nothing else from end to end."""
    begin: set[int] = set()
    whole: set[int] = set()
    for one in strings:
        for first, last in _literals(lines, one):
            begin.update(range(first + 1, last + 1))
            whole.update(range(first + 1, last))
    return begin, whole


def _literals(lines: Sequence[str], one: PlacedString) -> Iterator[tuple[int, int]]:
    """First and last line of each literal: a string may be several, with comments in between."""
    source = [_bytes_of(lines, number) for number in range(one.line, one.end_line + 1)]
    source[-1] = source[-1][: one.end_column]
    source[0] = source[0][one.column :]
    text = "\n".join(line.decode("utf-8", "surrogatepass") for line in source)
    opening = _TRIPLE.match(text)
    if opening is not None and _end_of_triple(text, opening) == len(text):
        yield one.line, one.end_line
        return
    try:
        yield from _tokenized(text, one.line)
    except (tokenize.TokenError, SyntaxError):
        yield one.line, one.end_line


def _end_of_triple(text: str, opening: re.Match[str]) -> int:
    at = opening.end()
    while True:
        end = text.find(opening[1], at)
        if end < 0:
            return -1
        slash = text.find("\\", at, end)
        if slash < 0:
            return end + 3
        at = slash + 2


def _tokenized(text: str, first_line: int) -> Iterator[tuple[int, int]]:
    depth = 0
    began = 0
    for one in tokenize.generate_tokens(io.StringIO(f"({text})").readline):
        if one.type in _STARTS:
            began = one.start[0] if depth == 0 else began
            depth += 1
        if one.type in _ENDS:
            depth -= 1
            if depth == 0:
                yield first_line + began - 1, first_line + one.end[0] - 1
