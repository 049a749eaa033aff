"""Recording until the program ends, as a program's own ``--profile`` asks for it."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import pyrometer
from pyrometer.errors import PyrometerError
from pyrometer.store.run_files import read_run

PREPARED = """
    from pathlib import Path
    import pyrometer
    from pyrometer.session import profile_until_exit
"""


def run(folder: Path, source: str, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(dedent(PREPARED) + dedent(source), encoding="utf-8")
    return subprocess.run(
        [sys.executable, *command, "program.py"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_without_a_file_only_the_report_is_left(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
        profile_until_exit(output=None)
        with pyrometer.scope("marked"):
            print("mine")
        """,
    )
    assert ended.stdout == "mine\n"
    assert "marked" in ended.stderr
    assert "run written to" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_a_second_call_adds_the_file_and_starts_nothing_anew(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
        profile_until_exit(output=None)
        with pyrometer.scope("between"):
            pass
        profile_until_exit(output=Path("kept.json"))
        """,
    )
    assert ended.stderr.count("Machine and software") == 1
    recorded = read_run(tmp_path / "kept.json")
    assert [node.name for node in recorded.scopes()] == ["between"]
    assert recorded.outcome.status == "finished"


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("my notes")
    ended = run(tmp_path, "profile_until_exit(output=Path('kept.json'))\nprint('never')")
    assert ended.stdout == ""
    assert "is not a run that could be replaced" in ended.stderr
    assert (tmp_path / "kept.json").read_text() == "my notes"


def test_under_pyrometer_run_both_files_are_written(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
        profile_until_exit(output=Path("asked_for_inside.json"))
        with pyrometer.scope("marked"):
            pass
        """,
        *("-m", "pyrometer", "run", "-o", "asked_for_outside.json"),
    )
    assert ended.stderr.count("Machine and software") == 1
    for name in ("asked_for_inside.json", "asked_for_outside.json"):
        assert [node.name for node in read_run(tmp_path / name).scopes()] == ["marked"]
        assert str(tmp_path / name) in ended.stderr


def test_a_moved_working_directory_does_not_move_the_file(tmp_path: Path) -> None:
    run(tmp_path, "import os\nprofile_until_exit(output=Path('kept.json'))\nos.chdir('/')")
    assert read_run(tmp_path / "kept.json").outcome.status == "finished"


def test_results_and_report_can_be_asked_for_while_it_records(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
        profile_until_exit(output=Path("kept.json"))
        with pyrometer.scope("marked"):
            print([scope.open_calls for scope in pyrometer.results().scopes], "marked" in pyrometer.report())
        """,
    )
    assert ended.stdout == "[1] True\n"


@pytest.mark.usefixtures("clean_recorder")
@pytest.mark.parametrize("top", [0, -1, 2.5, True, "5", None])
def test_a_number_of_scopes_that_is_none_is_refused(top: Any) -> None:
    with pytest.raises(PyrometerError, match=f"top is {top!r}, but must be a whole number from 1"):
        pyrometer.report(top=top)
