"""``pyrometer map``, as a user types it."""

import json
import os
import sys
from pathlib import Path

import pytest

from pyrometer.cli.app import run_command
from tests.codemap.trees import write_tree

FILES = {
    "pyproject.toml": """
    [project]
    name = "pack"
    dependencies = ["rich"]

    [tool.pyrometer.map]
    forbidden = ["low -> high"]
    cycles = 0
    max-complexity = 5
    """,
    "src/pack/__init__.py": "",
    "src/pack/low.py": "def work(x):\n    return x\n",
    "src/pack/high.py": "from pack.low import work\nimport rich\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = write_tree(tmp_path / "project", FILES)
    monkeypatch.chdir(root)
    return root


@pytest.mark.usefixtures("project")
def test_a_map_is_printed_of_a_folder_or_of_a_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["map"]) == 0
    whole = capsys.readouterr().out
    assert whole.startswith("Map of project: 4 files")
    assert run_command(["map", "src/pack"]) == 0
    package = capsys.readouterr().out
    assert package.startswith("Map of pack: 3 files")
    assert "high → low" in package
    assert "pyproject.toml" in package
    assert max(map(len, package.splitlines())) <= 80


def test_the_second_map_reads_only_what_has_changed(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(["map", "--format", "json"]) == 0
    first = json.loads(capsys.readouterr().out)

    def fail(*_: object) -> None:
        raise AssertionError("nothing is to be read again")

    with monkeypatch.context() as patched:
        patched.setattr("pyrometer.codemap.reading.read_file", fail)
        assert run_command(["map", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == first["files"]
    (project / "src" / "pack" / "low.py").write_text("x = 1\ny = 2\nz = 3\n")
    assert run_command(["map", "--format", "json"]) == 0
    files = {file["path"]: file for file in json.loads(capsys.readouterr().out)["files"]}
    assert files["src/pack/low.py"]["lines"]["code"] == 3


@pytest.mark.usefixtures("project")
def test_a_damaged_cache_is_read_anew(tmp_path: Path) -> None:
    assert run_command(["map"]) == 0
    (kept,) = (tmp_path / "cache" / "pyrometer").glob("map-*.json")
    kept.write_text("{")
    assert run_command(["map"]) == 0
    assert json.loads(kept.read_text())["files"]


def test_the_rules_of_the_project_are_a_gate(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["map", "src/pack", "--check"]) == 0
    assert capsys.readouterr().out == "PASS: 3 rules checked on 3 files\n"
    (project / "src" / "pack" / "low.py").write_text("import pack.high\n")
    assert run_command(["map", "src/pack", "--check"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "low.py:1: pack.low imports pack.high (low may not import high)"
    assert said[-1] == "FAIL: 3 rules checked, 2 violations"


def test_all_documents_go_into_a_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["map", "src/pack", "-o", "docs"]) == 0
    assert "system_map.svg" in capsys.readouterr().err
    assert json.loads((project / "docs" / "module_inventory.json").read_text())["name"] == "pack"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("map.md", "# Map of pack"),
        ("map.svg", "<svg"),
        ("map.mmd", "flowchart"),
        ("map.dot", "digraph"),
        ("map.txt", "Map of pack"),
    ],
)
def test_the_ending_of_a_file_is_its_format(project: Path, name: str, begins: str) -> None:
    assert run_command(["map", "src/pack", "-o", name]) == 0
    assert (project / name).read_text().startswith(begins)
    # Its own file it knows, and writes over.
    assert run_command(["map", "src/pack", "-o", name]) == 0


def test_two_maps_are_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["map", "src/pack", "-o", "a.json"]) == 0
    (project / "src" / "pack" / "new.py").write_text("import pack.low\n")
    assert run_command(["map", "src/pack", "-o", "b.json"]) == 0
    capsys.readouterr()
    assert run_command(["compare", "a.json", "b.json"]) == 0
    assert "new → low" in capsys.readouterr().out
    assert run_command(["compare", "a.json", "b.json", "-o", "c.md"]) == 0
    assert (project / "c.md").read_text().startswith("# What changed in pack")
    assert run_command(["compare", "a.json", "pyproject.toml"]) == 2
    assert "a.json is a code map, and the other one is not" in capsys.readouterr().err
    assert run_command(["compare", "a.json", "b.json", "-o", "c.html"]) == 0
    assert "What changed in pack" in (project / "c.html").read_text()
    assert run_command(["compare", "a.json", "b.json", "-o", "c.json"]) == 0
    edges = json.loads((project / "c.json").read_text())["edges"]
    assert [(one["importer"], one["imports_before"], one["imports_after"]) for one in edges] == [
        ("new", None, 1)
    ]
    assert run_command(["compare", "a.json", "b.json", "--allow", "threads"]) == 2
    assert "are for runs, and these are code maps" in capsys.readouterr().err
    assert run_command(["compare", "a.json", "b.json", "-o", "a.json"]) == 2
    assert run_command(["compare", "a.json", "nowhere.json"]) == 2
    assert "there is no file 'nowhere.json'" in capsys.readouterr().err
    assert run_command(["map", "src/pack", "-o", "folder"]) == 0
    assert run_command(["compare", "a.json", "folder"]) == 0


def test_two_maps_are_compared_in_plain_text_in_a_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(["map", "src/pack", "-o", "a.json"]) == 0
    (project / "src" / "pack" / "new.py").write_text("import pack.low\n")
    assert run_command(["map", "src/pack", "-o", "b.json"]) == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert run_command(["compare", "a.json", "b.json", "-o", "c.txt"]) == 0
    assert "new → low" in (project / "c.txt").read_text()
    assert "\x1b" not in (project / "c.txt").read_text()


def test_no_name_drives_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "\x1b[31mred.py").write_text("def (\n")
    assert run_command(["map", "--check"]) == 0
    assert run_command(["map", "\x1b[31mnowhere"]) == 2
    assert "\x1b" not in "".join(capsys.readouterr())


def test_a_rule_for_a_module_that_is_not_there_is_a_mistake(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = project / "pyproject.toml"
    rules.write_text(rules.read_text().replace("low -> high", "lwo -> high"))
    assert run_command(["map", "--check"]) == 2
    assert "no module may break 'lwo -> high'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "neither a file or folder 'nowhere' nor a package"),
        (["-o", "x.png"], "does not say which format it is"),
        (["--top", "3", "--all"], "leave one of them out"),
        (["--heat", "nowhere.json"], "there is no such file"),
        (["-o", "pyproject.toml"], "does not say which format it is"),
        (["-o", "notes.md"], "notes.md exists and was not made by pyrometer map"),
        (["-o", "chart.mmd"], "chart.mmd exists and was not made by"),
        (["-o", "town.txt"], "town.txt exists and was not made by"),
        (["-o", "how-to.md"], "how-to.md exists and was not made by"),
        (["--format", "json", "-o", "pipe"], "pipe is no regular file"),
        (["-o", "page.html"], "page.html exists and was not made by"),
        (["-o", "documents"], "documents/system_map.md exists and was not made by"),
        (["--heat-by", "total"], "name the run with --heat RUN"),
        (["--check", "--all"], "leave the other options out"),
        (["only-vendored"], "only-vendored; vendor: code of others"),
        (["empty"], "there are no sources to be read in"),
    ],
)
def test_a_mistake_is_one_line(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (project / "empty").mkdir()
    (project / "notes.md").write_text("# My notes\n\nMade with pyrometer map.\n")
    (project / "chart.mmd").write_text("flowchart TD\n")
    (project / "page.html").write_text("<meta content=\"default-src 'none'\">\n")
    (project / "town.txt").write_text("Map of the town, with 3 lines of code\n")
    (project / "how-to.md").write_text('# How to\n\n    "format": "pyrometer-map"\n')
    os.mkfifo(project / "pipe")
    (project / "documents").mkdir()
    (project / "documents" / "system_map.md").write_text("# How it works\n")
    (project / "only-vendored" / "vendor").mkdir(parents=True)
    assert run_command(["map", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in (project / "documents").iterdir()] == ["system_map.md"]


def test_rules_are_needed_to_check_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_tree(tmp_path, {"a.py": "", "pyproject.toml": ""}))
    assert run_command(["map", "--check"]) == 2
