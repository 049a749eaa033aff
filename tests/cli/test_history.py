"""``pyrometer history``, and what ``pyrometer run`` adds to it."""

import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from pyrometer.store.history import append, read_history
from tests.cli.running import PLAIN, PROFILED, Ended, Folder
from tests.past_runs import MS, past_run

SLOWER = [10 * MS + step * 10_000 for step in range(8)] + [11 * MS + step * 10_000 for step in range(8)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    folder.environment.pop("CI", None)
    folder.write("program.py", "print('it ran')")
    return folder


def history_file(folder: Folder) -> Path:
    return Path(folder.environment["XDG_STATE_HOME"]) / "pyrometer" / "history.sqlite"


def ask(folder: Folder, *arguments: str) -> Ended:
    return folder.run(*PLAIN, "-m", "pyrometer", "history", *arguments)


def kept(folder: Folder) -> list[str]:
    return [run.program for run in read_history(history_file(folder)).runs]


def keep(folder: Folder, /, **fields: object) -> None:
    append(past_run(project=str(folder.programs), **fields), history_file(folder))


@pytest.mark.parametrize("options", [["--quiet"], ["--no-report"], []], ids=["quiet", "no report", "report"])
def test_a_run_is_kept_however_it_is_reported(folder: Folder, options: list[str]) -> None:
    ended = folder.run(*PROFILED, "-o", str(folder.run_file), *options, "program.py", "--size", "2")
    assert (ended.stdout, ended.code) == ("it ran\n", 0)
    (run,) = read_history(history_file(folder)).runs
    assert (run.program, run.outcome, run.folder) == ("program.py --size 2", "finished", "")
    assert (run.project, run.run_path) == (str(folder.programs), str(folder.run_file))
    assert run.profiled_ns == folder.record().profiled_ns
    assert (run.steps, run.torch_version) == (None, None)
    if not options:
        assert "program.py" in ended.stderr
        assert ended.stderr.endswith(f"pyrometer: run written to {folder.run_file}\n")
    elif options == ["--quiet"]:
        assert ended.stderr == ""


def test_a_run_that_fails_is_kept_and_marked_so(folder: Folder) -> None:
    folder.write("program.py", "raise KeyError('x')")
    assert folder.profiled("program.py").code == 1
    (run,) = read_history(history_file(folder)).runs
    assert (run.outcome, run.detail) == ("exception", "KeyError")


def test_a_run_that_is_terminated_is_kept_and_marked_so(folder: Folder) -> None:
    folder.write("program.py", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()")
    assert folder.profiled("program.py").code == -signal.SIGTERM
    (run,) = read_history(history_file(folder)).runs
    assert (run.outcome, run.detail) == ("signal", "SIGTERM")


def test_a_program_that_watches_its_children_hears_nothing_of_ours(folder: Folder) -> None:
    folder.write(
        "program.py", "import signal\nsignal.signal(signal.SIGCHLD, lambda *_: print('a child ended'))"
    )
    ended = folder.profiled("program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("", "", 0)
    assert kept(folder) == ["program.py"]


def test_a_program_that_is_in_a_project_is_kept_with_its_folder(folder: Folder) -> None:
    folder.write("pyproject.toml", "")
    folder.write("inner/program.py", "")
    ended = folder.run(
        "sh", "-c", f"cd inner && {' '.join(PROFILED)} --quiet -o {folder.run_file} program.py"
    )
    assert ended.code == 0
    (run,) = read_history(history_file(folder)).runs
    assert (run.project, run.folder, run.program) == (str(folder.programs), "inner", "program.py")


def test_who_does_not_want_a_history_has_none(folder: Folder) -> None:
    folder.profiled("--no-history", "program.py")
    folder.environment["PYROMETER_HISTORY"] = "0"
    folder.profiled("program.py")
    folder.environment["PYROMETER_HISTORY"] = ""
    folder.environment["CI"] = "true"
    folder.profiled("program.py")
    del folder.environment["CI"]
    folder.write("pyproject.toml", "[tool.pyrometer.run]\nhistory = false\n")
    folder.profiled("program.py")
    assert not history_file(folder).parent.exists()
    folder.environment["CI"] = "true"
    folder.profiled("--history", "program.py")
    assert kept(folder) == ["program.py"]


def test_times_under_valgrind_are_not_for_the_history(folder: Folder) -> None:
    ended = folder.profiled("--cachegrind", "--history", "program.py")
    assert ended.code == 2
    assert ended.stderr == (
        "pyrometer: --history keeps times, which mean nothing under --cachegrind; ask for one of them\n"
    )


@pytest.mark.parametrize("options", [("--quiet",), ()], ids=["quiet", "with a report"])
def test_a_history_that_cannot_be_written_costs_one_line(folder: Folder, options: tuple[str, ...]) -> None:
    Path(folder.environment["XDG_STATE_HOME"]).write_text("a file in the way")
    ended = folder.run(*PROFILED, "-o", str(folder.run_file), *options, "program.py")
    assert (ended.stdout, ended.code) == ("it ran\n", 0)
    lines = ended.stderr.splitlines()
    assert lines[0] == (
        f"pyrometer: the run is not in the history: {history_file(folder)}: Not a directory "
        "(pyrometer run --no-history does without)"
    )
    assert len(lines) == 1 or not options
    assert folder.record().outcome.status == "finished"


WITHOUT_SQLITE = """
import sys
sys.modules["sqlite3"] = None
from pyrometer.cli.app import run_command
sys.exit(run_command(sys.argv[1:]))
"""


def test_a_python_without_sqlite_costs_one_line_and_the_report_is_shown(folder: Folder) -> None:
    folder.profiled("program.py")
    folder.write("without_sqlite.py", WITHOUT_SQLITE)
    run = str(folder.run_file)
    ended = folder.run(*PLAIN, "without_sqlite.py", "history", "add", run, "--", "report", run)
    assert ended.code == 0
    assert ended.stdout.startswith("program.py ended")
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"pyrometer: the run is not in the history: {history_file(folder)}: ")
    assert "this Python was built without SQLite" in line


def test_a_damaged_history_is_put_aside_and_said_once(folder: Folder) -> None:
    history_file(folder).parent.mkdir(parents=True)
    history_file(folder).write_bytes(b"x" * 5_000)
    aside = history_file(folder).with_name("history.sqlite.damaged-1")
    assert folder.profiled("program.py").stderr == (
        f"pyrometer: the history was damaged: it is now {aside}, and a new one is begun\n"
    )
    assert folder.profiled("program.py").stderr == ""
    assert kept(folder) == ["program.py", "program.py"]


def test_without_runs_it_says_how_to_get_one(folder: Folder) -> None:
    ended = ask(folder)
    assert ended.stdout == (
        "No run is kept yet of this project; --all looks in others too. pyrometer run SCRIPT keeps one.\n"
    )
    assert (ended.stderr, ended.code) == ("", 0)
    assert not history_file(folder).exists()


def test_the_programs_of_this_project_are_listed(folder: Folder) -> None:
    keep(folder)
    keep(folder, program="other.py", name="other.py")
    append(past_run(project="/elsewhere", program="far.py"), history_file(folder))
    shown = ask(folder).stdout
    assert shown.startswith("2 runs of 2 programs\n")
    assert "other.py" in shown
    assert "far.py" not in shown
    everywhere = ask(folder, "--all").stdout
    assert everywhere.startswith("3 runs of 3 programs\n")
    assert "\n/elsewhere\n" in everywhere


def test_runs_that_the_trend_of_the_list_leaves_out_are_told(folder: Folder) -> None:
    def listed(*options: str) -> str:
        return " ".join(ask(folder, *options).stdout.split())

    for step_ns in SLOWER:
        keep(folder, step_p50_ns=step_ns)
    whole = listed()
    assert sum(whole.count(height) for height in "▁▂▃▄▅▆▇█") == 16
    assert "A trend is that of" not in whole
    keep(folder, step_p50_ns=11 * MS)
    keep(folder, step_p50_ns=11 * MS)
    cut = listed()
    assert sum(cut.count(height) for height in "▁▂▃▄▅▆▇█") == 16
    assert "A trend is that of the newest 16 runs where a program has more" in cut
    assert "A trend is that of the newest 5 runs" in listed("--last", "5")
    assert "A trend is that of" not in listed("train.py --batch-size 64")


def test_the_runs_of_a_program_are_shown_with_its_changes(folder: Folder) -> None:
    for step_ns in SLOWER:
        keep(folder, step_p50_ns=step_ns)
    by_name = ask(folder, "train.py")
    assert "10.0 ms → 11.0 ms (+10.0 %) from 2026-11-01 08:00 on" in by_name.stdout
    assert by_name.stdout.count(" finished\n") == 16
    assert ask(folder, "train.py --batch-size 64").stdout == by_name.stdout
    shorter = ask(folder, "train.py", "--last", "3").stdout
    assert shorter.count(" finished\n") == 3
    assert "13 older runs are not shown" in shorter
    assert "Changes: peak memory\nNone of 1 % or more" in ask(folder, "train.py", "--metric", "memory").stdout


def test_json_is_for_programs(folder: Folder) -> None:
    for step_ns in SLOWER:
        keep(folder, step_p50_ns=step_ns)
    programs = json.loads(ask(folder, "--json").stdout)["programs"]
    assert [(one["program"], len(one["runs"]), one["changes"]) for one in programs] == [
        ("train.py --batch-size 64", 16, None)
    ]
    (program,) = json.loads(ask(folder, "--json", "train.py").stdout)["programs"]
    assert [round(change["change_percent"], 1) for change in program["changes"]] == [10.0]
    assert json.loads(ask(folder, "--json", "--all").stdout)["path"] == str(history_file(folder))


def test_a_name_with_several_sets_of_arguments_lists_them(folder: Folder) -> None:
    keep(folder, program="train.py 1")
    keep(folder, program="train.py 2")
    ended = ask(folder, "train.py")
    assert "train.py 1" in ended.stdout
    assert "train.py was run in several ways: name one of these in quotes" in ended.stdout
    assert "\nRuns\n" in ask(folder, "train.py 2").stdout


def test_an_unknown_program_is_answered_with_those_there_are(folder: Folder) -> None:
    keep(folder, program="train.py \x1b[31m")
    ended = ask(folder, "tarin.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr == (
        "pyrometer: no run of 'tarin.py' is kept (kept here: train.py \\x1b[31m); pyrometer history lists "
        "them, with --all those of other projects too\n"
    )


def test_words_without_quotes_are_answered_with_the_command_that_was_meant(folder: Folder) -> None:
    ended = ask(folder, "train.py", "64")
    assert ended.code == 2
    assert ended.stderr.endswith("quote it with its arguments: pyrometer history 'train.py 64'\n")


def test_a_damaged_history_is_shown_as_one_line(folder: Folder) -> None:
    history_file(folder).parent.mkdir(parents=True)
    history_file(folder).write_bytes(b"x" * 5_000)
    ended = ask(folder)
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr == (
        f"pyrometer: {history_file(folder)}: file is not a database; remove the file to begin a new one\n"
    )


def test_entries_that_cannot_be_read_are_told(folder: Folder) -> None:
    keep(folder)
    keep(folder)
    with sqlite3.connect(history_file(folder)) as database:
        database.execute("UPDATE runs SET steps = 'many' WHERE id = 1")
    database.close()
    assert "1 entry of the history could not be read, and is left out." in ask(folder).stdout


def test_the_path_is_told(folder: Folder) -> None:
    assert ask(folder, "path").stdout == f"{history_file(folder)}\n"
    del folder.environment["XDG_STATE_HOME"], folder.environment["HOME"]
    ended = ask(folder, "path")
    assert ended.stderr == "pyrometer: there is no history without a home; set HOME or XDG_STATE_HOME\n"


def test_a_program_is_forgotten(folder: Folder) -> None:
    keep(folder, program="train.py 1")
    keep(folder, program="train.py 2")
    keep(folder, program="train.py 2")
    several = ask(folder, "forget", "train.py", "--yes")
    assert several.stderr == (
        "pyrometer: 'train.py' was run in several ways; name one of them: 'train.py 2', 'train.py 1'\n"
    )
    assert ask(folder, "forget", "train.py 2", "--yes").stderr == (
        "pyrometer: 2 runs forgotten; run files are where they were\n"
    )
    assert kept(folder) == ["train.py 1"]


def test_a_module_is_shown_and_forgotten_as_it_was_typed(folder: Folder) -> None:
    keep(folder, program="-m pkg.train --lr 1", name="pkg.train")
    keep(folder, program="-m pkg.train --lr 2", name="pkg.train")
    shown = ask(folder, "-m pkg.train --lr 1", "--last", "5")
    assert (shown.code, shown.stderr) == (0, "")
    assert shown.stdout.startswith("-m pkg.train --lr 1\n")
    assert ask(folder, "forget", "--yes", "-m pkg.train --lr 1").code == 0
    assert kept(folder) == ["-m pkg.train --lr 2"]


def test_the_same_program_in_several_folders_is_named_as_it_is_shown(folder: Folder) -> None:
    for inside in ("", "exp1", "exp2"):
        keep(folder, program="train.py", folder=inside)
    listed = ask(folder).stdout
    for name in ("train.py (in .)", "train.py (in exp1)", "train.py (in exp2)"):
        assert name in listed
        assert "\nRuns\n" in ask(folder, name).stdout
    assert ask(folder, "forget", "train.py (in exp1)", "--yes").stderr == (
        "pyrometer: 1 run forgotten; run files are where they were\n"
    )
    keep(folder, program="other.py", name="other.py", folder="exp1")
    keep(folder, program="other.py", name="other.py", folder="exp2")
    assert ask(folder, "forget", "other.py", "--yes").stderr == (
        "pyrometer: 'other.py' was run in several ways; name one of them: 'other.py (in exp2)', "
        "'other.py (in exp1)'\n"
    )


def test_nothing_is_forgotten_without_a_yes(folder: Folder) -> None:
    keep(folder)
    command = (*PLAIN, "-m", "pyrometer", "history", "forget", "--all")
    assert folder.run(*command, given="n\n").code == 1
    assert len(kept(folder)) == 1
    assert folder.run(*command, given="y\n").code == 0
    assert kept(folder) == []


@pytest.mark.parametrize("words", [["forget"], ["forget", "a.py", "--all"], ["forget", "a.py", "b.py"]])
def test_what_to_forget_is_to_be_said(folder: Folder, words: list[str]) -> None:
    ended = ask(folder, *words, "--yes")
    assert ended.code == 2
    assert "say what to forget" in ended.stderr


def test_ranks_of_torchrun_all_land_and_count_as_one(folder: Folder) -> None:
    command = [*PROFILED, "--quiet", "-o", str(folder.run_file), "program.py"]
    folder.environment["WORLD_SIZE"] = "4"
    started = []
    for rank in range(4):
        folder.environment["RANK"] = str(rank)
        started.append(folder.start(command))
    assert [process.communicate()[1] for process in started] == [""] * 4
    assert sorted(run.rank or 0 for run in read_history(history_file(folder)).runs) == [0, 1, 2, 3]
    assert "3 runs of other ranks are kept and not shown" in ask(folder, "program.py").stdout


def test_the_program_itself_never_loads_sqlite(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import atexit, sys
        import pyrometer.session
        from pyrometer.capture.clean_process import CleanProcess
        def add(self, run_path, add=CleanProcess.add_to_history):
            add(self, run_path)
            print("sqlite3" in sys.modules, "pyrometer.store.history" in sys.modules)
        CleanProcess.add_to_history = add
        """,
    )
    assert folder.profiled("program.py").stdout == "False False\n"
    assert kept(folder) == ["program.py"]


@pytest.mark.torch
def test_the_steps_of_a_training_program_are_kept(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import torch

        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters())
        for inputs in torch.utils.data.DataLoader(torch.ones(80, 4), batch_size=8):
            model(inputs).sum().backward()
            optimizer.step()
        """,
    )
    assert folder.profiled("--warmup", "2", "program.py").code == 0
    (run,) = read_history(history_file(folder)).runs
    assert run.steps == 10
    assert run.step_p50_ns is not None
    assert run.step_p95_ns is not None
    assert 0 < run.step_p50_ns <= run.step_p95_ns
    assert (run.samples_per_s or 0) > 0
    assert run.watched.endswith("warm-up 2")
    assert os.path.isabs(run.run_path)  # noqa: PTH117 - it is a text in the history
