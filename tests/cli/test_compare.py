"""pyrometer compare, as it is typed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from pyrometer.analysis.comparison.model import Comparison
from pyrometer.cli.app import run_command
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.store.run_files import read_run, write_run
from tests.compared_runs import Net, many_runs, net_run
from tests.limits import make_limits

EXAMPLES = Path(__file__).parents[2] / "examples"


def known(run: Run) -> Run:
    """The run, with every fact recorded that a comparison asks for."""
    return replace(
        run,
        program=replace(run.program, source_sha256="1" * 64),
        machine=replace(run.machine, cpu_flags=("avx2",)),
        software=replace(run.software, blas="MKL", torch_threads=2, thread_variables={}),
        limits=make_limits(),
    )


def with_argument(run: Run, *arguments: str) -> Run:
    return replace(run, program=replace(run.program, argv=("train.py", *arguments)))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a run, and one of the net with its first layer called twice."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_run(known(net_run()), tmp_path / "a.json")
    write_run(known(net_run(Net(first_calls=2, first_us=3_000))), tmp_path / "b.json")
    write_run(with_argument(known(net_run()), "--batch-size", "64"), tmp_path / "other.json")
    return tmp_path


def test_two_runs_are_compared_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "b.json"]) == 0
    shown = capsys.readouterr().out
    assert "Comparable" in shown
    assert "net.first: called 2 × as often" in shown
    assert "cannot tell" in shown


def test_runs_of_different_inputs_are_refused_with_a_code_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["compare", "a.json", "other.json"]) == 4
    shown = capsys.readouterr()
    assert "arguments: --epochs 3 (A), --batch-size 64 (B)" in shown.out
    assert "step (median)" not in shown.out
    assert "may not be compared" in shown.err


def test_a_difference_that_is_allowed_is_told_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "other.json", "--allow", "inputs"]) == 0
    shown = capsys.readouterr().out
    assert "[accepted]" in shown
    assert "step (median)" in shown


def test_another_pyrometer_is_told_and_no_reason_not_to_compare(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = known(net_run(Net(started_at="2026-01-03T03:04:05+00:00")))
    write_run(replace(later, pyrometer_version="9.9.9"), folder / "later.json")
    assert run_command(["compare", "a.json", "later.json"]) == 0
    shown = capsys.readouterr().out
    assert "Pyrometer: 0.1.0 (A), 9.9.9 (B) [noted]" in shown
    assert "step (median)" in shown


def test_an_unknown_fact_cannot_be_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "b.json", "--allow", "weather"]) == 2
    assert "inputs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("c.md", "# Comparison of train.py"),
        ("c.html", "<!doctype html>"),
        ("c.json", '{\n  "format": "pyrometer-comparison"'),
        ("c.txt", "Comparison of train.py"),
    ],
)
def test_the_ending_of_the_file_says_the_format(folder: Path, name: str, beginning: str) -> None:
    assert run_command(["compare", "a.json", "b.json", "-o", name]) == 0
    assert (folder / name).read_text(encoding="utf-8").startswith(beginning)


def test_a_run_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "a.json").read_bytes()
    assert run_command(["compare", "a.json", "b.json", "-o", "a.json"]) == 2
    assert "is the run itself" in capsys.readouterr().err
    assert (folder / "a.json").read_bytes() == before


@pytest.mark.parametrize("name", ["benchmarks/main.json", "benchmarks/next.json"])
def test_a_saved_baseline_is_never_overwritten(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["baseline", "save", "main", "a.json"]) == 0
    assert run_command(["baseline", "save", "next", "b.json"]) == 0
    before = (folder / name).read_bytes()
    assert run_command(["compare", "main", "b.json", "-o", name]) == 2
    assert f"{name} is a saved baseline: name another file" in capsys.readouterr().err
    assert (folder / name).read_bytes() == before


def test_what_a_terminal_shows_in_colour_is_plain_in_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert run_command(["compare", "a.json", "b.json"]) == 0
    assert "\x1b[" in capsys.readouterr().out
    assert run_command(["compare", "a.json", "b.json", "-o", "c.txt"]) == 0
    assert "\x1b" not in (folder / "c.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ([], "comparison.md"),
        (["--format", "markdown"], "comparison.md"),
        (["--format", "html"], "comparison.html"),
        (["--format", "json"], "comparison.json"),
        (["--format", "terminal"], "comparison.txt"),
    ],
)
def test_in_a_folder_the_name_of_the_file_follows_the_format(
    folder: Path, chosen: list[str], name: str
) -> None:
    (folder / "told").mkdir()
    assert run_command(["compare", "a.json", "b.json", "-o", "told", *chosen]) == 0
    assert [file.name for file in (folder / "told").iterdir()] == [name]


def test_the_flame_graph_is_written_where_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "b.json", "--flamegraph", "diff.svg"]) == 0
    assert "What changed in train.py" in (folder / "diff.svg").read_text(encoding="utf-8")
    assert "diff.svg" in capsys.readouterr().err


def test_without_samples_there_is_no_flame_graph_and_it_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(replace(known(net_run()), samples=None), folder / "bare.json")
    assert run_command(["compare", "bare.json", "b.json", "--flamegraph", "diff.svg"]) == 2
    assert "A has no stack samples" in capsys.readouterr().err
    assert not (folder / "diff.svg").exists()


def test_folders_of_many_processes_are_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, runs in (
        ("before", many_runs(Net())),
        ("after", many_runs(Net(backward_us=4_500), at_second=30)),
    ):
        for index, run in enumerate(runs):
            write_run(known(run), folder / side / f"run-{index}.json")
    assert run_command(["compare", "before", "after", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["before"]["runs"], content["after"]["runs"]) == (8, 8)
    assert (content["verdict"], content["doubt"]) == ("slower", None)


def test_a_folder_of_different_things_is_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(known(net_run()), folder / "mixed" / "1.json")
    write_run(with_argument(known(net_run()), "--big"), folder / "mixed" / "2.json")
    assert run_command(["compare", "mixed", "a.json"]) == 4
    told = capsys.readouterr().err
    assert "2.json differs from the first" in told
    assert "--big" in told


def test_a_file_of_a_folder_that_is_left_out_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(known(net_run()), folder / "runs" / "1.json")
    (folder / "runs" / "2.json").write_text('{"loss": NaN}', encoding="utf-8")
    assert run_command(["compare", "runs", "b.json"]) == 0
    shown = capsys.readouterr()
    assert "runs: 1 run" in shown.out
    [line] = shown.err.splitlines()
    assert "runs/2.json is left out: it is no run, and no JSON (" in line


def test_copies_of_a_run_are_no_further_processes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index, run in enumerate(many_runs(Net(), runs=4)):
        write_run(known(run), folder / "before" / f"{index}.json")
        write_run(known(run), folder / "before" / f"{index}-copied.json.gz")
    assert run_command(["compare", "before", "b.json"]) == 2
    told = capsys.readouterr().err
    assert "a run of A (before) is given twice, as " in told
    assert "before/0-copied.json.gz and " in told
    assert told.endswith("before/0.json; name each run once\n")


def test_a_run_is_not_compared_with_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "a.json"]) == 2
    assert "the same run is on both sides" in capsys.readouterr().err
    write_run(read_run(folder / "a.json"), folder / "runs" / "1.json")
    assert run_command(["compare", "runs", "a.json"]) == 2
    assert "runs/1.json" in capsys.readouterr().err
    assert run_command(["baseline", "save", "main", "a.json"]) == 0
    capsys.readouterr()
    assert run_command(["compare", "main", "a.json"]) == 2
    assert "run 1 of main (train.py --epochs 3) and " in capsys.readouterr().err


def test_runs_that_began_at_the_same_moment_are_two_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "b.json"]) == 0
    assert capsys.readouterr().err == ""


def test_a_baseline_is_compared_by_the_program_of_the_other_side(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["baseline", "save", "main", "a.json"]) == 0
    assert run_command(["baseline", "save", "main", "other.json"]) == 0
    assert run_command(["compare", "main", "b.json"]) == 0
    assert "main (train.py --epochs 3): 1 run" in capsys.readouterr().out
    assert run_command(["compare", "benchmarks/main.json", "b.json"]) == 0
    write_run(with_argument(known(net_run()), "--third"), folder / "third.json")
    assert run_command(["compare", "main", "third.json"]) == 2
    assert "there is none of the program of the other side" in capsys.readouterr().err


def test_modules_are_measured_as_they_are_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(before: str, after: str, *_: object) -> Comparison:
        raise UsageError(f"measured: {before} | {after}")

    monkeypatch.setattr("pyrometer.cli.compare.measure_commands", measured)
    commands = ["-m pkg.train", "--pairs", "8", "-m pkg.train -o x --fast"]
    assert run_command(["compare", "--measure", *commands]) == 2
    assert capsys.readouterr().err == "pyrometer: measured: -m pkg.train | -m pkg.train -o x --fast\n"


def test_a_name_that_is_neither_file_nor_baseline_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "nowhere", "b.json"]) == 2
    assert "No baseline named 'nowhere'" in capsys.readouterr().err


def test_a_file_that_is_no_run_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "notes.txt").write_text("hello", encoding="utf-8")
    assert run_command(["compare", "notes.txt", "b.json"]) == 2
    assert "not a run file" in capsys.readouterr().err


def test_all_rows_and_so_many_rows_cannot_both_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "a.json", "b.json", "--all", "--top", "3"]) == 2
    assert "--top 3" in capsys.readouterr().err


def test_old_runs_without_the_facts_are_refused_and_say_to_record_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(net_run(), folder / "old.json")
    assert run_command(["compare", "old.json", "b.json"]) == 4
    assert "not recorded (A); record the run again" in capsys.readouterr().out


@pytest.mark.torch
def test_the_standard_net_is_compared_with_itself_and_refused_at_another_batch_size(tmp_path: Path) -> None:
    place = tmp_path / "real"
    place.mkdir()

    def pyrometer(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pyrometer", *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )

    for name, size in (("a", "32"), ("b", "32"), ("c", "64")):
        program = (str(EXAMPLES / "standard_net.py"), "--batch-size", size)
        assert pyrometer("run", "--no-report", "-o", f"{name}.json", *program).returncode == 0

    same = pyrometer("compare", "a.json", "b.json", "--format", "json")
    assert same.returncode == 0, same.stderr
    content = json.loads(same.stdout)
    assert content["level"] in {"comparable", "trend only"}
    counts = [one["change"] for one in content["metrics"] if one["change"]["quantity"] == "count"]
    counts += [row["calls"] for table in content["tables"] for row in table["rows"] if row["calls"]]
    assert len(counts) > 5
    assert {change["verdict"] for change in counts} == {"same"}
    assert {table["whole"]["verdict"] for table in content["tables"]} == {"cannot tell"}

    refused = pyrometer("compare", "a.json", "c.json")
    assert refused.returncode == 4
    assert "--batch-size 32 (A), --batch-size 64 (B)" in refused.stdout

    allowed = pyrometer("compare", "a.json", "c.json", "--allow", "inputs", "--format", "json")
    assert allowed.returncode == 0, allowed.stderr
    [tensors] = [
        one["change"] for one in json.loads(allowed.stdout)["metrics"] if one["metric"] == "tensor bytes"
    ]
    assert tensors["verdict"] == "more"
    assert read_run(place / "a.json").torch is not None


def test_the_help_names_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", "--help"]) == 0
    assert "cpu_flags" in " ".join(capsys.readouterr().out.split())
