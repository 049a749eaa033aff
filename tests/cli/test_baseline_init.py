"""``pyrometer baseline init``: a project's first baseline by one command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codemap.trees import write_tree

PROGRAM = """
import torch
from torch import nn
from net import layers

model = layers.make()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.ones(16, 8)).sum().backward()
    optimizer.step()
print("trained")
"""
FILES = {
    "pyproject.toml": '[project]\nname = "net"\ndependencies = ["torch"]\n',
    "net/__init__.py": "",
    "net/layers.py": "from torch import nn\n\ndef make():\n    return nn.Linear(8, 2)\n",
    "train.py": PROGRAM,
    "broken.py": "raise SystemExit(3)\n",
}
MADE = {
    "benchmarks/baseline.json",
    "benchmarks/module_inventory.json",
    "benchmarks/module_dependencies.json",
    "pages/profiling_report.md",
    "pages/module_inventory.md",
    "pages/dependency_graph.md",
    "pages/system_map.md",
    "pages/system_map.svg",
}

pytestmark = pytest.mark.torch


def init(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyrometer", "baseline", "init", "-o", "pages", "net", "--", *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder.parent), "PYROMETER_HISTORY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = write_tree(tmp_path / "project", FILES)
    (root / ".git").mkdir()
    return root


def files_in(project: Path) -> set[str]:
    places = [*project.glob("benchmarks/*"), *project.glob("pages/*")]
    return {path.relative_to(project).as_posix() for path in places}


def test_all_documents_are_made_and_made_again(project: Path) -> None:
    done = init(project, "train.py")
    assert (done.stdout, done.returncode) == ("trained\n", 0), done.stderr
    assert files_in(project) == MADE
    baseline = json.loads((project / "benchmarks" / "baseline.json").read_text())
    assert baseline["name"] == "baseline"
    inventory = json.loads((project / "benchmarks" / "module_inventory.json").read_text())
    assert [one["name"] for one in inventory["modules"]] == ["layers", "__init__"]
    pages = {path.name: path.read_text() for path in (project / "pages").glob("*.md")}
    assert "training: SGD" in pages["profiling_report.md"]
    assert "| torch |" in pages["dependency_graph.md"]
    assert "Heat of train.py" in pages["system_map.md"]
    again = init(project, "train.py")
    assert again.returncode == 0, again.stderr
    assert files_in(project) == MADE


def test_a_program_that_fails_leaves_nothing(project: Path) -> None:
    done = init(project, "broken.py")
    assert done.returncode == 5
    assert "exit code 3" in done.stderr
    assert files_in(project) == set()


@pytest.mark.parametrize("name", ["system_map.md", "profiling_report.md"])
def test_a_page_of_the_users_own_is_not_written_over(project: Path, name: str) -> None:
    (project / "pages").mkdir()
    page = project / "pages" / name
    page.write_text("# How our system works\n")
    done = init(project, "train.py")
    assert done.returncode == 2
    assert name in done.stderr
    assert page.read_text() == "# How our system works\n"
    assert "trained" not in done.stdout


def test_what_cannot_be_mapped_is_said_before_the_program_runs(project: Path) -> None:
    command = [sys.executable, "-m", "pyrometer", "baseline", "init", "nowhere", "--", "train.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert done.stdout == ""


def test_a_program_without_steps_has_a_report_too(project: Path) -> None:
    (project / "plain.py").write_text("print(sum(range(1000)))\n")
    done = init(project, "plain.py")
    assert done.returncode == 0, done.stderr
    assert files_in(project) == MADE


def test_figures_that_are_somebodys_own_are_not_written_over(project: Path) -> None:
    (project / "benchmarks").mkdir()
    (project / "benchmarks" / "module_inventory.json").write_text('{"mine": 1}')
    done = init(project, "train.py")
    assert done.returncode == 2
    assert "trained" not in done.stdout
    assert (project / "benchmarks" / "module_inventory.json").read_text() == '{"mine": 1}'


def test_a_run_that_may_be_of_another_program_is_kept_by_itself(project: Path) -> None:
    for name in ("first", "second"):
        write_tree(project / name, {"train.py": "print('ran')\n"})
    for name, code in (("first", 0), ("second", 2)):
        command = [sys.executable, "-m", "pyrometer", "baseline", "init", "../net", "--", "train.py"]
        done = subprocess.run(command, cwd=project / name, capture_output=True, text=True, check=False)
        assert (done.stdout, done.returncode) == ("ran\n", code), done.stderr
    [kept] = (project / "second").glob("pyrometer-runs/*/run.json")
    said = " ".join(done.stderr.split())
    assert "which may be two programs" in said
    assert f"The run is kept in {kept}" in said
