"""pyrometer baseline: save, list, show and remove, as they are typed."""

import json
from pathlib import Path

import msgspec
import pytest

from pyrometer.cli.app import run_command
from pyrometer.record.run import GitState, Outcome, Run
from pyrometer.store.baseline_files import load_saved_runs
from pyrometer.store.run_files import write_run
from tests.limits import make_limits
from tests.report.sample_runs import simple_run
from tests.torch_runs import training_run

replace = msgspec.structs.replace


def known_run() -> Run:
    """A run of committed code of which every fact is recorded."""
    run = training_run()
    return replace(
        run,
        program=replace(run.program, git=GitState(commit="a" * 40, dirty=False), source_sha256="1" * 64),
        machine=replace(run.machine, cpu_flags=("avx2",)),
        software=replace(run.software, blas="MKL", torch_threads=2, thread_variables={}),
        limits=make_limits(),
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "scripts").mkdir()
    monkeypatch.chdir(tmp_path)
    write_run(known_run(), tmp_path / "run.json")
    return tmp_path


def test_a_run_is_saved_listed_shown_and_removed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "benchmarks" / "main.json"
    assert run_command(["baseline", "save", "main", "run.json"]) == 0
    assert capsys.readouterr() == (
        "",
        f"pyrometer: baseline main saved to {file}: 1 configuration, 1 run\n",
    )
    assert load_saved_runs("main", folder=project) == {"train.py --epochs 3": (known_run(),)}
    assert run_command(["baseline", "list"]) == 0
    assert "main train.py aaaaaaaaa 97 10.0 ms" in " ".join(capsys.readouterr().out.split())
    assert run_command(["baseline", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "main"
    assert run_command(["baseline", "show", "main"]) == 0
    assert capsys.readouterr().out.startswith("Baseline main, saved ")
    assert run_command(["baseline", "show", "main", "--json"]) == 0
    assert capsys.readouterr().out == file.read_text()
    assert run_command(["baseline", "remove", "main", "--yes"]) == 0
    assert capsys.readouterr().err == f"pyrometer: baseline main removed: {file}\n"
    assert not file.exists()


def test_the_project_is_found_from_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "scripts")
    assert run_command(["baseline", "save", "main", "../run.json"]) == 0
    assert (project / "benchmarks" / "main.json").exists()


def test_what_will_keep_comparisons_from_a_verdict_is_told_at_once(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = replace(simple_run(), program=replace(simple_run().program, git=None))
    write_run(old, project / "old.json")
    assert run_command(["baseline", "save", "old", "old.json"]) == 0
    told = capsys.readouterr().err
    for line in (
        "the baseline's commit is not recorded: record it again, from code in a git repository\n",
        "BLAS: not recorded (in this run); record the run again\n",
        "measured limits: not recorded (in this run); measure them on that machine with: pyrometer limits",
    ):
        assert f"pyrometer: mind: {line}" in told


@pytest.mark.usefixtures("project")
def test_a_baseline_is_not_removed_without_a_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_command(["baseline", "save", "main", "run.json"])
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run_command(["baseline", "remove", "main"]) == 2
    assert capsys.readouterr().err.endswith("add --yes\n")
    assert Path("benchmarks/main.json").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["save", "../main", "run.json"], "a baseline cannot be named '../main'"),
        (["save", "notes", "run.json"], "exists and is not a baseline that could be added to"),
        (["save", "main", "none.json"], "none.json: there is no such file"),
        (["save", "main", "run.json", "run.json"], "is given twice"),
        (["save", "main", "failed.json"], "did not finish (exception: \\x1b[31mError)"),
        (["show", "none"], "No baseline named 'none' (saved: none yet)"),
        (["remove", "none"], "No baseline named 'none' (saved: none yet)"),
        (["remove", "notes", "--yes"], "is not a baseline, and stays"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    project: Path, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "benchmarks").mkdir()
    notes = project / "benchmarks" / "notes.json"
    notes.write_text("{}")
    failed = Outcome(status="exception", detail="\x1b[31mError")
    write_run(replace(known_run(), outcome=failed), project / "failed.json")
    assert run_command(["baseline", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert problem in shown.err
    assert [path.name for path in (project / "benchmarks").iterdir()] == ["notes.json"]
    assert notes.read_text() == "{}"


def test_a_baseline_that_is_damaged_is_listed_with_its_problem_and_can_be_removed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(["baseline", "save", "main", "run.json"])
    file = project / "benchmarks" / "main.json"
    file.write_text(f"<<<<<<< HEAD\n{file.read_text()}")
    capsys.readouterr()
    assert run_command(["baseline", "list"]) == 0
    listed = capsys.readouterr().out
    assert "Cannot be read" in listed
    assert "main.json" in "".join(listed.split())  # a long path is broken into lines
    assert run_command(["baseline", "list", "--json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    assert one["name"] == "main"
    assert "malformed" in one["problem"]
    assert run_command(["baseline", "remove", "main", "--yes"]) == 0
    assert not file.exists()


def test_a_folder_of_runs_is_saved_as_it_is_compared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [replace(known_run(), started_at=f"2026-01-02T03:0{index}:00+00:00") for index in range(3)]
    for index, run in enumerate(runs):
        write_run(run, project / "before" / f"{index}.json")
    (project / "before" / "loss.json").write_text('{"loss": NaN}')
    write_run(known_run(), project / "pyrometer-runs" / "train" / "run.json")
    assert run_command(["baseline", "save", "main", "before", "pyrometer-runs"]) == 0
    told = capsys.readouterr().err
    assert "before/loss.json is left out" in told
    assert "1 configuration, 4 runs" in told
    assert load_saved_runs("main", folder=project) == {"train.py --epochs 3": (*runs, known_run())}
    assert run_command(["baseline", "save", "main", "before", "before/0.json"]) == 2
    assert "is given twice" in capsys.readouterr().err


def test_a_program_of_the_same_name_in_another_folder_replaces_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (project / "exp1", project / "exp2"):
        program = replace(known_run().program, working_directory=str(folder))
        write_run(replace(known_run(), program=program), folder / "run.json")
    assert run_command(["baseline", "save", "main", "exp1/run.json"]) == 0
    monkeypatch.chdir(project / "exp2")
    capsys.readouterr()
    assert run_command(["baseline", "save", "main", "run.json"]) == 2
    told = capsys.readouterr().err
    assert f"was run in {project / 'exp1'} and in {project / 'exp2'}, which may be two programs" in told
    [[kept]] = load_saved_runs("main", folder=project).values()
    assert kept.program.working_directory == str(project / "exp1")
    assert run_command(["baseline", "save", "main", "run.json", "--force"]) == 0


@pytest.mark.usefixtures("project")
def test_a_program_that_failed_is_saved_where_that_is_wanted(project: Path) -> None:
    write_run(replace(known_run(), outcome=Outcome(status="signal", detail="SIGTERM")), project / "f.json")
    assert run_command(["baseline", "save", "main", "f.json", "--force"]) == 0


def test_a_report_as_a_baseline_puts_no_program_that_failed_in_the_place_of_saved_runs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(["baseline", "save", "main", "run.json"])
    write_run(replace(known_run(), outcome=Outcome(status="exception", detail="Error")), project / "f.json")
    capsys.readouterr()
    assert run_command(["report", "f.json", "--format", "baseline", "-o", "benchmarks/main.json"]) == 2
    told = capsys.readouterr().err
    assert "did not finish (exception: Error)" in told
    assert "if it should: pyrometer baseline save main RUN --force" in told
    assert load_saved_runs("main", folder=project) == {"train.py --epochs 3": (known_run(),)}


def test_a_report_as_a_baseline_into_a_saved_one_keeps_its_run_too(project: Path) -> None:
    run_command(["baseline", "save", "main", "run.json"])
    other = replace(known_run().program, argv=("train.py", "--epochs", "4"))
    newer = replace(known_run(), program=other)
    write_run(newer, project / "newer.json")
    into = ["-o", "benchmarks/main.json"]
    assert run_command(["report", "newer.json", "--format", "baseline", *into]) == 0
    assert load_saved_runs("main", folder=project) == {
        "train.py --epochs 3": (known_run(),),
        "train.py --epochs 4": (newer,),
    }
