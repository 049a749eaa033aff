"""Trees of files: which are read, as what, and what becomes of those that cannot be."""

import json
import os
from pathlib import Path

import pytest

from pyrometer.analysis.codemap.inventory import build_tree
from pyrometer.analysis.codemap.results import build_results
from pyrometer.codemap import reading, sources
from pyrometer.codemap.reading import read_sources
from pyrometer.codemap.sources import find_sources
from pyrometer.report.codemap_documents import MapFormat, MapReport, map_documents, render_map
from tests.codemap.trees import map_of, write_tree


def skipped(root: Path, **options: bool) -> dict[str, str]:
    return {one.path: one.reason for one in find_sources(root, **options).skipped}


def paths(root: Path, **options: bool) -> list[str]:
    return [one.path for one in find_sources(root, **options).files]


def test_sources_are_found_and_other_files_counted(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.py": "", "b/c.cpp": "", "b/README.md": "", "b/data.csv": "", "Makefile": ""})
    found = find_sources(tmp_path)
    assert [(one.path, one.language) for one in found.files] == [
        ("Makefile", "Make"),
        ("a.py", "Python"),
        ("b/README.md", "Markdown"),
        ("b/c.cpp", "C++"),
    ]
    assert found.others == 1
    assert found.skipped == []


def test_one_file_is_a_tree_too(tmp_path: Path) -> None:
    write_tree(tmp_path, {"vendor/a.py": "x = 1\n"})
    assert paths(tmp_path / "vendor" / "a.py") == ["a.py"]


def test_what_is_not_the_projects_own_is_skipped_with_a_reason(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "a.py": "",
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "",
            "conda/conda-meta/history": "",
            "conda/lib/x.py": "",
            ".hidden/x.py": "",
            "node_modules/x.js": "",
            "third_party/x.c": "",
            "__pycache__/x.py": "",
            "a.egg-info/x.py": "",
        },
    )
    assert paths(tmp_path) == ["a.py"]
    assert skipped(tmp_path) == {
        ".hidden": "hidden",
        "conda": "an environment of conda's",
        "env": "a virtual environment",
        "node_modules": "packages of Node.js",
        "third_party": "code of others, kept along (--with-vendored reads it)",
    }
    assert paths(tmp_path, with_vendored=True) == ["a.py", "third_party/x.c"]


def test_what_git_ignores_is_skipped_by_the_nearest_rule(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".git/HEAD": "",
            ".gitignore": "*.gen.py\n/out/\n",
            "x.gen.py": "",
            "out/y.py": "",
            "sub/.gitignore": "!kept.gen.py\nlocal.py\n",
            "sub/kept.gen.py": "",
            "sub/local.py": "",
            "sub/out/z.py": "",
        },
    )
    assert paths(tmp_path) == ["sub/kept.gen.py", "sub/out/z.py"]
    assert set(skipped(tmp_path)) == {"out", "sub/local.py", "x.gen.py"}
    # Rules of the folders around it hold, but not the one by which it is ignored itself.
    assert paths(tmp_path / "sub") == ["kept.gen.py", "out/z.py"]
    assert paths(tmp_path / "out") == ["y.py"]


def test_links_are_not_followed_so_that_there_is_no_loop(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/x.py": ""})
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "y.py").symlink_to(tmp_path / "a" / "x.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    assert paths(tmp_path) == ["a/x.py"]
    assert set(skipped(tmp_path)) == {"a/again", "gone.py", "y.py"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    write_tree(tmp_path, {"closed/x.py": ""})
    (tmp_path / "closed").chmod(0)
    try:
        assert skipped(tmp_path) == {"closed": "cannot be read: Permission denied"}
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_file_that_is_too_large_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_SOURCE_BYTES", 1 << 20)
    write_tree(tmp_path, {"big.py": "#" * (1 << 20) + "#", "fits.py": "x = 1\n"})
    assert paths(tmp_path) == ["fits.py"]
    assert skipped(tmp_path) == {"big.py": "larger than 1 MiB"}


def test_what_cannot_be_understood_is_counted_and_said(tmp_path: Path) -> None:
    write_tree(tmp_path, {"broken.py": "# comment\n\ndef f(:\n"})
    (tmp_path / "latin.py").write_bytes(b"# coding: latin-1\nx = '\xe4'\n")
    (tmp_path / "wrong.py").write_bytes(b"x = '\xe4'\n")
    (tmp_path / "odd.py").write_bytes(b"# coding: klingon\nx = 1\n")
    (tmp_path / "marked.py").write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\r\n")
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    code = map_of(tmp_path, {})
    found = {file.path: file for file in code.files}
    assert {path: file.problem is None for path, file in found.items()} == {
        "broken.py": False,
        "latin.py": True,
        "marked.py": True,
        "odd.py": False,
        "wrong.py": False,
    }
    assert found["broken.py"].problem == "line 3: invalid syntax"
    assert found["broken.py"].lines.comment == found["broken.py"].lines.code == 1
    assert found["marked.py"].lines.code == 2
    assert [(one.path, one.reason) for one in code.skipped] == [
        ("binary.py", "binary, for all its name says")
    ]


def notebook(*cells: str, **metadata: object) -> str:
    """A notebook with these cells of code."""
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps(
        {"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *made], "metadata": metadata}
    )


def test_notebooks_are_read_as_the_code_in_them(tmp_path: Path) -> None:
    cells = (
        "import json\n!ls\n%time x\n# why\nx?\nimport re  # is this right?",
        "%%bash\necho $(ls",
        "%%time\nimport os\nfiles = !ls\nif files:\n    !rm x\ny = (7\n    % 3)",
        "def f():\n    return 1\n",
    )
    code = map_of(tmp_path, {"a.ipynb": notebook(*cells)})
    (file,) = code.files
    assert file.problem is None
    assert [one.module for one in file.imports] == ["json", "re", "os"]
    assert [one.name for one in file.functions] == ["f"]
    assert (file.lines.code, file.lines.comment) == (10, 7)


def test_other_notebooks_are_skipped_with_a_reason(tmp_path: Path) -> None:
    files = {"r.ipynb": notebook("x <- 1", language_info={"name": "R"}), "old.ipynb": '{"worksheets": []}'}
    code = map_of(tmp_path, files)
    assert code.files == ()
    reasons = {one.path: one.reason for one in code.skipped}
    assert reasons["r.ipynb"] == "a notebook of R, of which nothing is counted"
    assert reasons["old.ipynb"].startswith("no notebook of version 4")


@pytest.mark.parametrize("coding", ["rot13", "hex", "base64"])
def test_an_encoding_that_is_no_text_is_said(tmp_path: Path, coding: str) -> None:
    code = map_of(tmp_path, {"a.py": f"# -*- coding: {coding} -*-\nx = 1\n"})
    assert code.files[0].problem is not None


def test_a_rule_of_gitignore_that_git_would_not_take_is_passed_over(tmp_path: Path) -> None:
    write_tree(tmp_path, {".git/HEAD": "", ".gitignore": "!\n*.gen.py\n", "a.py": "", "b.gen.py": ""})
    assert paths(tmp_path) == ["a.py"]


def test_a_name_that_is_no_text_is_skipped(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.py")
    (tmp_path / name).write_text("x = 1\n")
    assert paths(tmp_path) == []
    assert list(skipped(tmp_path).values()) == ["its name is no text"]


def test_what_is_nested_too_deeply_is_skipped_with_a_reason(tmp_path: Path) -> None:
    code = map_of(tmp_path, {"deep.ipynb": "[" * 50_000, "a.py": ""})
    assert [one.path for one in code.skipped] == ["deep.ipynb"]


def test_folders_may_be_nested_as_deeply_as_the_system_lets_them(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.o\n")
    folders = [tmp_path]
    for _ in range(1_200):
        folders.append(folders[-1] / "d")
        folders[-1].mkdir()
    (folders[-1] / "__init__.py").write_text("x = 1\n")
    results = build_results(map_of(tmp_path, {}))
    text = render_map(MapReport(results=results), MapFormat.JSON)
    # Python's own way to remove such a tree goes too deep.
    (folders[-1] / "__init__.py").unlink()
    for folder in reversed(folders[1:]):
        folder.rmdir()
    assert json.loads(text)["inventory"]["totals"]["lines"]["code"] == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / ".gitignore")
    assert skipped(tmp_path) == {"pipe.py": "a pipe, a device or the like"}
    assert skipped(tmp_path / "pipe.py") == {"pipe.py": "a pipe, a device or the like"}


def test_dots_in_names_of_folders_make_no_packages(tmp_path: Path) -> None:
    assert modules({"release-1.2/a.py": "", "my.tool.py": ""}, tmp_path) == {
        "my.tool.py": "my_tool",
        "release-1.2/a.py": "release-1_2.a",
    }


def test_other_files_of_a_package_are_in_it_wherever_that_lies(tmp_path: Path) -> None:
    files = {
        "python/pack/__init__.py": "",
        "python/pack/fast.pyx": "x",
        "python/pack/c/y.c": "x",
        "README.md": "x",
    }
    tree = build_tree(map_of(tmp_path, files))
    assert {part.dotted: [file.path for file in part.files] for part in tree.walk() if part.files} == {
        "(root)": ["README.md"],
        "pack": ["python/pack/__init__.py", "python/pack/fast.pyx"],
        "pack.c": ["python/pack/c/y.c"],
    }


def test_what_pyrometer_made_itself_is_not_mapped(tmp_path: Path) -> None:
    results = build_results(map_of(tmp_path, {"a.py": "x = 1\n"}))
    for name, text in map_documents(MapReport(results=results)).items():
        (tmp_path / name).write_text(text)
    code = map_of(tmp_path, {})
    assert [file.path for file in code.files] == ["a.py"]
    assert {one.reason for one in code.skipped} == {"made by Pyrometer"}


def test_generated_files_say_so_themselves(tmp_path: Path) -> None:
    code = map_of(
        tmp_path,
        {
            "a.py": "# Code generated by protoc. DO NOT EDIT.\n",
            "b.py": '"""Reads reports generated by pytest."""\n',
            "c.c": "// @generated\n",
            "d.py": "class A:\n    # There are no auto-generated names.\n    x = 1\n",
            "e.c": "/*\n * Code generated by x.\n */\n",
        },
    )
    assert [file.is_generated for file in code.files] == [True, False, True, False, True]


@pytest.mark.parametrize(("name", "comment"), [("a.cs", "// x"), ("a.yaml", "# x")])
def test_a_mark_of_the_encoding_is_no_code(tmp_path: Path, name: str, comment: str) -> None:
    (tmp_path / name).write_bytes(f"{comment}\na\n".encode("utf-8-sig"))
    (file,) = map_of(tmp_path, {}).files
    assert (file.lines.code, file.lines.comment) == (1, 1)


def test_files_that_changed_places_are_read_again(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.py": "import os\n", "b.py": "import re\n"})
    for name in ("a.py", "b.py"):
        os.utime(tmp_path / name, ns=(1, 1))
    first = read_sources(find_sources(tmp_path))
    for one, other in (("a.py", "c"), ("b.py", "a.py"), ("c", "b.py")):
        (tmp_path / one).rename(tmp_path / other)
    second = read_sources(find_sources(tmp_path), known=first.known)
    assert [file.imports[0].module for file in second.files] == ["re", "os"]


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.py": "x = 1\n", "b.py": "y = 1\n"})
    first = read_sources(find_sources(tmp_path))
    assert first.reused == 0
    again = read_sources(find_sources(tmp_path), known=first.known)
    assert (again.reused, again.files) == (2, first.files)
    (tmp_path / "b.py").write_text("y = 1\nz = 2\n")
    changed = read_sources(find_sources(tmp_path), known=first.known)
    assert changed.reused == 1
    assert changed.files[1].lines.code == 2
    # In a package now: its name is another one.
    (tmp_path / "__init__.py").touch()
    moved = read_sources(find_sources(tmp_path), known=first.known)
    assert [file.module for file in moved.files] == [
        tmp_path.name,
        f"{tmp_path.name}.a",
        f"{tmp_path.name}.b",
    ]


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {f"m{number}.py": f"import m{number + 1}\n" * 40 for number in range(40)})
    alone = read_sources(find_sources(tmp_path), processes=1)
    monkeypatch.setattr(reading, "_LEAST_BYTES", 1_000)
    assert read_sources(find_sources(tmp_path), processes=2).files == alone.files


def modules(code_paths: dict[str, str], root: Path, below: str = "") -> dict[str, str | None]:
    return {file.path: file.module for file in map_of(root, code_paths, below=below).files}


def test_modules_are_named_from_their_outermost_package(tmp_path: Path) -> None:
    files = {
        "src/pack/__init__.py": "",
        "src/pack/a.py": "",
        "src/pack/space/b.py": "",
        "src/lone.py": "",
        "scripts/run.py": "",
        "top.py": "",
    }
    assert modules(files, tmp_path) == {
        "scripts/run.py": "scripts.run",
        "src/lone.py": "lone",
        "src/pack/__init__.py": "pack",
        "src/pack/a.py": "pack.a",
        "src/pack/space/b.py": "pack.space.b",
        "top.py": "top",
    }
    assert modules({}, tmp_path, "src/pack") == {
        "__init__.py": "pack",
        "a.py": "pack.a",
        "space/b.py": "pack.space.b",
    }
