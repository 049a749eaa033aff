"""A saved baseline must still be what it was: whatever of it was changed or is missing, the gate refuses."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.bench_files import write_benchmarks
from tests.experiment.test_worktrees import git


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program in a repository, and a baseline of it."""
    root = tmp_path_factory.mktemp("project")
    (root / "program.py").write_text("print(sum(range(1_000)))\n")
    write_benchmarks(root, "@pyrometer.benchmark\ndef bench_sum():\n    return sum(range(1_000))\n")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    pyrometer = [sys.executable, "-m", "pyrometer"]
    for command in (
        ["run", "--quiet", "--no-history", "-o", "run.json", "program.py", "--fast"],
        ["baseline", "save", "steady", "run.json"],
        ["run", "--quiet", "--no-history", "-o", "bench.json", "bench_some.py"],
        ["baseline", "save", "benchmarks", "bench.json"],
    ):
        subprocess.run([*pyrometer, *command], cwd=root, check=True, capture_output=True)
    return root


def gate_with(saved: Path, change: Callable[[dict[str, Any]], None]) -> "subprocess.CompletedProcess[str]":
    """The gate, held against the baseline with something in its run changed."""
    path = saved / "benchmarks" / "steady.json"
    original = path.read_text()
    content = json.loads(original)
    (runs,) = content["runs"].values()
    change(runs[0])
    path.write_text(json.dumps(content))
    try:
        command = [sys.executable, "-m", "pyrometer", "gate", "--baseline", "steady", "--pairs", "1", "--"]
        return subprocess.run(
            [*command, "program.py", "--fast"], cwd=saved, capture_output=True, text=True, check=False
        )
    finally:
        path.write_text(original)


def test_as_it_was_saved_it_is_measured(saved: Path) -> None:
    done = gate_with(saved, lambda _: None)
    assert done.returncode == 3, done.stderr
    assert "steady is the saved baseline of that name" in done.stderr


def test_a_file_of_benchmarks_is_held_against_its_saved_baseline(saved: Path) -> None:
    command = [sys.executable, "-m", "pyrometer", "gate", "--baseline", "benchmarks", "--pairs", "1", "--"]
    done = subprocess.run([*command, "bench_some.py"], cwd=saved, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("program", "name", "another.py"),
        ("software", "python_version", "3.9.1"),
        ("software", "python_implementation", "PyPy"),
        ("software", "packages", {"torch": "2.0.1"}),
        ("software", "blas", "another BLAS 1.0"),
        ("software", "thread_variables", None),
        ("machine", "cpu_flags", ["sse2"]),
        ("machine", "cpu_flags", None),
    ],
)
def test_each_fact_that_was_changed_or_is_missing_is_refused(
    saved: Path, part: str, field: str, value: object
) -> None:
    done = gate_with(saved, lambda run: run[part].__setitem__(field, value))
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert "REFUSED" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("state", [None, {"commit": "1" * 40, "branch": "main", "dirty": True}])
def test_code_that_cannot_be_had_again_is_refused(saved: Path, state: object) -> None:
    done = gate_with(saved, lambda run: run["program"].__setitem__("git", state))
    assert done.returncode == 4
    assert "REFUSED" in done.stderr


@pytest.mark.parametrize("commit", ["HEAD", "main", "--lock", "", "1" * 40, "../../etc/passwd"])
def test_a_commit_is_a_whole_hash_that_there_is(saved: Path, commit: str) -> None:
    done = gate_with(saved, lambda run: run["program"]["git"].__setitem__("commit", commit))
    assert done.returncode in {2, 4}, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert len(git(saved, "worktree", "list").splitlines()) == 1


def test_a_baseline_that_is_damaged_is_never_taken_for_a_branch_of_that_name(saved: Path) -> None:
    path = saved / "benchmarks" / "steady.json"
    original = path.read_text()
    path.write_text(f"<<<<<<< HEAD\n{original}")
    git(saved, "branch", "steady")
    try:
        command = [sys.executable, "-m", "pyrometer", "gate", "--baseline", "steady", "--", "program.py"]
        done = subprocess.run(command, cwd=saved, capture_output=True, text=True, check=False)
    finally:
        git(saved, "branch", "--delete", "--force", "steady")
        path.write_text(original)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "steady.json cannot be read as a baseline" in done.stderr
