"""``pyrometer gate`` as it is typed: each verdict with its exit code."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrometer.analysis.gated import GatedLane
from pyrometer.cli import gate as gate_command
from pyrometer.cli.app import run_command
from pyrometer.experiment.errors import ProgramFailedError, RefusedError
from tests.experiment.test_worktrees import git
from tests.report.test_gate_report import GATES

_WORK = """\
import sys

def make(count):
    return [bytes(1_000_000) for _ in range(count)]

def total(count):
    return sum(range(count))
"""
_SCRIPT = """\
import work
kept = work.make(20)
print(work.total(10_000))
"""
_BENCHMARKS = """\
import pyrometer
import work

@pyrometer.benchmark
def bench_total():
    return work.total(4_000)

@pyrometer.benchmark
def bench_other():
    return 7

@pyrometer.benchmark(parameters={"size": {"small": 400}})
def bench_silent(size):
    work.total(size)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program in a repository, with one commit and no changes."""
    root = tmp_path / "project"
    root.mkdir()
    for name, text in (("work.py", _WORK), ("program.py", _SCRIPT), ("bench_work.py", _BENCHMARKS)):
        (root / name).write_text(text)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    return root


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyrometer", "gate", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def change(project: Path, old: str, new: str, name: str = "work.py") -> None:
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new))


def test_a_function_that_became_twice_as_slow_fails_and_is_named(project: Path) -> None:
    change(project, "return sum(range(count))", "return sum(range(count)) + 0 * sum(range(count))")
    done = gate(
        project,
        "--baseline",
        "main",
        "--summary",
        "summary.md",
        "-o",
        "gate.json",
        "--",
        "bench_work.py",
        "bench_total",
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("FAIL")
    assert "bench_total" in done.stdout
    summary = (project / "summary.md").read_text()
    assert summary.startswith("# Pyrometer gate: FAIL")
    content = json.loads((project / "gate.json").read_text())
    (lane,) = content["lanes"]
    assert (content["verdict"], lane["subject"], lane["metric"]) == ("FAIL", "bench_total", "latency")
    assert lane["interval"][0] < lane["change"] < lane["interval"][1]
    # Every value is kept.
    assert len(lane["trials"]["pairs"]) == lane["pairs"]
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_more_memory_fails_and_the_same_passes(project: Path) -> None:
    same = gate(project, "--baseline", "HEAD", "--metric", "peak_memory", "--", "program.py")
    assert same.returncode == 0, same.stderr
    assert same.stdout.startswith("PASS")
    change(project, "make(20)", "make(30)", "program.py")
    more = gate(project, "--baseline", "HEAD", "--metric", "peak_memory", "--", "program.py")
    assert more.returncode == 1, more.stderr
    assert "peak memory" in more.stdout
    allowed = gate(
        project, "--baseline", "HEAD", "--metric", "peak_memory", "--max-slowdown", "80%", "--", "program.py"
    )
    assert allowed.returncode == 0, allowed.stderr


def test_an_earlier_result_is_never_taken_for_that_of_a_gate_without_one(project: Path) -> None:
    (project / "gate.json").write_text('{"format": "pyrometer-gate", "verdict": "PASS"}')
    done = gate(project, "--baseline", "nowhere", "-o", "gate.json", "--", "program.py")
    assert done.returncode == 2, done.stderr
    content = json.loads((project / "gate.json").read_text())
    assert (content["verdict"], content["problem"]) == (None, "it did not come to its end")


def test_too_few_pairs_are_inconclusive_and_never_pass(project: Path) -> None:
    told = gate(project, "--baseline", "main", "--pairs", "2", "--", "program.py")
    assert told.returncode == 3, told.stderr
    assert "it takes 10 or more: this will be INCONCLUSIVE" in told.stderr
    assert told.stdout.startswith("INCONCLUSIVE")
    failed = gate(project, "--baseline", "main", "--pairs", "1", "--inconclusive", "fail", "--", "program.py")
    assert failed.returncode == 1


def test_a_side_that_does_not_run_its_own_code_is_refused(project: Path) -> None:
    # As an editable install would: the working tree's module, wherever the program runs.
    (project / "program.py").write_text(
        f"import sys\nsys.path.insert(0, {str(project)!r})\nimport work\nwork.make(1)\n"
    )
    git(project, "commit", "--all", "--quiet", "--message", "two")
    (project / "gate.json").write_text('{"format": "pyrometer-gate", "verdict": "PASS"}')
    files = ("--summary", "summary.md", "-o", "gate.json")
    done = gate(project, "--baseline", "main", *files, "--", "program.py")
    assert done.returncode == 4
    # Nobody is to take an earlier verdict for this one's.
    told = json.loads((project / "gate.json").read_text())
    assert (told["verdict"], told["lanes"]) == ("REFUSED", [])
    assert "work was imported from" in told["problem"]
    assert f"work was imported from {project / 'work.py'}" in done.stderr
    assert "PYTHONPATH" in done.stderr
    assert "REFUSED" in (project / "summary.md").read_text()
    assert "Traceback" not in done.stderr


def test_a_benchmark_that_differs_itself_is_refused_unless_allowed(project: Path) -> None:
    change(project, "return work.total(4_000)", "return work.total(4_001)", "bench_work.py")
    done = gate(project, "--baseline", "main", "--", "bench_work.py", "bench_total")
    assert done.returncode == 4
    assert "bench_total itself differs" in done.stderr
    other = gate(project, "--baseline", "main", "--pairs", "1", "--", "bench_work.py", "bench_other")
    assert other.returncode == 3, other.stderr
    change(project, "return work.total(4_001)", "return work.total(2_000 + 2_000)", "bench_work.py")
    allowed = gate(
        project,
        "--baseline",
        "main",
        "--pairs",
        "1",
        "--allow",
        "benchmark",
        "--",
        "bench_work.py",
        "bench_total",
    )
    assert allowed.returncode == 3, allowed.stderr


def test_a_benchmark_with_other_inputs_is_refused_unless_allowed(project: Path) -> None:
    change(project, '{"small": 400}', '{"small": 300}', "bench_work.py")
    arguments = ("--baseline", "main", "--pairs", "1", "--", "bench_work.py", "bench_silent")
    done = gate(project, *arguments)
    assert done.returncode == 4
    assert "bench_silent[size=small] is given something else" in done.stderr
    allowed = gate(project, "--allow", "inputs", *arguments)
    assert allowed.returncode == 3, allowed.stderr
    assert "whether bench_silent[size=small] returns the same" in " ".join(allowed.stdout.split())


def test_a_benchmark_that_only_one_side_has_is_told(project: Path) -> None:
    change(project, "bench_other", "bench_another", "bench_work.py")
    done = gate(
        project, "--baseline", "main", "--pairs", "1", "-o", "gate.json", "--", str(project / "bench_work.py")
    )
    assert done.returncode == 3, done.stderr
    assert "new: bench_another" in done.stdout
    assert "gone: bench_other" in done.stdout
    content = json.loads((project / "gate.json").read_text())
    assert (content["new"], content["gone"]) == (["bench_another"], ["bench_other"])
    assert [lane["subject"] for lane in content["lanes"]] == ["bench_total", "bench_silent[size=small]"]


def test_a_benchmark_that_returns_something_else_is_refused_unless_allowed(project: Path) -> None:
    change(project, "return sum(range(count))", "return sum(range(count)) + 1")
    done = gate(project, "--baseline", "main", "--pairs", "1", "--", "bench_work.py", "bench_total")
    assert done.returncode == 4
    assert "returns something else" in done.stderr
    allowed = gate(
        project,
        "--baseline",
        "main",
        "--pairs",
        "1",
        "--allow",
        "output",
        "--",
        "bench_work.py",
        "bench_total",
    )
    assert allowed.returncode == 3, allowed.stderr


def test_what_cannot_be_counted_here_is_said_before_anything_is_measured(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures of the metrics before it would be lost."""
    git_alone = tmp_path / "bin"
    git_alone.mkdir()
    (git_alone / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(git_alone))
    metrics = ("--metric", "peak_memory", "--metric", "instructions")
    change(project, "print(", "raise SystemExit('it ran') or (", "program.py")
    done = gate(project, "--baseline", "main", *metrics, "--", "program.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--metric instructions needs valgrind" in done.stderr


def test_reports_in_one_summary_stand_apart(project: Path) -> None:
    metric = ("--metric", "peak_memory", "--pairs", "1", "--summary", "summary.md")
    for _ in range(2):
        assert gate(project, "--baseline", "main", *metric, "--", "program.py").returncode == 3
    summary = (project / "summary.md").read_text()
    assert summary.count("# Pyrometer gate: INCONCLUSIVE") == 2
    assert "\n</details>\n\n# Pyrometer gate" in summary


def test_a_program_that_fails_has_a_code_of_its_own(project: Path) -> None:
    change(project, "print(", "raise SystemExit('first\\n\\nno data') or (", "program.py")
    files = ("--summary", "summary.md", "-o", "gate.json")
    done = gate(project, "--baseline", "main", "--pairs", "1", *files, "--", "program.py")
    assert done.returncode == 5
    told = json.loads((project / "gate.json").read_text())
    assert told["verdict"] is None
    assert "no data" in told["problem"]
    summary = (project / "summary.md").read_text()
    assert summary.startswith("# Pyrometer gate: the program failed\n")
    assert "\n    first\n\n    no data\n" in summary
    assert "working tree" in done.stderr
    assert "no data" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--baseline", "nowhere", "--", "program.py"], "no revision 'nowhere'"),
        (["--baseline", "main", "--max-slowdown", "lots", "--", "program.py"], "'lots'"),
        (["--baseline", "main", "--max-slowdown", "3", "--", "program.py"], "3%"),
        (["--baseline", "main", "--threads", "0", "--", "program.py"], "--threads is '0'"),
        (["--baseline", "main", "--allow", "luck", "--", "program.py"], "no fact 'luck'"),
        (["--baseline", "main", "--", "missing.py"], "no script 'missing.py'\n"),
        (["--baseline", "main", "--max-slowdown", "2000%", "--", "program.py"], "below 1000%"),
        (["--baseline", "main", "--", "bench_work.py", "bench_nothing"], "no benchmark 'bench_nothing'"),
        (["--baseline", "main", "--link", "nothing", "--", "program.py"], "no 'nothing'"),
    ],
)
def test_wrong_usage_is_one_line(project: Path, arguments: list[str], problem: str) -> None:
    done = gate(project, *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stdout == ""
    assert len(git(project, "worktree", "list").splitlines()) == 1


class TestResults:
    """Where verdicts go that were given by hand."""

    @pytest.fixture
    def judged(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
        """Gates whose lanes these are, until the error; returns the exit code."""

        def run(
            name: str,
            *options: str,
            error: Exception | None = None,
            meanwhile: Callable[[], None] | None = None,
        ) -> int:
            def gate_program(_: object) -> Iterator[GatedLane]:
                yield from GATES[name]()
                if meanwhile is not None:
                    meanwhile()
                if error is not None:
                    raise error

            monkeypatch.setattr(gate_command, "gate_program", gate_program)
            return run_command(["gate", "--baseline", "main", *options, "--", "program.py"])

        monkeypatch.chdir(project)
        monkeypatch.setattr(gate_command, "end_cleanly_on_termination", lambda: None)
        return run

    @pytest.mark.parametrize(("name", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 3)])
    def test_a_reader_who_has_gone_changes_neither_the_exit_code_nor_the_files(
        self, judged: Callable[..., int], monkeypatch: pytest.MonkeyPatch, name: str, code: int
    ) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as stdout:
            monkeypatch.setattr("sys.stdout", stdout)
            assert judged(name, "-o", "gate.json", "--summary", "summary.md") == code
        assert json.loads(Path("gate.json").read_text())["verdict"] == name.upper()
        assert name.upper() in Path("summary.md").read_text()

    def test_a_file_that_can_no_longer_be_written_takes_nothing_else_with_it(
        self, judged: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("results").mkdir()
        options = ("-o", "results/gate.json", "--summary", "summary.md")
        assert judged("pass", *options, meanwhile=lambda: shutil.rmtree("results")) == 2
        told = capsys.readouterr()
        assert told.out.startswith("PASS")
        assert "cannot write results/gate.json" in told.err
        assert "PASS" in Path("summary.md").read_text()

    @pytest.mark.parametrize(
        ("error", "code", "verdict"),
        [
            (RefusedError("REFUSED: not its own code"), 4, "REFUSED"),
            (ProgramFailedError("main", 1, "no data"), 5, None),
        ],
    )
    def test_what_was_judged_before_a_problem_is_kept_beside_it(
        self, judged: Callable[..., int], error: Exception, code: int, verdict: str | None
    ) -> None:
        assert judged("pass", "-o", "gate.json", "--summary", "summary.md", error=error) == code
        content = json.loads(Path("gate.json").read_text())
        assert (content["verdict"], content["problem"]) == (verdict, str(error))
        assert [lane["verdict"] for lane in content["lanes"]] == ["PASS"]
        summary = Path("summary.md").read_text()
        assert not summary.startswith("# Pyrometer gate: PASS")
        assert "\n\nWhat was judged before that:\n\n## Gate of" in summary

    def test_the_seed_is_told_whoever_chose_it(self, judged: Callable[..., int]) -> None:
        assert judged("pass", "-o", "gate.json", "--seed", "7") == 0
        assert json.loads(Path("gate.json").read_text())["seed"] == 7
        assert judged("pass", "-o", "gate.json") == 0
        assert json.loads(Path("gate.json").read_text())["seed"] >= 0


class TestSavedBaselines:
    @pytest.fixture
    def saved(self, project: Path) -> Path:
        self.save(project)
        return project

    def save(self, project: Path) -> None:
        run = [
            sys.executable,
            "-m",
            "pyrometer",
            "run",
            "--quiet",
            "--no-history",
            "-o",
            "run.json",
            "program.py",
        ]
        subprocess.run(run, cwd=project, check=True, capture_output=True)
        save = [sys.executable, "-m", "pyrometer", "baseline", "save", "steady", "run.json"]
        subprocess.run(save, cwd=project, check=True, capture_output=True)

    def test_its_commit_is_run_again(self, saved: Path) -> None:
        change(saved, "make(20)", "make(40)", "program.py")
        git(saved, "commit", "--all", "--quiet", "--message", "two")
        done = gate(saved, "--baseline", "steady", "--metric", "peak_memory", "--", "program.py")
        assert done.returncode == 1, done.stderr
        assert git(saved, "rev-parse", "HEAD~1")[:12] in done.stdout

    def test_one_saved_from_changed_code_is_refused(self, project: Path) -> None:
        change(project, "make(20)", "make(21)", "program.py")
        self.save(project)
        done = gate(project, "--baseline", "steady", "--", "program.py")
        assert done.returncode == 4
        assert "not that of its commit" in done.stderr

    def test_one_of_another_program_is_refused(self, saved: Path) -> None:
        done = gate(saved, "--baseline", "steady", "--", "program.py", "--fast")
        assert done.returncode == 4
        assert "has no run of program.py --fast" in done.stderr

    @pytest.mark.parametrize("field", ["python_version", "blas", "cpu_flags", "thread_variables"])
    def test_every_field_that_is_missing_or_was_changed_is_refused(self, saved: Path, field: str) -> None:
        path = saved / "benchmarks" / "steady.json"
        content = json.loads(path.read_text())
        (runs,) = content["runs"].values()
        place = runs[0]["machine"] if field == "cpu_flags" else runs[0]["software"]
        if field == "python_version":
            place[field] = "3.9.1"
        elif field == "blas":
            place[field] = "another BLAS 1.0"
        elif field == "cpu_flags":
            place[field] = ["sse2"]
        else:
            place[field] = None
        path.write_text(json.dumps(content))
        done = gate(saved, "--baseline", "steady", "--pairs", "1", "--", "program.py")
        assert done.returncode == 4, (done.stdout, done.stderr)
        assert "REFUSED" in done.stderr
