"""Benchmarks under the engine of turns, from a file to measured values. No time is asserted."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrometer.experiment.bench_discovery import discover
from pyrometer.experiment.bench_measuring import BenchmarkRunner
from pyrometer.experiment.bench_program import STEP_NS, find_calls
from pyrometer.record.benchmarks import MeasuredBenchmark
from tests.experiment.bench_files import write_benchmarks

SOURCE = """
import atexit, os, random, sys
random.seed(os.urandom(8))

def note(word):
    with open("made.txt", "a") as file:
        file.write(word + "\\n")

def make(size):
    note("made")
    atexit.register(note, "tidied up")
    return [random.random() for _ in range(size)]

@pyrometer.benchmark(parameters={"size": [1000]}, setup=make)
def bench_sort(data):
    return sorted(data)

@pyrometer.benchmark(setup=lambda: [3, 2, 1])
def bench_in_place(data):
    data.sort()

@pyrometer.benchmark
def bench_chance():
    return os.urandom(8)

@pyrometer.benchmark(check=len)
def bench_checked():
    return [object()] * 3

@pyrometer.benchmark
def bench_allocating():
    return len(bytearray(1_000_000))

@pyrometer.benchmark
def bench_failing():
    raise ValueError("no luck")

@pyrometer.benchmark
def bench_leaving():
    sys.exit(0)

def raise_on_nothing(returned):
    assert returned, "it found nothing"

@pyrometer.benchmark(check=raise_on_nothing)
def bench_wrong():
    return []
"""

BY_NAME = dict[str, MeasuredBenchmark]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measured")


@pytest.fixture(scope="module")
def measured(folder: Path) -> BY_NAME:
    found = discover(write_benchmarks(folder, SOURCE))
    runner = BenchmarkRunner(folder=folder, processes=2, threads=1, chooser=random.Random(1))
    return {one.benchmark.name: one for one in runner.measure(found)}


def test_each_benchmark_is_measured_in_so_many_processes(measured: BY_NAME) -> None:
    for name in ("bench_sort[size=1000]", "bench_in_place", "bench_chance", "bench_checked"):
        assert measured[name].failure is None
        assert len(measured[name].processes) == 2
        for process in measured[name].processes:
            assert len(process.turns) >= 3
            assert len(process.warmup) >= 3
            assert {turn.calls % process.note.calls for turn in process.turns} == {0}
            assert all(turn.duration_ns > 0 for turn in process.turns)


def test_arguments_are_made_once_in_a_process(measured: BY_NAME, folder: Path) -> None:
    assert measured
    assert (folder / "made.txt").read_text().count("made") == 3  # the third is the one that is not counted


def test_each_process_ends_by_itself_and_tidies_up(measured: BY_NAME, folder: Path) -> None:
    assert measured
    assert (folder / "made.txt").read_text().count("tidied up") == 3


def test_processes_of_one_hash_seed_are_given_the_same_and_return_the_same(measured: BY_NAME) -> None:
    first, second = measured["bench_sort[size=1000]"].processes
    assert first.hash_seed == second.hash_seed
    assert first.note.inputs == second.note.inputs
    assert first.note.checksum == second.note.checksum is not None
    assert first.note.changes_arguments is False
    assert first.note.source == measured["bench_sort[size=1000]"].benchmark.source


def test_chance_is_seen_in_the_checksums(measured: BY_NAME) -> None:
    first, second = measured["bench_chance"].processes
    assert first.note.checksum != second.note.checksum


def test_it_is_told_that_a_function_changes_its_arguments(measured: BY_NAME) -> None:
    note = measured["bench_in_place"].processes[0].note
    assert note.changes_arguments is True
    assert (note.checksum, note.why_unchecked) == (None, "it returns None")


def test_a_check_says_what_the_checksum_is_of(measured: BY_NAME) -> None:
    assert measured["bench_checked"].processes[0].note.checksum is not None


def test_a_calls_memory_is_counted_once_apart_from_the_timing(measured: BY_NAME) -> None:
    memory = measured["bench_allocating"].memory
    if memory is None:
        pytest.skip(str(measured["bench_allocating"].why_uncounted))
    assert memory.allocated_bytes >= 1_000_000
    assert 1_000_000 <= memory.peak_bytes < 1_100_000
    assert all(process.note.memory is None for process in measured["bench_allocating"].processes)


def test_a_failure_is_told_with_the_functions_own_words_and_ends_no_other(measured: BY_NAME) -> None:
    failed = {name: one.failure for name, one in measured.items() if one.failure is not None}
    assert list(failed) == ["bench_failing", "bench_leaving", "bench_wrong"]
    assert "ValueError: no luck" in failed["bench_failing"]
    assert "bench_program" not in failed["bench_failing"]
    assert "exit code 0" in failed["bench_leaving"]
    assert "it found nothing" in failed["bench_wrong"]


OF_NUMPY = {
    "bench_top.py": """
        import numpy

        DATA = numpy.random.rand(5)

        @pyrometer.benchmark
        def bench_top():
            return DATA
    """,
    "bench_inside.py": """
        def make():
            import numpy

            return numpy.random.rand(5)

        @pyrometer.benchmark(setup=make)
        def bench_setup(data):
            return data

        @pyrometer.benchmark
        def bench_call():
            import numpy

            return numpy.random.rand(5)
    """,
}


@pytest.mark.torch
def test_numpy_draws_the_same_in_each_process_wherever_it_is_imported(tmp_path: Path) -> None:
    for name, source in OF_NUMPY.items():
        write_benchmarks(tmp_path, source, name=name)
    runner = BenchmarkRunner(folder=tmp_path, processes=2, threads=1, chooser=random.Random(1))
    checksums = {
        one.benchmark.name: {process.note.checksum for process in one.processes}
        for one in runner.measure(discover(tmp_path))
    }
    assert checksums.keys() == {"bench_top", "bench_setup", "bench_call"}
    assert all(len(seen) == 1 and None not in seen for seen in checksums.values())


def ticks(*durations_ns: int) -> Iterator[int]:
    """A clock that shows these durations between the first and second look, the third and fourth …"""
    now = 0
    for duration_ns in durations_ns:
        yield now
        now += duration_ns
        yield now


def test_calls_are_doubled_until_the_shorter_of_two_tries_is_long_enough() -> None:
    made = itertools.count()
    clock = ticks(STEP_NS, 1, 1, STEP_NS, STEP_NS, STEP_NS + 1)
    assert find_calls(lambda: next(made), clock_ns=lambda: next(clock)) == 4
    assert next(made) == 2 * (1 + 2 + 4)
