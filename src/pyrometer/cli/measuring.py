"""What commands that measure have in common: where they are told of, and how they end."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from pyrometer.errors import UsageError


def progress() -> Callable[[str], None]:
    """Says on stderr how far the measuring is, if somebody watches."""
    if not sys.stderr.isatty():
        return lambda _: None

    def tell(text: str) -> None:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return tell


def clear_progress() -> None:
    """Take the last line of progress off the terminal."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def end_cleanly_on_termination() -> None:
    """SIGTERM ends the command as Ctrl-C does: processes and folders it has made go with it."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


def parse_percent(option: str, text: str) -> float:
    """``3%``, ``3 %`` or ``0.03``, as a fraction."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if text.strip().endswith("%"):
        value /= 100
    if not 0 <= value < 10:
        raise UsageError(f"{option} is {text!r}, but must be a percentage such as 3%, from 0")
    if not text.strip().endswith("%") and value >= 1:
        raise UsageError(f"{option} is {text!r}; for {number} percent write {number}%")
    return value


def parse_threads(option: str, text: str) -> int | None:
    """A number of threads, or None for ``auto``: what libraries choose by themselves."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{option} is {text!r}, but must be a number from 1, or auto")
    return int(text)
