"""Streams that are closed, full or broken, for our commands and for programs under them."""

import shlex
import sys
from pathlib import Path

import pytest

from pyrometer.store.run_files import write_run
from tests.cli.running import PLAIN, PROFILED, Ended, Folder
from tests.report.sample_runs import simple_run

COMMANDS = ("report run.json", "doctor", "--version", "run --help")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    write_run(simple_run(), folder.programs / "run.json")
    return folder


def in_shell(folder: Folder, command: tuple[str, ...], redirection: str) -> Ended:
    return folder.run("bash", "-c", f"set -o pipefail; {shlex.join(command)} {redirection}")


@pytest.mark.parametrize("options", [(), ("--quiet",)], ids=["with the report", "quiet"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_program_without_streams_runs_as_with_plain_python(
    folder: Folder, closed: str, options: tuple[str, ...]
) -> None:
    folder.write(
        "program.py",
        """
        import os, sys
        with open("lowest", "w") as lowest:
            print(sys.stdin is None, sys.stdout is None, sys.stderr is None, lowest.fileno(), file=lowest)
        kept_open = open("mine", "w")
        """,
    )
    plain = in_shell(folder, (*PLAIN, "program.py"), closed)
    seen = (folder.programs / "lowest").read_text()
    profiled = in_shell(folder, (*PROFILED, *options, "-o", str(folder.run_file), "program.py"), closed)
    assert (profiled.stdout, profiled.code) == (plain.stdout, plain.code)
    assert "Traceback" not in profiled.stderr
    assert (folder.programs / "lowest").read_text() == seen
    assert (folder.programs / "mine").read_text() == ""
    assert folder.record().outcome.status == "finished"


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_without_a_stream_still_does_its_work(folder: Folder, command: str, closed: str) -> None:
    ended = in_shell(folder, (sys.executable, "-m", "pyrometer", *command.split()), closed)
    assert (ended.stderr, ended.code) == ("", 0)
    assert bool(ended.stdout) == (closed == "2>&-")


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_one_line(folder: Folder, command: str) -> None:
    ended = in_shell(folder, (sys.executable, "-m", "pyrometer", *command.split()), ">/dev/full")
    assert ended.stderr == "pyrometer: the output cannot be written: No space left on device\n"
    assert ended.code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_who_has_left_is_no_reason_to_complain(folder: Folder, command: str) -> None:
    # The reader is gone before the command starts, so that there is no race between them.
    script = f"exec 3> >(true); wait $!; {shlex.join((sys.executable, '-m', 'pyrometer'))} {command} >&3"
    ended = folder.run("bash", "-c", script)
    assert (ended.stdout, ended.stderr, ended.code) == ("", "", 1)


def test_an_error_that_nobody_can_read_still_has_its_exit_code(folder: Folder) -> None:
    ended = in_shell(folder, (sys.executable, "-m", "pyrometer", "report", "missing.json"), "2>/dev/full")
    assert (ended.stdout, ended.stderr, ended.code) == ("", "", 2)
