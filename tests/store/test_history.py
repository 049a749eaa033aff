"""The history on disk: all runs land, it stays bounded, and damage costs one line."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pyrometer.errors import UsageError
from pyrometer.store import history
from pyrometer.store.history import (
    HistoryError,
    Kept,
    append,
    forget,
    history_path,
    project_of,
    read_history,
)
from pyrometer.store.settings import wants_history
from tests.past_runs import TYPICAL, past_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "pyrometer" / "history.sqlite"


def refusal(past_path: Path, *, wait_s: float = 0.01) -> str:
    with pytest.raises(HistoryError) as caught:
        append(TYPICAL, past_path, wait_s=wait_s)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("environment", "platform", "place"),
    [
        ({"HOME": "/home/ada"}, "linux", "/home/ada/.local/state/pyrometer/history.sqlite"),
        ({"HOME": "/home/ada", "XDG_STATE_HOME": "/state"}, "linux", "/state/pyrometer/history.sqlite"),
        (
            {"HOME": "/home/ada", "XDG_STATE_HOME": "here"},
            "linux",
            "/home/ada/.local/state/pyrometer/history.sqlite",
        ),
        (
            {"HOME": "/Users/ada"},
            "darwin",
            "/Users/ada/Library/Application Support/pyrometer/history.sqlite",
        ),
    ],
)
def test_the_history_is_in_the_users_state_folder(
    environment: dict[str, str], platform: str, place: str
) -> None:
    assert history_path(environment, platform=platform) == Path(place)


def test_without_a_home_there_is_no_history() -> None:
    assert history_path({}) is None
    assert read_history(None) == Kept(runs=(), unreadable=0)
    with pytest.raises(HistoryError, match="neither HOME nor XDG_STATE_HOME"):
        append(TYPICAL, None)


def test_runs_come_back_as_they_were_in_the_order_they_ended(path: Path) -> None:
    bare = past_run(
        rank=3, commit=None, dirty=None, outcome="exception", detail="ValueError", steps=None,
        step_p50_ns=None, step_p95_ns=None, samples_per_s=None, peak_host_bytes=None,
        torch_version=None, threads=None, cpu_model=None, usable_cores=None,
    )  # fmt: skip
    dirty = past_run(dirty=True, tokens_per_s=1.5, profiled_ns=2**63 - 1)
    for run in (TYPICAL, bare, dirty):
        assert append(run, path) is None
    assert read_history(path) == Kept(runs=(TYPICAL, bare, dirty), unreadable=0)


def test_only_the_user_may_read_it(path: Path) -> None:
    append(TYPICAL, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_names_that_are_no_text_are_kept(path: Path) -> None:
    append(past_run(program="train\udcff.py", name="a\x00b\n"), path)
    (run,) = read_history(path).runs
    assert (run.program, run.name) == ("train\\udcff.py", "a\x00b\n")


ADDING = """
import sys
from pathlib import Path
from pyrometer.store.history import append
from tests.past_runs import past_run
path, process, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.read()
for number in range(times):
    print(append(past_run(program=f"{process} {number}"), path, wait_s=120))
"""


def add_all_at_once(path: Path, *, processes: int, times: int) -> list[str]:
    """What each process got back from each time it added a run, all beginning at the same moment."""
    waiting, go = os.pipe()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ADDING, path, str(index), str(times)],
            cwd=Path(__file__).parents[2],
            stdin=waiting,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(processes)
    ]
    os.close(waiting)
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    os.close(go)
    told = [line for process in started for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in started] == [0] * processes
    return told


def test_many_processes_at_once_all_add_theirs(path: Path) -> None:
    assert add_all_at_once(path, processes=8, times=10) == ["None"] * 80
    kept = {run.program for run in read_history(path).runs}
    assert kept == {f"{index} {number}" for index in range(8) for number in range(10)}


def test_many_processes_that_find_it_damaged_put_it_aside_once(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 1_000)
    aside = path.with_name("history.sqlite.damaged-1")
    told = add_all_at_once(path, processes=6, times=1)
    assert sorted(told) == sorted([str(aside), *["None"] * 5])
    assert {run.program for run in read_history(path).runs} == {f"{index} 0" for index in range(6)}


def test_what_another_process_has_just_begun_anew_is_not_put_aside(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 1_000)
    put_aside = history._put_aside

    def come_late(damaged: Path, wait_s: float) -> Path | None:
        monkeypatch.setattr(history, "_put_aside", put_aside)
        assert append(past_run(program="of the other"), path) is not None
        return put_aside(damaged, wait_s)

    monkeypatch.setattr(history, "_put_aside", come_late)
    assert append(past_run(program="ours"), path) is None
    assert [run.program for run in read_history(path).runs] == ["of the other", "ours"]


def test_the_oldest_runs_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_RUNS", 3)
    for number in range(5):
        append(past_run(program=str(number)), path)
    assert [run.program for run in read_history(path).runs] == ["2", "3", "4"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"something else altogether".ljust(len(content)),
        lambda content: content[:100] + bytes(len(content) - 100),
        lambda content: content[:4096] + b"\xff" * (len(content) - 4096),
        lambda content: content[: len(content) // 2],
    ],
    ids=["other content", "zeros", "a broken page", "cut off"],
)
def test_a_damaged_history_is_put_aside_and_a_new_one_begun(
    path: Path, damage: Callable[[bytes], bytes]
) -> None:
    for _ in range(100):
        append(TYPICAL, path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    aside = append(past_run(program="new"), path)
    assert aside == path.with_name("history.sqlite.damaged-1")
    assert aside.read_bytes() == damaged
    assert [run.program for run in read_history(path).runs] == ["new"]
    assert append(TYPICAL, path) is None


def test_damaged_histories_are_numbered(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for number in (1, 2):
        path.write_bytes(b"x" * 2_000)
        assert append(TYPICAL, path) == path.with_name(f"history.sqlite.damaged-{number}")


def test_reading_a_damaged_history_says_so_and_leaves_it(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 2_000)
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert str(caught.value) == f"{path}: file is not a database; remove the file to begin a new one"
    assert path.read_bytes() == b"x" * 2_000


def test_rows_of_something_else_are_left_out_and_counted(path: Path) -> None:
    append(TYPICAL, path)
    append(TYPICAL, path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE runs SET profiled_ns = 'long' WHERE id = 1")
    database.close()
    assert read_history(path) == Kept(runs=(TYPICAL,), unreadable=1)


def test_a_history_that_is_locked_is_told_in_a_line(path: Path) -> None:
    append(TYPICAL, path)
    holding = sqlite3.connect(path, isolation_level=None)
    holding.execute("BEGIN EXCLUSIVE")
    try:
        assert refusal(path) == f"{path}: database is locked"
    finally:
        holding.close()


def test_a_history_of_a_newer_version_is_neither_read_nor_changed(path: Path) -> None:
    append(TYPICAL, path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    content = path.read_bytes()
    problem = (
        f"{path}: its version is 2, and this Pyrometer knows 1; remove it, or set XDG_STATE_HOME to another "
        "folder"
    )
    assert refusal(path) == problem
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert str(caught.value) == problem
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE recipes (name)")
    database.close()
    content = path.read_bytes()
    assert "a database of something else" in refusal(path)
    assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file" / "pyrometer" / "history.sqlite").endswith(": Not a directory")
    (tmp_path / "history.sqlite").mkdir()
    assert refusal(tmp_path / "history.sqlite").endswith(": Is a directory")


def test_a_python_without_sqlite_says_so_in_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(TYPICAL, path)
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert "this Python was built without SQLite" in refusal(path)
    with pytest.raises(HistoryError, match="built without SQLite"):
        read_history(path)


def test_a_named_pipe_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert "not a regular file" in refusal(path)
    with pytest.raises(HistoryError, match="not a regular file"):
        read_history(path)


def test_what_is_forgotten_is_gone_from_the_file(path: Path) -> None:
    secret = past_run(program="train.py --token hush-hush")
    for run in (TYPICAL, secret, secret):
        append(run, path)
    assert b"hush-hush" in path.read_bytes()
    assert forget([secret.place], path) == 2
    assert read_history(path).runs == (TYPICAL,)
    assert b"hush-hush" not in path.read_bytes()
    assert forget(None, path) == 1
    assert read_history(path).runs == ()


def test_there_is_nothing_to_read_or_forget_before_the_first_run(path: Path) -> None:
    assert read_history(path).runs == ()
    assert forget(None, path) == 0
    assert not path.parent.exists()


def test_a_project_is_the_nearest_folder_with_settings_or_a_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "library" / "examples"
    inner.mkdir(parents=True)
    assert project_of(inner) == (str(inner), "")
    (tmp_path / "repository" / ".git").mkdir()
    assert project_of(inner) == (str(tmp_path / "repository"), "library/examples")
    (tmp_path / "repository" / "library" / "pyproject.toml").write_text("")
    assert project_of(inner) == (str(tmp_path / "repository" / "library"), "examples")


@pytest.mark.parametrize(
    ("asked", "setting", "environment", "wanted"),
    [
        (None, True, {}, True),
        (None, False, {}, False),
        (True, False, {}, True),
        (False, True, {}, False),
        (None, True, {"CI": "true"}, False),
        (None, True, {"CI": "false"}, True),
        (True, True, {"CI": "true"}, True),
        (None, True, {"PYROMETER_HISTORY": "0"}, False),
        (None, False, {"PYROMETER_HISTORY": "1", "CI": "1"}, True),
        (True, True, {"PYROMETER_HISTORY": "0"}, True),
    ],
)
def test_the_option_goes_before_the_environment_before_the_project(
    asked: bool | None, setting: bool, environment: dict[str, str], wanted: bool
) -> None:
    assert wants_history(asked=asked, setting=setting, environment=environment) is wanted


def test_a_variable_that_says_neither_yes_nor_no_is_refused() -> None:
    with pytest.raises(UsageError, match="PYROMETER_HISTORY is 'maybe', but must be 0 or 1"):
        wants_history(asked=None, setting=True, environment={"PYROMETER_HISTORY": "maybe"})
