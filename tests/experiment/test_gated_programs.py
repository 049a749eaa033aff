"""Which benchmarks of two trees are held against each other, and when they are not the same."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import Metric
from pyrometer.errors import UsageError
from pyrometer.experiment.errors import RefusedError
from pyrometer.experiment.experiment import Conditions
from pyrometer.experiment.gated_programs import INPUTS, Gated, gate_program
from pyrometer.experiment.gating import Rule
from pyrometer.experiment.planning import Wanted
from pyrometer.experiment.sides import command_in
from pyrometer.experiment.worktrees import checked_out, commit_of, working_tree
from tests.experiment.bench_files import write_benchmarks
from tests.experiment.test_worktrees import git

SIZED = """
@pyrometer.benchmark(parameters={"size": {"small": 4_000}})
def bench_sized(size):
    sum(range(size))
"""
SET_UP = """
made = []
def prepare(size):
    made.extend(range(size))
@pyrometer.benchmark(parameters={"size": {"small": 4_000}}, setup=prepare)
def bench_set_up():
    sum(made)
"""
TIDY = """
import atexit, tempfile, pathlib
def prepare():
    folder = tempfile.TemporaryDirectory(prefix="tidy-")
    pathlib.Path(folder.name, "held").touch()
    atexit.register(folder.cleanup)
    return folder
@pyrometer.benchmark(setup=prepare, check=lambda _: 1)
def bench_tidy(folder):
    return len(folder.name)
"""
PARAMETERS = """
@pyrometer.benchmark(parameters={"size": [10, 20]})
def bench_sized(size):
    return sum(range(size))
@pyrometer.benchmark
def bench_other():
    return 7
"""


def commit(folder: Path, source: str) -> Path:
    """A repository whose one commit has a file of these benchmarks."""
    path = write_benchmarks(folder / "project", source)
    git(path.parent, "init", "--quiet", "--initial-branch", "main")
    git(path.parent, "add", "--all")
    git(path.parent, "commit", "--quiet", "--message", "one")
    return path


def gate(
    *words: str, folder: Path, allowed: Sequence[str] = (), metrics: Sequence[Metric] = (Metric.LATENCY,)
) -> list[GatedLane]:
    """The lanes of the working tree against its commit, by one pair of processes each."""
    here = working_tree(folder)
    with checked_out(here, commit_of(folder, "main"), name="main") as other:
        gated = Gated(
            baseline=other,
            candidate=here,
            command=command_in(words),
            metrics=metrics,
            rule=Rule(most_pairs=1),
            conditions=Conditions(wanted=Wanted(threads=1)),
            allowed=frozenset(allowed),
            tell=lambda _: None,
        )
        return list(gate_program(gated))


@pytest.mark.parametrize("source", [SIZED, SET_UP], ids=["its own", "its setup's"])
def test_a_benchmark_with_another_value_by_the_same_name_is_refused(tmp_path: Path, source: str) -> None:
    path = commit(tmp_path, source)
    write_benchmarks(path.parent, source.replace("4_000", "3_000"))
    with pytest.raises(RefusedError, match=r"\[size=small\] is given something else in working tree.*inputs"):
        gate(path.name, folder=path.parent)
    (lane,) = gate(path.name, folder=path.parent, allowed=[INPUTS])
    assert lane.judgement.change is not None


def test_arguments_that_are_others_each_time_are_said_to_be(tmp_path: Path) -> None:
    path = commit(
        tmp_path,
        "import os\n"
        "@pyrometer.benchmark(setup=lambda: os.urandom(8))\n"
        "def bench_random(data):\n"
        "    return len(data)\n",
    )
    with pytest.raises(RefusedError, match="something else in each process, as two of main show"):
        gate(path.name, folder=path.parent)


def test_what_differs_only_under_another_hash_seed_is_refused_after_its_pair(tmp_path: Path) -> None:
    source = """
        import os
        DIFFERS = False
        @pyrometer.benchmark
        def bench_seeded():
            return 7 + (DIFFERS and os.environ["PYTHONHASHSEED"] != "0")
        """
    path = commit(tmp_path, source)
    write_benchmarks(path.parent, source.replace("False", "True"))
    with pytest.raises(
        RefusedError, match="bench_seeded returns something else in working tree than in main"
    ):
        gate(path.name, folder=path.parent)


def test_what_cannot_be_compared_is_told_with_the_reason(tmp_path: Path) -> None:
    path = commit(
        tmp_path,
        "@pyrometer.benchmark(parameters={'kind': [sum]}, setup=lambda kind: object())\n"
        "def bench_unknown(one):\n"
        "    pass\n"
        "@pyrometer.benchmark\n"
        "def bench_known():\n"
        "    return 7\n",
    )
    unknown, known = gate(path.name, folder=path.parent)
    assert known.unchecked == ()
    assert unknown.unchecked == (
        "whether bench_unknown[kind=sum] is given the same: what is in a value of type object is not known",
        "whether bench_unknown[kind=sum] returns the same: it returns None",
    )


def test_benchmarks_of_one_side_are_listed_and_the_others_are_gated(tmp_path: Path) -> None:
    path = commit(tmp_path, PARAMETERS)
    write_benchmarks(
        path.parent, PARAMETERS.replace("[10, 20]", "[20, 30]").replace("bench_other", "bench_another")
    )
    (lane,) = gate(path.name, folder=path.parent)
    assert lane.subject == "bench_sized[size=20]"
    assert lane.new == ("bench_sized[size=30]", "bench_another")
    assert lane.gone == ("bench_sized[size=10]", "bench_other")
    # A function's name stands for all of its parameters, and for nothing else.
    (lane,) = gate(path.name, "bench_sized", folder=path.parent)
    assert (lane.new, lane.gone) == (("bench_sized[size=30]",), ("bench_sized[size=10]",))


def test_processes_that_are_not_counted_end_by_themselves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = commit(tmp_path, TIDY)
    folders = tmp_path / "folders"
    folders.mkdir()
    monkeypatch.setenv("TMPDIR", str(folders))
    (lane,) = gate(path.name, folder=path.parent, allowed=[INPUTS])
    assert lane.subject == "bench_tidy"
    assert not list(folders.glob("tidy-*"))


def test_a_functions_name_stands_for_all_of_its_parameters(tmp_path: Path) -> None:
    path = commit(tmp_path, PARAMETERS)
    lanes = gate(path.name, "bench_sized", folder=path.parent)
    assert [lane.subject for lane in lanes] == ["bench_sized[size=10]", "bench_sized[size=20]"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["bench_sized", "bench_another"],
            "no benchmark 'bench_another' in common.*main has none, working tree has bench_another",
        ),
        (
            ["bench_other"],
            "no benchmark 'bench_other' in common.*main has bench_other, working tree has none",
        ),
        (["bench_sized[size=10]"], "main has bench_sized.size=10., working tree has none"),
    ],
)
def test_one_that_is_named_and_that_only_one_side_has_is_refused(
    tmp_path: Path, names: list[str], said: str
) -> None:
    path = commit(tmp_path, PARAMETERS)
    write_benchmarks(
        path.parent, PARAMETERS.replace("[10, 20]", "[20]").replace("bench_other", "bench_another")
    )
    with pytest.raises(RefusedError, match=said):
        gate(path.name, *names, folder=path.parent)


def test_files_with_nothing_in_common_are_refused_and_unknown_names_are_wrong_usage(tmp_path: Path) -> None:
    path = commit(tmp_path, PARAMETERS)
    with pytest.raises(UsageError, match="there is no benchmark 'bench_none'; there are: bench_sized"):
        gate(path.name, "bench_none", folder=path.parent)
    write_benchmarks(path.parent, PARAMETERS.replace("bench_", "time_"))
    with pytest.raises(RefusedError, match="no benchmark of that file in common"):
        gate(path.name, folder=path.parent)


@pytest.mark.parametrize("below", ["", "jobs"])
def test_a_file_by_its_whole_path_is_each_sides_own(tmp_path: Path, below: str) -> None:
    plain = "@pyrometer.benchmark\ndef bench_plain():\n    return 7\n"
    path = commit(tmp_path, plain)
    folder = path.parent / below
    folder.mkdir(exist_ok=True)
    (folder / "kept.txt").touch()
    git(path.parent, "add", "--all")
    git(path.parent, "commit", "--quiet", "--allow-empty", "--message", "two")
    write_benchmarks(path.parent, plain + plain.replace("plain", "more"))
    (lane,) = gate(str(path), folder=folder)
    assert (lane.subject, lane.new) == ("bench_plain", ("bench_more",))
    assert lane.trials.baseline.command == lane.trials.candidate.command
    assert str(tmp_path) not in lane.trials.candidate.command
