"""``pyrometer bench`` as a user has it."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pyrometer.cli.bench import choose
from pyrometer.errors import UsageError
from pyrometer.record.benchmarks import Benchmark
from tests.experiment.bench_files import write_benchmarks

_PATIENCE_S = 120

SOURCE = """
@pyrometer.benchmark(parameters={"size": [10, 20]})
def bench_sum(size):
    return sum(range(size))

@pyrometer.benchmark
def bench_failing():
    raise ValueError("no luck")
"""


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyrometer", "bench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmarks(tmp_path, SOURCE)
    return tmp_path


def test_all_are_measured_printed_and_kept_and_a_failure_is_the_exit_code(folder: Path) -> None:
    ended = bench(folder, "bench_some.py", "--processes", "2", "-o", "kept/results.json")
    assert ended.returncode == 5
    assert ended.stderr == "pyrometer: every value written to kept/results.json\n"
    assert "3 benchmarks, each in 2 fresh processes" in ended.stdout
    assert "ValueError: no luck" in ended.stdout
    kept = json.loads((folder / "kept" / "results.json").read_text())
    told = {one["benchmark"]["name"]: len(one.get("processes", ())) for one in kept["benchmarks"]}
    assert told == {"bench_sum[size=10]": 2, "bench_sum[size=20]": 2, "bench_failing": 0}


def test_only_what_is_named_is_measured(folder: Path) -> None:
    ended = bench(folder, ".", "bench_sum[size=20]", "--processes", "1", "--format", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    (figures,) = json.loads(ended.stdout)["figures"]
    assert figures["name"] == "bench_sum[size=20]"
    assert figures["call_ns"] > 0
    assert "low_ns" not in figures


def test_a_broken_file_of_a_folder_is_told_and_the_others_are_measured(folder: Path) -> None:
    (folder / "bench_broken.py").write_text("import no_such_module\n")
    ended = bench(folder, ".", "bench_sum[size=20]", "--processes", "1")
    assert ended.returncode == 5
    assert "bench_broken.py" in ended.stderr
    assert "No module named 'no_such_module'" in ended.stderr
    assert "bench_sum[size=20]" in ended.stdout


def test_one_that_may_be_in_a_broken_file_is_not_called_unknown_alone(folder: Path) -> None:
    (folder / "bench_broken.py").write_text("import no_such_module\n")
    ended = bench(folder, ".", "bench_of_that_file")
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "No module named 'no_such_module'" in ended.stderr
    assert "there is no benchmark 'bench_of_that_file'" in ended.stderr
    listed = bench(folder, ".", "--list")
    assert listed.returncode == 5
    assert "bench_sum[size=10]" in listed.stdout


def test_where_nothing_can_be_kept_nothing_is_measured(folder: Path) -> None:
    (folder / "kept").write_text("in the way")
    ended = bench(
        folder, "bench_some.py", "bench_sum[size=10]", "--processes", "1", "-o", "kept/results.json"
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "kept/results.json" in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to")
def test_a_folder_that_nothing_can_be_written_to_is_told_before_anything_is_measured(folder: Path) -> None:
    ended = bench(folder, "bench_some.py", "-o", "/proc/deeper/results.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "cannot write the results to /proc/deeper/results.json" in ended.stderr


def test_a_reader_who_has_gone_changes_neither_the_exit_code_nor_the_file(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        command = [sys.executable, "-m", "pyrometer", "bench", ".", "bench_failing", "--processes", "1"]
        ended = subprocess.run([*command, "-o", "kept.json"], cwd=folder, stdout=stdout, check=False)
    assert ended.returncode == 5
    assert json.loads((folder / "kept.json").read_text())["benchmarks"]


def test_names_can_be_listed(folder: Path) -> None:
    ended = bench(folder, "bench_some.py", "--list")
    assert ended.stdout.split() == ["bench_sum[size=10]", "bench_sum[size=20]", "bench_failing"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.py"], "gone.py does not exist"),
        (
            ["bench_some.py", "bench_nothing"],
            "there is no benchmark 'bench_nothing'; there are bench_sum[size=10]",
        ),
        (
            ["bench_some.py", "-o", "bench_some.py"],
            "bench_some.py exists and holds no results of pyrometer bench",
        ),
        (["bench_some.py", "-o", "."], "exists and holds no results"),
        (["bench_some.py", "--threads", "0"], "--threads is '0', but must be a number from 1, or auto"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_measured(
    folder: Path, arguments: list[str], said: str
) -> None:
    ended = bench(folder, *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert (folder / "bench_some.py").read_text().endswith(SOURCE)


@pytest.mark.parametrize("where", ["import", "call"])
def test_what_it_has_started_goes_with_it_when_it_is_told_to_end(tmp_path: Path, where: str) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    write_benchmarks(
        tmp_path,
        f"""
        import os, signal
        def wait():
            with open("alive", "w") as alive:
                print(os.getpid(), file=alive)
            signal.pause()
        if {where == "import"}:
            wait()
        bench_waiting = pyrometer.benchmark(wait)
        """,
    )
    command = subprocess.Popen(
        [sys.executable, "-m", "pyrometer", "bench", "bench_some.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([reader], [], [], _PATIENCE_S)[0], "nobody said a word"
        started = psutil.Process(int(os.read(reader, 100)))
        command.send_signal(signal.SIGTERM)
        stdout, stderr = command.communicate(timeout=_PATIENCE_S)
    finally:
        os.close(reader)
        command.kill()
    assert (command.returncode, stdout, stderr) == (128 + signal.SIGTERM, "", "")
    # Whoever has adopted it may not have noticed its end yet.
    assert not started.is_running() or started.status() == psutil.STATUS_ZOMBIE


def test_a_name_is_a_functions_or_a_single_benchmarks() -> None:
    some = [
        Benchmark(name=name, function=name.partition("[")[0], source="s")
        for name in ("bench_a[size=1]", "bench_a[size=2]", "bench_b", "bench_c")
    ]
    assert choose(some, []) == some
    assert [one.name for one in choose(some, ["bench_c", "bench_a"])] == [
        "bench_a[size=1]",
        "bench_a[size=2]",
        "bench_c",
    ]
    assert [one.name for one in choose(some, ["bench_a[size=2]"])] == ["bench_a[size=2]"]
    with pytest.raises(UsageError, match="there is no benchmark 'bench_'"):
        choose(some, ["bench_"])
