"""What commands that measure have in common: where they are told of, and how they end."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pyrometer.cli.app import discard
from pyrometer.cli.printing import print_text
from pyrometer.errors import UsageError
from pyrometer.experiment.scratch import scratch_folder
from pyrometer.report.safe_text import for_terminal

SAID_EVERY_S = 30.0
"""Where a line cannot be written over, as in the log of CI."""
_LONGEST_LINE = 78


class ProgressLine:
    """Says on stderr how far the measuring is: a line written over on a terminal, else now and then one."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._writes_over = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._now_s = now_s
        self._said_s = now_s()

    def show(self, text: str) -> None:
        """The measuring has come so far."""
        text = for_terminal(text)
        if self._writes_over:
            print(f"\r\x1b[K{text[:_LONGEST_LINE]}", end="", file=sys.stderr, flush=True)
        elif self._now_s() >= self._said_s + SAID_EVERY_S:
            self._said_s = self._now_s()
            print(f"pyrometer: {text}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the last line off the terminal."""
        if self._writes_over:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def end_cleanly_on_termination() -> None:
    """SIGTERM and SIGHUP end the command as Ctrl-C does: processes and folders it has made go with it."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, end)


def print_result(text: str) -> None:
    """Print what was measured; a reader who has gone changes no verdict, and so no exit code."""
    try:
        print_text(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


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
        raise UsageError(f"{option} is {text!r}, but must be a percentage such as 3%, from 0 to below 1000%")
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


@contextlib.contextmanager
def bytecode_alike(folders: Sequence[Path]) -> Iterator[Path | None]:
    """Where both sides are to keep their bytecode; None: beside their code.

    A tree that may not have any would be compiled in each process, and be measured as slower.
    """
    may_write = all(os.access(folder, os.W_OK) for folder in folders)
    if may_write and not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield None
        return
    with scratch_folder() as folder:
        yield folder


def tell_of_file_systems(folders: Sequence[Path]) -> None:
    """Say on stderr that the sides' files are not on one file system: one may be slower to read from."""
    if len({folder.stat().st_dev for folder in folders}) > 1:
        where = " and ".join(for_terminal(str(folder)) for folder in folders)
        print(
            f"pyrometer: {where} are on different file systems, of which one may be slower; to have both on "
            "one, set TMPDIR to a folder there",
            file=sys.stderr,
        )


def check_writable(option: str, file: Path | str | None, *, endings: Sequence[str], begins: str = "") -> None:
    """Say before anything is measured that a result could not be written, or would spoil another file.

    ``endings`` are those that a result of the kind has; a file that is there must have ``begins`` in its
    first bytes, if anything.
    """
    if file is None:
        return
    path = Path(file)
    if path.suffix not in endings:
        known = " or ".join(ending or "no ending" for ending in endings)
        raise UsageError(f"{option} is {str(file)!r}, but such a file has {known}; name another file")
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise UsageError(f"{option} is {str(file)!r}, which cannot be written; name another file")
    if begins and path.exists() and path.stat().st_size:
        with path.open("rb") as there:
            if begins.encode() not in there.read(200):
                raise UsageError(f"{option} is {str(file)!r}, which is something else; name another file")
