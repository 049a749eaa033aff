"""What commands that measure have in common."""

import os
import sys
from pathlib import Path

import pytest

from pyrometer.cli import app
from pyrometer.cli.measuring import SAID_EVERY_S, ProgressLine, tell_of_file_systems


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter((0.0, SAID_EVERY_S - 1, SAID_EVERY_S, SAID_EVERY_S, SAID_EVERY_S + 1))
    line = ProgressLine(now_s=lambda: next(clock))
    line.show("pair 1")
    line.show("pair 2\x1b[2J")
    line.show("pair 3")
    line.clear()
    assert capsys.readouterr().err == "pyrometer: pair 2\\x1b[2J\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second file system")
def test_sides_on_different_file_systems_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    tell_of_file_systems([tmp_path, tmp_path / "other"])
    assert capsys.readouterr().err == ""
    tell_of_file_systems([tmp_path, Path("/proc")])
    told = capsys.readouterr().err
    assert told.startswith(f"pyrometer: {tmp_path} and /proc are on different file systems")
    assert "TMPDIR" in told


@pytest.mark.parametrize(("code", "told"), [(4, 4), (0, 1)])
def test_a_reader_who_has_gone_before_the_end_hides_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, code: int, told: int
) -> None:
    def run(_: object) -> int:
        sys.stdout.write("a verdict")
        return code

    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(app, "_run", run)
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert app.run_command([]) == told
