"""Which benchmarks there are in a file or a folder, found out in a process of their own."""

import sys
from pathlib import Path

import pytest

from pyrometer.errors import PyrometerError, UsageError
from pyrometer.experiment.bench_discovery import discover, find_files, side_of
from pyrometer.experiment.errors import ProgramFailedError
from tests.experiment.bench_files import write_benchmarks

PLAIN = """
@pyrometer.benchmark
def bench_plain(): ...
"""


def names(path: Path) -> list[str]:
    return [one.name for one in discover(path)]


def test_marked_functions_are_found_in_the_order_of_the_file_and_others_are_not(tmp_path: Path) -> None:
    path = write_benchmarks(
        tmp_path,
        """
        import random, helper, sys
        print("said to whoever listens")
        assert __name__ == "bench_some"
        assert sys.argv == [__file__]
        def bench_unmarked(): ...
        @pyrometer.benchmark(parameters={"size": [2, 1], "kind": ["a b"]})
        def bench_second(size, kind): ...
        @pyrometer.benchmark
        def anything(): ...
        if __name__ == "__main__":
            raise SystemExit("not as a script")
        """,
    )
    (tmp_path / "helper.py").write_text(
        "import pyrometer\n@pyrometer.benchmark\ndef bench_of_the_helper(): ...\n"
    )
    found = discover(path)
    assert [one.name for one in found] == [
        "bench_second[size=2,kind='a b']",
        "bench_second[size=1,kind='a b']",
        "anything",
    ]
    assert found[0].function == "bench_second"
    assert found[0].parameters == {"size": "2", "kind": "'a b'"}
    assert found[0].file == str(path)
    assert found[0].source == found[1].source != found[2].source
    assert "bench_some" not in sys.modules


def test_a_files_neighbours_go_before_modules_of_the_same_name(tmp_path: Path) -> None:
    write_benchmarks(
        tmp_path,
        """
        import traceback, random
        @pyrometer.benchmark(parameters={"who": [traceback.WHO]})
        def bench_plain(who): ...
        """,
    )
    (tmp_path / "traceback.py").write_text("WHO = 'mine'\n")
    assert names(tmp_path) == ["bench_plain[who=mine]"]


def test_a_folder_is_searched_but_not_its_environments_and_hidden_folders(tmp_path: Path) -> None:
    (tmp_path / "venv" / "lib").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    for name in (
        "bench_b.py",
        "bench_a.py",
        "below/bench_c.py",
        "other.py",
        ".hidden/bench_d.py",
        "venv/lib/bench_e.py",
    ):
        write_benchmarks(tmp_path, "", name=name)
    (tmp_path / "bench_folder.py").mkdir()
    found = [path.relative_to(tmp_path).as_posix() for path in find_files(tmp_path)]
    assert found == ["bench_a.py", "bench_b.py", "below/bench_c.py"]


def test_benchmarks_of_a_folder_must_be_told_apart_by_their_names(tmp_path: Path) -> None:
    write_benchmarks(tmp_path, PLAIN, name="bench_a.py")
    write_benchmarks(tmp_path, PLAIN, name="bench_b.py")
    with pytest.raises(UsageError, match=r"bench_plain is in .*bench_a\.py and in .*bench_b\.py; rename one"):
        discover(tmp_path)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "no function in .* is marked with @pyrometer.benchmark"),
        (PLAIN + PLAIN, "two functions are called bench_plain; rename one of them"),
        (
            "class Some:\n    @pyrometer.benchmark\n    def bench(self=1): ...",
            "Some.bench is not at the top level",
        ),
        ("@pyrometer.benchmark\ndef bench_needy(data): ...", "missing a required argument: 'data'"),
        ("pyrometer.benchmark(lambda: 1)", "has no name to be known by"),
    ],
)
def test_a_mistake_in_a_file_is_told_in_one_line(tmp_path: Path, source: str, said: str) -> None:
    path = write_benchmarks(tmp_path, source)
    with pytest.raises(UsageError, match=said) as caught:
        discover(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_imported_is_told_with_its_own_traceback_alone(tmp_path: Path) -> None:
    path = write_benchmarks(tmp_path, "import no_such_module")
    with pytest.raises(ProgramFailedError) as caught:
        discover(path)
    assert "No module named 'no_such_module'" in str(caught.value)
    assert "bench_program" not in str(caught.value)
    assert "importlib" not in str(caught.value)
    write_benchmarks(tmp_path, "def broken(:")
    with pytest.raises(ProgramFailedError, match="SyntaxError"):
        discover(path)


def test_a_file_of_a_folder_that_cannot_be_imported_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "bench_broken.py").write_text("import no_such_module\n")
    unreadable: list[PyrometerError] = []
    with pytest.raises(ProgramFailedError, match="no_such_module"):
        discover(tmp_path, unreadable=unreadable)
    unreadable.clear()
    write_benchmarks(tmp_path, PLAIN)
    assert [one.function for one in discover(tmp_path, unreadable=unreadable)] != []
    assert len(unreadable) == 1
    assert "bench_broken.py" in str(unreadable[0])


def test_a_mistake_in_one_file_of_a_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "bench_needy.py").write_text(
        "import pyrometer\n\n@pyrometer.benchmark\ndef bench_needy(data): ...\n"
    )
    write_benchmarks(tmp_path, PLAIN)
    unreadable: list[PyrometerError] = []
    assert [one.function for one in discover(tmp_path, unreadable=unreadable)] != []
    (problem,) = map(str, unreadable)
    assert problem.startswith(f"{tmp_path / 'bench_needy.py'}: bench_needy cannot be called")


def test_a_file_whose_import_does_not_end_is_ended(tmp_path: Path) -> None:
    path = write_benchmarks(tmp_path, "import signal\nsignal.pause()")
    with pytest.raises(ProgramFailedError, match=r"bench_some\.py was still being imported after 10\.0 ms"):
        discover(path, patience_s=0.01)


def test_what_is_no_file_of_benchmarks_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.touch()
    for path, said in (
        (text, "no Python file"),
        (tmp_path / "gone", "does not exist"),
        (tmp_path, "there is no bench_"),
    ):
        with pytest.raises(UsageError, match=said):
            discover(path)


def test_a_side_names_its_file_as_seen_from_its_folder(tmp_path: Path) -> None:
    """So that both sides of a comparison have the same command, wherever they are."""
    path = write_benchmarks(tmp_path / "tree", PLAIN, name="benches/bench_a.py")
    side = side_of("bench_plain", file=path, folder=tmp_path / "tree", calls=3, name="now")
    assert side.arguments[-4:] == ("benches/bench_a.py", "bench_plain", "--calls", "3")
    assert side.program_folder == path.parent
    elsewhere = tmp_path / "elsewhere"
    assert str(path) in side_of("bench_plain", file=path, folder=elsewhere, calls=3, name="now").arguments
