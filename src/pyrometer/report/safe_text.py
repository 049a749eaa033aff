"""Text from a run file made harmless, and made to fit.

A name is whatever the program, or whoever wrote the file, chose it to be: it may hold
escape sequences, markup, or a million characters.
"""

import re

LONGEST_TEXT = 1_000

_ASCII_FOR = str.maketrans(
    {
        "…": "...",
        "∥": "||",
        "–": "-",
        "·": "|",
        "×": "x",
        "µ": "u",
        "≤": "<=",
        "→": "->",
        "±": "+-",
        "≈": "~",
        "│": "|",
        "├": "|",
        "└": "`",
        "─": "-",
        "≥": ">=",
        "█": "#",
        **dict.fromkeys("▉▊▋▌", "+"),
        **dict.fromkeys("▍▎▏", "."),
        **dict(zip("▁▂▃▄▅▆▇", "_.,-=+*", strict=True)),
    }
)
_MARKDOWN_SPECIAL = re.compile(
    r"[\\`*\[\]#!|~$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # Within a word an underscore is just that.
    r"|^[-+](?=[\s-]|$)"  # The start of a list, or a line across the page.
)
_MARKDOWN_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")  # The start of a numbered list.
_HTML_FOR = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_controls(text: str) -> str:
    r"""The text on one line, with everything that does not print written as its escape: ``\x1b``.

    Control characters, line separators, lone surrogates and the invisible characters that
    turn the direction of writing all count as not printing.
    """
    if len(text) > LONGEST_TEXT:
        text = shorten_middle(text, LONGEST_TEXT)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def visible(name: str) -> str:
    """The name, in quotes where there would be nothing to see."""
    return name if name.strip() else repr(name)


def for_terminal(text: str, *, ascii_only: bool = False) -> str:
    """The text as a terminal can show it and cannot be driven by it."""
    text = escape_controls(text)
    if ascii_only and not text.isascii():
        text = text.translate(_ASCII_FOR).encode("ascii", "backslashreplace").decode("ascii")
    return text


def for_markdown(text: str) -> str:
    """The text as Markdown that shows exactly it: no markup, no HTML, no end of a table cell."""
    escaped = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", escape_controls(text))
    return _MARKDOWN_NUMBER.sub(r"\1\\\2", escaped).translate(_HTML_FOR)


def shorten_middle(text: str, width: int, *, ellipsis: str = "…") -> str:
    """At most ``width`` terminal cells of the text, the middle left out: ``encoder.l…attention``.

    The two ends stay because they are what tells long dotted names apart.
    """
    if _fits(text, width):
        return text
    room = width - len(ellipsis)
    if room <= 0:
        return ellipsis[:width]
    tail_room = room // 2
    head = _take(text, room - tail_room)
    tail = _take(text[::-1], tail_room)[::-1]
    return f"{head}{ellipsis}{tail}"


def shorten_end(text: str, width: int, *, ellipsis: str = "…") -> str:
    """At most ``width`` terminal cells of the text, the end left out: sentences begin with what they say."""
    if _fits(text, width):
        return text
    room = width - len(ellipsis)
    return ellipsis[:width] if room <= 0 else f"{_take(text, room).rstrip()}{ellipsis}"


def _fits(text: str, width: int) -> bool:
    if text.isascii():
        return len(text) <= width
    return len(text) <= LONGEST_TEXT and _cells(text) <= width


def _take(text: str, cells: int) -> str:
    """The longest beginning of the text within so many cells."""
    if text.isascii():
        return text[:cells]
    taken = text[:cells]
    while _cells(taken) > cells:
        taken = taken[:-1]
    return taken


def _cells(text: str) -> int:
    # A wide character takes two cells; rich, which lays the report out, has the table of them.
    from rich.cells import cell_len

    return cell_len(text)
