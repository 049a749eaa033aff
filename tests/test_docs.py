"""What the README and docs/ tell a reader to type works.

In a ``console`` or ``bash`` block each line that starts with ``$`` is a command: ``pyrometer …``,
``python …`` and a few of ``git`` are run, ``make …`` must name targets, ``pip install …`` extras that
exist. ``python`` blocks of one page are run as one program. A fence that says ``python file=train.py``
puts that file where the page's later commands find it; one that says ``python no-run: reason`` is only
shown. The page is worked through from top to bottom in an empty folder that holds a copy of examples/.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.documents import Document, read_document

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
# A guard against a command that waits for ever, not a measurement.
GIVE_UP_AFTER_S = 600


def needs_torch(page: Path) -> bool:
    """Whether the page's blocks import torch, or its commands name a program that does."""
    document = read_document(page)
    blocks = "\n".join(
        line for block in document.blocks for line in block.lines if block.language == "python"
    )
    named = [ROOT / word for command in document.commands() for word in command.words if word.endswith(".py")]
    programs = [program.read_text(encoding="utf-8") for program in named if program.is_file()]
    return any(re.search(r"^\s*(import|from) torch\b", text, re.MULTILINE) for text in [blocks, *programs])


def needs_valgrind(page: Path) -> bool:
    """Whether a command of the page asks for it."""
    return any("--cachegrind" in command.text for command in read_document(page).commands())


NEEDS_VALGRIND = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="needs valgrind (Debian, Ubuntu: apt-get install valgrind)"
)


def by_name(pages: Iterable[Path]) -> list[object]:
    """One test a page, marked where it needs torch or valgrind."""
    return [
        pytest.param(
            page,
            id=page.name,
            marks=[
                *([pytest.mark.torch] if needs_torch(page) else []),
                *([NEEDS_VALGRIND] if needs_valgrind(page) else []),
            ],
        )
        for page in pages
    ]


def run(arguments: Sequence[str | Path], *, folder: Path, place: str) -> None:
    """Run a program as a reader would who has activated the environment."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYROMETER")},
        "XDG_CACHE_HOME": str(folder / ".cache"),
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A reader"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "reader@example.org"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    finished = subprocess.run(
        arguments,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVE_UP_AFTER_S,
    )
    assert finished.returncode == 0, (
        f"{place}: exit code {finished.returncode}\n{finished.stdout[-4000:]}{finished.stderr[-4000:]}"
    )


def write_named_files(document: Document, folder: Path) -> None:
    """Each ``python file=NAME`` block as the file it shows."""
    for block in document.blocks:
        if block.language == "python" and block.rest.startswith("file="):
            (folder / block.rest.removeprefix("file=")).write_text(
                "\n".join(block.lines) + "\n", encoding="utf-8"
            )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader works: a folder with the examples in it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("page", by_name(PAGES))
def test_every_command_of_a_page_works(page: Path, folder: Path) -> None:
    document = read_document(page)
    write_named_files(document, folder)
    for command in document.commands():
        place = f"{page.name}:{command.line}: $ {command.text}"
        match command.words:
            case ["pip", *_] | ["python" | "python3", "-m", "pip", *_]:
                assert unknown_extras(command.text) == [], place
            case ["python" | "python3" | "pyrometer", *_] | ["git", "init" | "add" | "commit", *_]:
                run(["bash", "-o", "pipefail", "-c", command.text], folder=folder, place=place)
            case ["make", *arguments]:
                run(["make", "-n", *arguments], folder=ROOT, place=place)


@pytest.mark.parametrize("page", by_name(PAGES))
def test_the_python_of_a_page_runs_as_one_program(page: Path, folder: Path) -> None:
    document = read_document(page)
    write_named_files(document, folder)
    # Each line keeps its number, so that a traceback names the line of the page.
    program = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for block in document.blocks:
        if block.language == "python" and not block.rest:
            program[block.first_line - 1 : block.first_line - 1 + len(block.lines)] = block.lines
    script = folder / f"{page.stem}_page.py"
    script.write_text("\n".join(program) + "\n", encoding="utf-8")
    run([sys.executable, script], folder=folder, place=f"the python blocks of {page.name}")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    marks = [block.rest for block in read_document(page).blocks if block.language == "python" and block.rest]
    assert [mark for mark in marks if not re.match(r"no-run: \S|file=[\w.]+$", mark)] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in LINKED])
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in read_document(page).links():
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        if not target.exists() or (anchor and anchor not in read_document(target).anchors()):
            dead.append(link)
    assert dead == []


def unknown_extras(command: str) -> list[str]:
    """The extras an install command asks for that pyproject.toml does not have."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        known = tomllib.load(file)["project"]["optional-dependencies"]
    asked = [extra for group in re.findall(r"\[([\w,\- ]+)\]", command) for extra in group.split(",")]
    return [extra for extra in asked if extra.strip() not in known]


def test_the_workflow_for_github_gates_with_options_that_exist() -> None:
    workflow = (ROOT / "docs" / "ci" / "pyrometer-gate.yml").read_text(encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-m", "pyrometer", "gate", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"pyrometer gate (.*?) -- train\.py", workflow, re.DOTALL)
    assert len(commands) == 2
    options = {option for command in commands for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", command)}
    assert options >= {"--baseline", "--max-slowdown", "--summary"}
    assert [option for option in options if not re.search(rf"(?<!\S){option}\b", shown)] == []


def test_the_workflow_for_github_gates_against_what_was_merged_with_and_keeps_all_values() -> None:
    workflow = (ROOT / "docs" / "ci" / "pyrometer-gate.yml").read_text(encoding="utf-8")
    assert re.findall(r"--baseline (\S+)", workflow) == ['"HEAD^1"'] * 2
    # The merge and its parents.
    assert re.findall(r"fetch-depth: (\d+)", workflow) == ["2"]
    kept = re.findall(r" -o (\S+)", workflow)
    [path] = re.findall(r"^ +path: (\S+)$", workflow, re.MULTILINE)
    assert len(set(kept)) == 2
    assert all(fnmatch.fnmatch(name, path) for name in kept)


@pytest.mark.parametrize(("code", "stops"), [(0, False), (1, True), (3, False), (4, True), (5, True)])
def test_the_workflow_for_github_stops_for_what_is_slower_and_not_for_what_is_unsure(
    code: int, stops: bool, tmp_path: Path
) -> None:
    workflow = (ROOT / "docs" / "ci" / "pyrometer-gate.yml").read_text(encoding="utf-8")
    (tmp_path / "pyrometer").write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    (tmp_path / "pyrometer").chmod(0o755)
    steps = re.findall(r"run: >-\n((?: {10}.*\n)+)", workflow)
    assert len(steps) == 2
    for step in steps:
        line = " ".join(step.split())
        # As the runner calls it.
        done = subprocess.run(
            ["/bin/bash", "-e", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False
        )
        assert (done.returncode != 0) == stops
