"""The line of progress of a long run: step, rate and a bar of phases on stderr.

It stands on the screen only while the program says nothing: whatever the program writes to
``sys.stdout`` or ``sys.stderr`` clears it first. A program that draws something of its own (a bar,
a whole screen) is never drawn over: from its first carriage return or cursor movement on, there
is no line any more.
"""

import contextlib
import functools
import os
import re
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TextIO

import msgspec

from pyrometer.capture.losses import note_failure
from pyrometer.record.torch_run import OTHER
from pyrometer.units import compact_count, format_duration

SHOWN_EVERY_NS = 500_000_000
QUIET_BEFORE_NS = 2_000_000_000
"""So long must a program have made steps, and said nothing, before the line appears."""
PLAIN_EVERY_NS = 10_000_000_000
"""Where a line cannot be cleared again, each is one of its own, and they come less often."""

_AVERAGED_OVER_LINES = 10
_BAR_CELLS = 20
_CLEAR = "\r\x1b[K"
# All that moves the cursor, but for the end of a line: colours do not.
_DRAWS = re.compile(r"\r(?!\n)|\x08|\x1b(?!\[[0-9;]*m)")
# What the phases look like in the bar, small ones as the large one they stand beside, and their colour.
_CELLS = {
    "data": ("d", 36),
    "copies": ("d", 36),
    "forward": ("f", 32),
    "loss": ("f", 32),
    "backward": ("b", 34),
    "clipping": ("o", 35),
    "optimizer": ("o", 35),
    "clearing": ("o", 35),
    OTHER: (".", 90),
}


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a program has come, all counted from its start."""

    steps: int
    samples: int | None
    """None where the batch size cannot be told."""
    total_ns: int
    """Of all steps."""
    phase_ns: Mapping[str, int]
    """By phase; sums to ``total_ns``."""


class LineStyle(msgspec.Struct, frozen=True, kw_only=True):
    """How the line is to be written."""

    clears: bool
    """Whether it can be cleared again; else each is a line of its own."""
    color: bool
    ascii_only: bool


def open_line(*, wanted: bool | None, quiet: bool) -> "LiveLine | None":
    """The line of this process, or None where none is to be shown."""
    stream = sys.__stderr__
    if stream is None:
        return None
    try:
        style = line_style(
            wanted=wanted,
            quiet=quiet,
            terminal=stream.isatty(),
            encoding=stream.encoding,
            environment=os.environ,
        )
        return None if style is None else LiveLine(style)
    except Exception as error:  # noqa: BLE001 - whatever stands in for a stream, the program runs
        note_failure("live line", "not shown", error)
        return None


def line_style(
    *, wanted: bool | None, quiet: bool, terminal: bool, encoding: str, environment: Mapping[str, str]
) -> LineStyle | None:
    """How to write the line here, or None to show none.

    ``wanted`` None: only on a terminal that a person is likely to watch.
    """
    dumb = environment.get("TERM") == "dumb"
    in_ci = environment.get("CI", "").lower() not in {"", "0", "false"}
    if wanted is False or (wanted is None and (quiet or in_ci or dumb or not terminal)):
        return None
    clears = terminal and not dumb
    return LineStyle(
        clears=clears,
        color=clears and not environment.get("NO_COLOR"),
        ascii_only="utf" not in encoding.lower(),
    )


class LiveLine:
    """Shows how far the program has come, at most twice a second and only in its silence.

    From its making to ``close()`` it watches what the program writes to the terminal, by a
    ``write`` and a ``flush`` of its own on those streams, which pass everything on.
    """

    def __init__(
        self,
        style: LineStyle,
        *,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        put: Callable[[str], None] | None = None,
        columns: Callable[[], int] | None = None,
        streams: tuple[TextIO | None, ...] | None = None,
    ) -> None:
        self._style = style
        self._clock_ns = clock_ns
        self._put = put or _write_to_stderr
        self._columns = columns or _terminal_columns
        self._shown = False
        self._line_is_open = False
        self._due_ns = 0
        self._history: deque[Progress] = deque(maxlen=_AVERAGED_OVER_LINES)
        self._watched: list[tuple[TextIO, dict[str, Callable[..., object]]]] = []
        self._closed = False
        if style.clears:
            for stream in (sys.stdout, sys.stderr) if streams is None else streams:
                self._watch(stream)

    def update(self, progress: Callable[[], Progress]) -> None:
        """Called after each step; asks for the progress only when the line is due."""
        if self._clock_ns() >= self._due_ns:
            try:
                self._show(progress())
            except Exception as error:  # noqa: BLE001 - a step of the program's is not ours to end
                note_failure("live line", "not shown any more", error)
                self.close()

    def clear(self) -> None:
        """Take the line off the screen until it is due again."""
        if self._shown:
            self._shown = False
            self._put(_CLEAR)

    def close(self) -> None:
        """Take the line off the screen for good, and leave the program's streams alone."""
        self.clear()
        self._closed = True
        self._due_ns = sys.maxsize
        for stream, ours in self._watched:
            for name, method in ours.items():
                if vars(stream).get(name) is method:
                    delattr(stream, name)
        self._watched = []

    def _show(self, progress: Progress) -> None:
        self._history.append(progress)
        if len(self._history) == 1:  # the first step, which waits for the others
            self._due_ns = self._clock_ns() + QUIET_BEFORE_NS
            return
        self._due_ns = self._clock_ns() + (SHOWN_EVERY_NS if self._style.clears else PLAIN_EVERY_NS)
        # Half a line of the program's is not ours to clear, and from the background a terminal may
        # refuse what is written, by stopping the program.
        if self._line_is_open or _in_background():
            return
        text = line_of(
            self._history[0],
            progress,
            columns=self._columns(),
            color=self._style.color,
            ascii_only=self._style.ascii_only,
        )
        if self._style.clears:
            self._shown = True
            self._put(f"{_CLEAR}{text}")
        else:
            self._put(f"{text}\n")

    # The program's own output.

    def _watch(self, stream: TextIO | None) -> None:
        # A stream of another kind may have no room for attributes, or a write that is not a method.
        if stream is None or not hasattr(stream, "__dict__") or not stream.isatty():
            return
        ours: dict[str, Callable[..., object]] = {}
        for name in ("write", "flush"):
            if name not in vars(stream):
                ours[name] = self._passing_on(getattr(stream, name))
                setattr(stream, name, ours[name])
        self._watched.append((stream, ours))

    def _passing_on(self, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def pass_on(*arguments: object) -> object:
            self.clear()
            result = method(*arguments)
            if arguments and not self._closed:
                self._note(str(arguments[0]))
            return result

        return pass_on

    def _note(self, text: str) -> None:
        if _DRAWS.search(text):
            self.close()
        elif text:
            self._line_is_open = not text.endswith("\n")
            self._due_ns = self._clock_ns() + QUIET_BEFORE_NS


def line_of(since: Progress, now: Progress, *, columns: int, color: bool, ascii_only: bool) -> str:
    """The line: as much of it as there is room for, with the figures since an earlier moment."""
    if now.steps == since.steps:
        since = Progress(steps=0, samples=0, total_ns=0, phase_ns={})
    steps, total_ns = max(now.steps - since.steps, 1), max(now.total_ns - since.total_ns, 1)
    parts = [f"step {now.steps:,}", f"{format_duration(total_ns / steps)} a step"]
    if now.samples is not None and since.samples is not None:
        rate = compact_count(round((now.samples - since.samples) * 1e9 / total_ns))
        parts.insert(1, f"{rate} samples/s")
    phase_ns = {name: spent_ns - since.phase_ns.get(name, 0) for name, spent_ns in now.phase_ns.items()}
    # One column stays free: a terminal that has none left begins a new line.
    text = _fitting(parts, " - " if ascii_only else " · ", columns - 1)
    bar = _bar(phase_ns, total_ns)
    room = columns - 1 - len(text) - len(bar) - 3
    if not bar or room < 0:
        return text
    biggest = max(phase_ns, key=lambda name: (name != OTHER and phase_ns[name] > 0, phase_ns[name]))
    note = f" {_safe(biggest)} {100 * phase_ns[biggest] / total_ns:.0f} %"
    drawn = _in_colour(bar) if color else "".join(cell for cell, _ in bar)
    return f"{text} [{drawn}]{note if len(note) <= room else ''}"


def _fitting(parts: list[str], dot: str, columns: int) -> str:
    while len(parts) > 1 and len(dot.join(parts)) > columns:
        parts = parts[:-1]
    return dot.join(parts)[: max(columns, 0)]


def _bar(phase_ns: Mapping[str, int], total_ns: int) -> list[tuple[str, int]]:
    """A cell for each twentieth of a step, in the order of its phases, and what is in none at the end."""
    cells: list[tuple[str, int]] = []
    passed_ns = 0
    for name, spent_ns in sorted(phase_ns.items(), key=lambda phase: phase[0] == OTHER):
        passed_ns += spent_ns
        cell = _CELLS.get(name, (_safe(name)[:1] or ".", 33))
        cells += [cell] * (min(round(_BAR_CELLS * passed_ns / total_ns), _BAR_CELLS) - len(cells))
    return cells


def _safe(name: str) -> str:
    """A name of the program's, one column for each character whatever they are."""
    return re.sub(r"[^ -~]", "?", name[:24])


def _in_colour(bar: list[tuple[str, int]]) -> str:
    stretches = groupby(bar, key=lambda cell: cell[1])
    return (
        "".join(f"\x1b[{colour}m{''.join(cell for cell, _ in cells)}" for colour, cells in stretches)
        + "\x1b[0m"
    )


def _terminal_columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def _in_background() -> bool:
    try:
        return os.tcgetpgrp(2) != os.getpgrp()
    except OSError:
        return False  # no terminal, or not the one that controls us


def _write_to_stderr(text: str) -> None:
    # A terminal held by Ctrl-S would hold the program too.
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    # Not sys.stderr: that may be the program's own by now.
    with contextlib.suppress(OSError):
        if poll.poll(0):
            os.write(2, text.encode("utf-8", "replace"))
