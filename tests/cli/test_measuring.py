"""What commands that measure have in common."""

import pytest

from pyrometer.cli.measuring import SAID_EVERY_S, ProgressLine


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter((0.0, SAID_EVERY_S - 1, SAID_EVERY_S, SAID_EVERY_S, SAID_EVERY_S + 1))
    line = ProgressLine(now_s=lambda: next(clock))
    line.show("pair 1")
    line.show("pair 2\x1b[2J")
    line.show("pair 3")
    line.clear()
    assert capsys.readouterr().err == "pyrometer: pair 2\\x1b[2J\n"
