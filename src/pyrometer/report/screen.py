"""What the place a report is shown on can show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO

DEFAULT_WIDTH = 80
_WIDEST = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The columns, colours and characters a stream has room for."""

    width: int = DEFAULT_WIDTH
    color: bool = False
    ascii_only: bool = False

    @classmethod
    def of(
        cls,
        stream: TextIO,
        *,
        environment: Mapping[str, str],
        terminal_size: Callable[[int], tuple[int, int]],
    ) -> "Screen":
        """What this stream can show; ``os.environ`` and ``os.get_terminal_size`` come from the caller.

        Colours only on a terminal, and not under ``NO_COLOR`` or ``TERM=dumb``. What is piped is
        80 columns wide unless ``COLUMNS`` says otherwise, so that it reads the same everywhere.
        """
        terminal = stream.isatty()
        width = _positive_number(environment.get("COLUMNS"))
        if width is None and terminal:
            width = _terminal_width(stream, terminal_size)
        return cls(
            width=min(width or DEFAULT_WIDTH, _WIDEST),
            color=terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
            ascii_only=not _can_encode(stream, "…∥–·×µ≤≥→±│├└─█▁"),
        )


def _terminal_width(stream: TextIO, terminal_size: Callable[[int], tuple[int, int]]) -> int | None:
    try:
        return terminal_size(stream.fileno())[0] or None
    except (OSError, ValueError):
        return None  # A terminal only in name (a wrapper, a notebook) has no size to ask for.


def _positive_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) > 0 else None


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
