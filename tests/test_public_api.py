"""The public face: what it has, what each part promises, and that it stays."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pyrometer
from pyrometer.store.run_files import read_run


def test_the_public_names_are_these() -> None:
    assert sorted(pyrometer.__all__) == [
        "PyrometerError",
        "__version__",
        "add_profile_flag",
        "benchmark",
        "phase",
        "profile",
        "profiled",
        "report",
        "reset",
        "results",
        "scope",
        "step",
    ]


@pytest.mark.parametrize("name", pyrometer.__all__)
def test_every_public_name_is_there_and_explained(name: str) -> None:
    assert getattr(pyrometer, name).__doc__


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'stop_watch'"):
        _ = pyrometer.stop_watch


@pytest.mark.usefixtures("clean_recorder")
def test_scopes_are_recorded_inside_profile_and_nowhere_else() -> None:
    with pyrometer.scope("before"):
        pass
    with pyrometer.profile(), pyrometer.scope("inside"):
        pass
    with pyrometer.scope("after"):
        pass
    assert [scope.name for scope in pyrometer.results().scopes] == ["inside"]


@pytest.mark.usefixtures("clean_recorder")
def test_stretches_nest_and_add_up() -> None:
    for _ in range(2):
        with pyrometer.profile():
            with pyrometer.profile():
                pass
            with pyrometer.scope("still on"):
                pass
    (scope,) = pyrometer.results().scopes
    assert scope.calls == 2


@pytest.mark.usefixtures("clean_recorder")
def test_the_report_is_text_and_can_be_asked_for_again() -> None:
    with pyrometer.profile(), pyrometer.scope("forward"):
        pass
    first, second = pyrometer.report(), pyrometer.report(top=1)
    assert "forward" in first
    assert "forward" in second


@pytest.mark.usefixtures("clean_recorder")
def test_the_report_can_show_each_thread_by_itself() -> None:
    with pyrometer.profile(), pyrometer.scope("main"):
        thread = threading.Thread(target=pyrometer.profiled("work")(lambda: None), name="worker")
        thread.start()
        thread.join()
    assert "worker, started in main" in pyrometer.report(by_thread=True)
    assert "worker, started in main" not in pyrometer.report()


@pytest.mark.usefixtures("clean_recorder")
def test_reset_forgets() -> None:
    with pyrometer.profile():
        with pyrometer.scope("forgotten"):
            pass
        pyrometer.reset()
        with pyrometer.scope("kept"):
            pass
    assert [scope.name for scope in pyrometer.results().scopes] == ["kept"]


def run_with_variable(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYROMETER": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_variable_profiles_a_program_from_the_import_on(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise SystemError('not for you')")
    (tmp_path / "program.py").write_text(
        "import sys, pyrometer\nwith pyrometer.scope('marked'):\n    print('mine')\nsys.exit(3)\n"
    )
    ended = run_with_variable(tmp_path, "program.py")
    assert (ended.stdout, ended.returncode) == ("mine\n", 3)
    assert "marked" in ended.stderr
    (path,) = (tmp_path / "pyrometer-runs").glob("program-*/run.json")
    assert ended.stderr.endswith(f"pyrometer: run written to {path}\n")
    run = read_run(path)
    assert (run.program.name, run.outcome.status) == ("program.py", "finished")
    assert [node.name for node in run.scopes()] == ["marked"]


def test_the_variable_leaves_our_own_command_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import pyrometer\npyrometer.scope('marked').__enter__()\n")
    ended = run_with_variable(
        tmp_path, "-m", "pyrometer", "run", "-o", "run.json", "--no-report", "program.py"
    )
    assert ended.stderr == f"pyrometer: run written to {tmp_path / 'run.json'}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "run.json"]
    assert [node.name for node in read_run(tmp_path / "run.json").scopes()] == ["marked"]


def test_a_place_that_cannot_be_written_to_leaves_the_program_unprofiled(tmp_path: Path) -> None:
    (tmp_path / "pyrometer-runs").write_text("in the way")
    ended = run_with_variable(tmp_path, "-c", "import pyrometer; print('runs')")
    assert (ended.stdout, ended.returncode) == ("runs\n", 0)
    assert ended.stderr.startswith("pyrometer: PYROMETER=1: the program runs unprofiled: ")
    assert ended.stderr.count("\n") == 1
