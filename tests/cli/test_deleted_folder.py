"""Where the working directory has been deleted, a program still runs as with plain Python."""

from pathlib import Path

import pytest

from tests.cli.running import PLAIN, PROFILED, Ended, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def run_in_deleted_folder(folder: Folder, *command: str) -> Ended:
    return folder.run("bash", "-c", 'mkdir gone && cd gone && rmdir ../gone && "$@"', "bash", *command)


def test_a_program_runs_and_is_recorded(folder: Folder) -> None:
    folder.write(
        "program.py", "import sys\nimport pyrometer\nwith pyrometer.scope('a'):\n    print(sys.path)"
    )
    program = str(folder.programs / "program.py")
    plain = run_in_deleted_folder(folder, *PLAIN, program)
    profiled = run_in_deleted_folder(folder, *PROFILED, "-o", str(folder.run_file), program)
    assert (profiled.stdout, profiled.code) == (plain.stdout, plain.code) == (plain.stdout, 0)
    assert "Machine and software" in profiled.stderr
    assert profiled.stderr.endswith(f"run written to {folder.run_file}\n")
    assert [node.name for node in folder.record().scopes()] == ["a"]


def test_a_run_without_a_place_is_refused_in_one_line(folder: Folder) -> None:
    folder.write("program.py", "print('never')")
    ended = run_in_deleted_folder(folder, *PROFILED, str(folder.programs / "program.py"))
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr.startswith("pyrometer: cannot make the folder ")
    assert ended.stderr.endswith("name another place with -o\n")
    assert ended.stderr.count("\n") == 1


def test_the_report_can_be_asked_for(folder: Folder) -> None:
    folder.write("program.py", "import pyrometer\nprint('No scope was entered' in pyrometer.report())")
    ended = run_in_deleted_folder(folder, *PLAIN, str(folder.programs / "program.py"))
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_the_doctor_says_that_nothing_can_be_written(folder: Folder) -> None:
    ended = run_in_deleted_folder(folder, *PLAIN, "-m", "pyrometer", "doctor")
    assert (ended.stderr, ended.code) == ("", 0)
    assert "working directory" in ended.stdout
    assert "cannot be written to: No such file or directory" in ended.stdout


def test_there_is_no_run_to_report(folder: Folder) -> None:
    ended = run_in_deleted_folder(folder, *PLAIN, "-m", "pyrometer", "report")
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr.startswith("pyrometer: There is no run in ")
