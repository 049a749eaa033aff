"""Programs under ``pyrometer run --cachegrind``, counted by the valgrind that is installed here."""

import shutil
from pathlib import Path

import pytest

from pyrometer._native import KIND
from pyrometer.record.counters import CacheSimulation
from tests.cli.running import PROFILED, Folder

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None or KIND != "native",
    reason="needs valgrind (Debian, Ubuntu: apt-get install valgrind) and the native recorder",
)

PROGRAM = """
    import sys, threading
    import pyrometer

    def work(rounds):
        total = 0
        for number in range(rounds):
            total += number & 3
        return total

    @pyrometer.profiled("marked")
    def marked(rounds):
        return work(rounds)

    once, times = int(sys.argv[1]), int(sys.argv[2])
    work(20_000)
    for _ in range(times):
        with pyrometer.scope("train"):
            with pyrometer.scope("inside"), pyrometer.scope("train"):
                work(once)
    marked(once)
    aside = threading.Thread(target=work, args=(20_000,))
    with pyrometer.scope("train"):
        aside.start()
        aside.join()
    print("done")
    print("told", file=sys.stderr)
    sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("program.py", PROGRAM)
    return folder


def simulated(folder: Folder, *arguments: str) -> CacheSimulation:
    ended = folder.profiled(*arguments)
    assert (ended.stdout, ended.stderr, ended.code) == ("done\n", "told\n", 3)
    counters = folder.record().counters
    assert counters is not None
    assert counters.simulated is not None
    return counters.simulated


def instructions(folder: Folder, *arguments: str) -> int:
    counts = simulated(folder, *arguments).counts
    assert counts is not None
    return counts.instructions


@needs_valgrind
def test_the_whole_program_is_counted_and_its_output_and_exit_code_are_its_own(folder: Folder) -> None:
    simulation = simulated(folder, "--cachegrind", "program.py", "1000", "1")
    counts = simulation.counts
    assert counts is not None
    assert (simulation.scope, simulation.reason) == (None, None)
    assert str(simulation.tool).startswith("callgrind-")
    assert counts.instructions > counts.reads > counts.writes > counts.d1_write_misses > 0
    # Every function was kept or is among those left out, and none is counted twice.
    assert sum(function.counts.instructions for function in simulation.functions) <= counts.instructions
    assert "_PyEval_EvalFrameDefault" in {function.name for function in simulation.functions[:5]}
    assert {cache.name for cache in simulation.caches} == {"I1", "D1", "LL"}
    assert simulation.slowdown is not None
    assert simulation.slowdown > 1
    assert simulation.environment["PYTHONHASHSEED"] == "0"
    # Beside the run only what valgrind counted is left, for other tools.
    [left] = [path for path in folder.run_file.parent.iterdir() if path != folder.run_file]
    assert str(left) == simulation.file


@needs_valgrind
def test_only_the_scope_is_counted_in_proportion_to_its_work(folder: Folder) -> None:
    few = instructions(folder, "--cachegrind-scope", "train", "program.py", "1000", "2")
    many = instructions(folder, "--cachegrind-scope", "train", "program.py", "2000", "2")
    deeper = instructions(folder, "--cachegrind-scope", "train", "program.py", "1000", "4")
    # Neither the 20,000 rounds outside of it nor those on another thread are in it.
    a_round = (many - few) / 2_000
    assert 10 < a_round < 2_000
    assert few < 4_000 * a_round
    assert deeper - few == pytest.approx(2_000 * a_round, rel=0.1)


@needs_valgrind
def test_a_profiled_function_can_be_the_scope(folder: Folder) -> None:
    simulation = simulated(folder, "--cachegrind-scope", "marked", "program.py", "1000", "1")
    assert simulation.scope == "marked"
    assert simulation.counts is not None


@needs_valgrind
def test_a_scope_that_is_never_entered_gives_no_counts_but_the_reason(folder: Folder) -> None:
    simulation = simulated(folder, "--cachegrind-scope", "tain", "program.py", "10", "1")
    assert (simulation.counts, simulation.reason) == (None, "no scope named 'tain' was entered")


@needs_valgrind
def test_the_users_own_settings_stay(folder: Folder) -> None:
    folder.environment |= {"PYTHONHASHSEED": "7", "MKL_CBWR": "COMPATIBLE"}
    folder.write(
        "program.py",
        """
        import os, sys
        ours = [name for name in os.environ if name.startswith("PYROMETER")]
        print("done" if (os.environ["PYTHONHASHSEED"], ours) == ("7", []) else "not so")
        print("told", file=sys.stderr)
        sys.exit(3)
        """,
    )
    assert simulated(folder, "--cachegrind", "program.py").environment == {"ATEN_CPU_CAPABILITY": "default"}


def test_without_valgrind_there_is_one_line_and_nothing_is_run(folder: Folder, tmp_path: Path) -> None:
    folder.environment["PATH"] = str(tmp_path)
    ended = folder.run(*PROFILED, "--cachegrind", "program.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr.startswith("pyrometer: --cachegrind needs ")
    assert len(ended.stderr.splitlines()) == 1
    assert not (folder.programs / "pyrometer-runs").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--counters"], "--counters would count valgrind and not the program"),
        (["--baseline", "b.json"], "--baseline keeps times, which mean nothing under --cachegrind"),
        (["--trace", "t.json"], "--trace keeps times, which mean nothing under --cachegrind"),
    ],
)
def test_what_means_nothing_under_valgrind_is_refused(
    folder: Folder, options: list[str], problem: str
) -> None:
    ended = folder.run(*PROFILED, "--cachegrind", *options, "program.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr.startswith(f"pyrometer: {problem}")
    assert not (folder.programs / "pyrometer-runs").exists()
