"""Text on stdout, whatever its encoding has characters for, and how many rows its tables have."""

import os
import sys
from pathlib import Path

from pyrometer.errors import UsageError
from pyrometer.report.screen import Screen


def print_text(text: str) -> None:
    """Print a text that ends with its own line; what the encoding does not have is spelled out."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), end="")


def screen_for(output: Path | None = None) -> Screen:
    """What stdout has room for, or a file: the terminal's colours are none of a file's."""
    if output is not None:
        return Screen()
    return Screen.of(sys.stdout, environment=os.environ, terminal_size=os.get_terminal_size)


def rows_wanted(top: int | None, *, show_all: bool, default: int) -> int | None:
    """How many rows ``--top N`` and ``--all`` ask for; None: all."""
    if show_all and top is not None:
        raise UsageError(f"--all shows all rows, and --top {top} does not; leave one of them out")
    return None if show_all else top or default
