"""The line of progress: what it says, when it is shown, and that it never mixes with the program's output."""

import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from pyrometer.capture import losses
from pyrometer.capture.live import (
    PLAIN_EVERY_NS,
    QUIET_BEFORE_NS,
    SHOWN_EVERY_NS,
    LineStyle,
    LiveLine,
    Progress,
    line_of,
    line_style,
)
from tests.capture.terminals import run_on_terminal, screen_after

MS = 1_000_000
NOTHING = Progress(steps=0, samples=0, total_ns=0, phase_ns={})
# 10 steps of 32 samples in 20 ms.
TEN_STEPS = Progress(
    steps=10,
    samples=320,
    total_ns=20 * MS,
    phase_ns={"other": 1 * MS, "data": 1 * MS, "forward": 3 * MS, "backward": 4 * MS, "optimizer": 11 * MS},
)
TEN_STEPS_LINE = "step 10 · 16000 samples/s · 2.00 ms a step [dfffbbbbooooooooooo.] optimizer 55 %"


class Terminal(io.StringIO):
    """A stream of a terminal."""

    def isatty(self) -> bool:
        return True


class Bench:
    """A live line and a program's output on one terminal, and the time as the test says it is."""

    def __init__(self, *, clears: bool = True, columns: int = 100) -> None:
        self.terminal = Terminal()
        self.columns = columns
        self.now_ns = 0
        self.line = LiveLine(
            LineStyle(clears=clears, color=False, ascii_only=False),
            clock_ns=lambda: self.now_ns,
            put=self.put,
            columns=lambda: self.columns,
            streams=(self.terminal, self.terminal, None),
        )
        self.step(progress=NOTHING)

    def put(self, text: str) -> None:
        Terminal.write(self.terminal, text)

    def step(self, *, after_ns: int = 0, progress: Progress = TEN_STEPS) -> None:
        self.now_ns += after_ns
        self.line.update(lambda: progress)

    def screen(self) -> list[str]:
        return screen_after(self.terminal.getvalue(), columns=self.columns)


# What it says.


def text_of(now: Progress = TEN_STEPS, since: Progress = NOTHING, columns: int = 100) -> str:
    return line_of(since, now, columns=columns, color=False, ascii_only=False)


def test_the_line_tells_step_rate_and_phases() -> None:
    assert text_of() == TEN_STEPS_LINE


def test_the_figures_are_those_since_the_earlier_moment() -> None:
    later = Progress(
        steps=15, samples=480, total_ns=30 * MS, phase_ns={**TEN_STEPS.phase_ns, "optimizer": 21 * MS}
    )
    assert text_of(later, TEN_STEPS) == (
        "step 15 · 16000 samples/s · 2.00 ms a step [oooooooooooooooooooo] optimizer 100 %"
    )


def test_without_a_batch_size_there_is_no_rate() -> None:
    unknown = Progress(steps=2, samples=None, total_ns=4 * MS, phase_ns={"forward": 4 * MS, "other": 0})
    assert text_of(unknown) == "step 2 · 2.00 ms a step [ffffffffffffffffffff] forward 100 %"


@pytest.mark.parametrize("columns", range(1, 120))
def test_the_line_leaves_the_last_column_free_and_its_bar_whole(columns: int) -> None:
    text = text_of(columns=columns)
    assert len(text) < columns
    assert text.count("[") == text.count("]")
    if columns > len(TEN_STEPS_LINE):
        assert text == TEN_STEPS_LINE


def test_a_phase_of_the_programs_own_cannot_reach_the_terminal_with_its_name() -> None:
    hostile = Progress(steps=1, samples=1, total_ns=MS, phase_ns={"\x1b[2J日本": MS, "other": 0})
    assert text_of(hostile).isprintable()
    assert "?[2J?? 100 %" in text_of(hostile)


def test_colours_change_nothing_but_the_colour() -> None:
    coloured = line_of(NOTHING, TEN_STEPS, columns=100, color=True, ascii_only=False)
    assert "\x1b[35mo" in coloured
    assert screen_after(coloured, columns=100) == [TEN_STEPS_LINE]


def test_a_terminal_of_few_characters_gets_only_those() -> None:
    assert line_of(NOTHING, TEN_STEPS, columns=100, color=False, ascii_only=True).isascii()


# Where it is shown.

ON_A_TERMINAL = LineStyle(clears=True, color=True, ascii_only=False)


@pytest.mark.parametrize(
    ("wanted", "quiet", "terminal", "environment", "style"),
    [
        (None, False, True, {"TERM": "xterm"}, ON_A_TERMINAL),
        (None, False, True, {"CI": "false"}, ON_A_TERMINAL),
        (None, False, True, {"NO_COLOR": "1"}, LineStyle(clears=True, color=False, ascii_only=False)),
        (None, False, False, {}, None),
        (None, True, True, {}, None),
        (None, False, True, {"CI": "true"}, None),
        (None, False, True, {"TERM": "dumb"}, None),
        (False, False, True, {}, None),
        (True, True, True, {"CI": "1"}, ON_A_TERMINAL),
        (True, False, False, {}, LineStyle(clears=False, color=False, ascii_only=False)),
        (True, False, True, {"TERM": "dumb"}, LineStyle(clears=False, color=False, ascii_only=False)),
    ],
)
def test_it_is_shown_where_a_person_watches_or_where_it_is_asked_for(
    wanted: bool | None, quiet: bool, terminal: bool, environment: Mapping[str, str], style: LineStyle | None
) -> None:
    found = line_style(
        wanted=wanted, quiet=quiet, terminal=terminal, encoding="utf-8", environment=environment
    )
    assert found == style


# When it is shown.


def test_it_comes_two_seconds_after_the_first_step_and_then_twice_a_second() -> None:
    bench = Bench()
    asked: list[int] = []

    def progress() -> Progress:
        asked.append(bench.now_ns)
        return TEN_STEPS

    for bench.now_ns in range(0, 4_000 * MS, 10 * MS):
        bench.line.update(progress)
    assert asked == [2_000 * MS, 2_500 * MS, 3_000 * MS, 3_500 * MS]
    assert bench.screen() == [TEN_STEPS_LINE]


def test_a_shorter_line_leaves_nothing_of_the_longer_one() -> None:
    bench = Bench()
    bench.step(after_ns=QUIET_BEFORE_NS)
    unknown = Progress(steps=11, samples=None, total_ns=22 * MS, phase_ns={})
    bench.step(after_ns=SHOWN_EVERY_NS, progress=unknown)
    assert bench.screen() == ["step 11 · 2.00 ms a step"]


def test_it_is_gone_once_closed() -> None:
    bench = Bench()
    bench.step(after_ns=QUIET_BEFORE_NS)
    bench.line.close()
    bench.step(after_ns=10 * QUIET_BEFORE_NS)
    assert bench.screen() == [""]


def test_where_it_cannot_be_cleared_each_is_a_line_of_its_own() -> None:
    bench = Bench(clears=False)
    bench.step(after_ns=QUIET_BEFORE_NS)
    bench.step(after_ns=PLAIN_EVERY_NS - 1)
    bench.step(after_ns=1)
    bench.line.close()
    assert bench.terminal.getvalue() == f"{TEN_STEPS_LINE}\n" * 2
    assert vars(bench.terminal) == {}


def test_a_failure_of_ours_is_counted_and_ends_only_the_line() -> None:
    bench = Bench()

    def fail() -> Progress:
        raise LookupError("no group yet")

    losses.failures.clear()
    bench.now_ns += QUIET_BEFORE_NS
    bench.line.update(fail)
    bench.step(after_ns=10 * QUIET_BEFORE_NS)
    assert losses.failures == {("live line", "not shown any more: LookupError: no group yet"): 1}
    losses.failures.clear()
    assert bench.screen() == [""]


# Beside the program's own output.


def test_what_the_program_prints_stands_alone() -> None:
    bench = Bench()
    bench.step(after_ns=QUIET_BEFORE_NS)
    print("epoch 1: loss 0.5", file=bench.terminal)
    assert bench.screen() == ["epoch 1: loss 0.5", ""]
    bench.step(after_ns=QUIET_BEFORE_NS - 1)
    assert bench.screen() == ["epoch 1: loss 0.5", ""]
    bench.step(after_ns=1)
    assert bench.screen() == ["epoch 1: loss 0.5", TEN_STEPS_LINE]


def test_half_a_line_of_the_program_is_left_alone_until_it_ends() -> None:
    bench = Bench()
    print("epoch 1 ", end="", file=bench.terminal)
    bench.step(after_ns=QUIET_BEFORE_NS)
    assert bench.screen() == ["epoch 1"]
    print("done", file=bench.terminal)
    bench.step(after_ns=QUIET_BEFORE_NS)
    assert bench.screen() == ["epoch 1 done", TEN_STEPS_LINE]


def test_a_prompt_stands_alone() -> None:
    bench = Bench()
    bench.step(after_ns=QUIET_BEFORE_NS)
    bench.terminal.flush()  # what input() does before it writes its prompt past Python's streams
    assert bench.screen() == [""]


@pytest.mark.parametrize(
    "drawing",
    ["\r 10%|█         | 1/10", "\x1b[1A\x1b[2K", "\x1b[?25l", "3\x083"],
    ids=["as tqdm", "as rich", "a hidden cursor", "a spinner"],
)
def test_a_program_that_draws_something_itself_is_never_drawn_over(drawing: str) -> None:
    bench = Bench()
    bench.step(after_ns=QUIET_BEFORE_NS)
    print(drawing, file=bench.terminal)
    written = bench.terminal.getvalue()
    bench.step(after_ns=10 * QUIET_BEFORE_NS)
    assert bench.terminal.getvalue() == written
    assert vars(bench.terminal) == {}


def test_colours_and_the_line_ends_of_other_systems_are_no_drawing() -> None:
    bench = Bench()
    bench.terminal.write("\x1b[1;31mloss\x1b[0m 0.5\r\n")
    bench.step(after_ns=QUIET_BEFORE_NS)
    assert bench.screen() == ["loss 0.5", TEN_STEPS_LINE]


def test_the_programs_streams_are_as_before_once_it_is_closed() -> None:
    bench = Bench()
    write: Callable[[str], int] = bench.terminal.write
    assert write("four") == 4
    assert vars(bench.terminal).keys() == {"write", "flush"}
    bench.line.close()
    assert vars(bench.terminal) == {}
    assert write("five!") == 5


def test_a_write_that_the_program_has_put_there_itself_stays() -> None:
    terminal = Terminal()
    own = terminal.write
    terminal.write = own  # type: ignore[method-assign]
    line = LiveLine(LineStyle(clears=True, color=False, ascii_only=False), streams=(terminal,))
    line.close()
    assert vars(terminal) == {"write": own}


# On a real terminal, as a person would see it.

PROGRAM = """
    import itertools, os, signal, sys
    from pyrometer.capture.live import LineStyle, LiveLine, Progress

    clock_ns = itertools.count(0, 3_000_000_000)
    line = LiveLine(LineStyle(clears=True, color=True, ascii_only=False), clock_ns=clock_ns.__next__)
    step = lambda: line.update(lambda: Progress(steps=7, samples=7, total_ns=7, phase_ns={{"forward": 7}}))
    print("begin")
    step(), step()
    {then}
"""


@pytest.mark.parametrize(
    ("then", "rows"),
    [
        ("print('end')", ["begin", "end", ""]),
        ("print('end', file=sys.stderr)", ["begin", "end", ""]),
        ("line.close()", ["begin", ""]),
        ("line.close(); os.write(1, b'end\\n')", ["begin", "end", ""]),
        ("sys.exit('wrong')", ["begin", "wrong", ""]),
    ],
)
def test_a_terminal_shows_only_what_the_program_wrote(tmp_path: Path, then: str, rows: list[str]) -> None:
    (tmp_path / "program.py").write_text(dedent(PROGRAM.format(then=then)), encoding="utf-8")
    written, _ = run_on_terminal(
        [sys.executable, "program.py"], folder=tmp_path, environment={**os.environ, "TERM": "xterm"}
    )
    assert "step 7" in written
    assert screen_after(written) == rows


def test_from_the_background_nothing_is_drawn(tmp_path: Path) -> None:
    in_background = "import os\nif os.fork():\n    os._exit(os.wait()[1])\nos.setpgid(0, 0)\n"
    program = in_background + dedent(PROGRAM.format(then="print('end')"))
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    written, code = run_on_terminal(
        [sys.executable, "program.py"], folder=tmp_path, environment={**os.environ, "TERM": "xterm"}
    )
    assert (written, code) == ("begin\nend\n", 0)


def test_ctrl_c_leaves_nothing_but_its_traceback(tmp_path: Path) -> None:
    then = "os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "program.py").write_text(dedent(PROGRAM.format(then=then)), encoding="utf-8")
    written, code = run_on_terminal(
        [sys.executable, "program.py"], folder=tmp_path, environment={**os.environ, "TERM": "xterm"}
    )
    assert "step 7" in written
    assert code == -signal.SIGINT
    begin, traceback, *_, last, _ = screen_after(written, columns=500)
    assert (begin, traceback, last) == ("begin", "Traceback (most recent call last):", "KeyboardInterrupt")
