"""Resident memory over time: bounded, cheap, and with the system's own peak."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrometer.capture import losses
from pyrometer.capture.memory import FIRST_INTERVAL_NS, MAX_POINTS, MemorySeries
from pyrometer.record.run import Memory


@pytest.fixture(autouse=True)
def fresh_losses() -> Iterator[None]:
    yield
    losses.failures.clear()


class Machine:
    """A clock, and a process whose size is chosen by the test."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000
        self.bytes = 100
        self.peak_bytes = 100
        self.reads = 0

    def read(self) -> int:
        self.reads += 1
        return self.bytes

    def series(self) -> MemorySeries:
        series = MemorySeries(
            clock_ns=lambda: self.now_ns, read_bytes=self.read, read_peak_bytes=lambda: self.peak_bytes
        )
        series.begin()
        return series

    def pass_time(self, series: MemorySeries, points: int, size: Callable[[int], int]) -> None:
        for index in range(points):
            self.now_ns += FIRST_INTERVAL_NS
            self.bytes = size(index)
            series.sample(self.now_ns)


def recorded(series: MemorySeries) -> Memory:
    memory = series.record()
    assert memory is not None
    return memory


def test_points_have_the_time_since_the_beginning() -> None:
    machine = Machine()
    series = machine.series()
    machine.pass_time(series, 2, lambda index: 200 + index)
    assert recorded(series).series == ((0, 100), (FIRST_INTERVAL_NS, 200), (2 * FIRST_INTERVAL_NS, 201))


def test_ticks_alone_keep_the_points_at_even_distances() -> None:
    machine = Machine()
    series = machine.series()
    machine.now_ns += FIRST_INTERVAL_NS
    for _ in range(3):
        machine.now_ns += int(series.tick() * 1e9)
    assert [at_ns // FIRST_INTERVAL_NS for at_ns, _ in recorded(series).series] == [0, 1, 2, 3, 4]


def test_ticks_grow_rare_while_others_read_and_come_back_when_they_stop() -> None:
    machine = Machine()
    series = machine.series()
    waits_s = []
    for _ in range(5):
        series.sample(machine.now_ns)
        waits_s.append(series.tick())
        machine.now_ns += int(waits_s[-1] * 1e9)
    assert waits_s == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert series.tick() == FIRST_INTERVAL_NS / 1e9
    assert recorded(series).series[-1][0] == machine.now_ns - 5_000_000_000


def test_a_point_that_is_not_due_is_not_even_read() -> None:
    machine = Machine()
    series = machine.series()
    for _ in range(1_000):
        machine.now_ns += 1_000
        series.sample(machine.now_ns)
    assert machine.reads == 1


def test_a_record_ends_with_the_size_now() -> None:
    machine = Machine()
    series = machine.series()
    machine.now_ns += 7
    machine.bytes = 300
    assert recorded(series).series == ((0, 100), (7, 300))


def test_a_long_run_keeps_a_bounded_number_of_points_over_all_of_it() -> None:
    machine = Machine()
    series = machine.series()
    machine.pass_time(series, 100_000, lambda index: index + 1)
    points = recorded(series).series
    distances = {later - earlier for (earlier, _), (later, _) in itertools.pairwise(points)}
    assert MAX_POINTS // 4 < len(points) <= MAX_POINTS
    assert points[0] == (0, 100)
    assert points[-1] == (100_000 * FIRST_INTERVAL_NS, 100_000)
    assert max(distances) <= 100_000 * FIRST_INTERVAL_NS // (MAX_POINTS // 4)
    assert machine.reads < 10 * MAX_POINTS


@pytest.mark.parametrize("when", [0, 1, 2, 137, MAX_POINTS - 3, MAX_POINTS - 2])
def test_the_highest_point_is_never_dropped(when: int) -> None:
    machine = Machine()
    series = machine.series()
    machine.pass_time(series, 20_000, lambda index: 9_000 if index == when else 100)
    assert ((when + 1) * FIRST_INTERVAL_NS, 9_000) in recorded(series).series


def test_the_peak_is_the_systems_own() -> None:
    machine = Machine()
    series = machine.series()
    machine.peak_bytes = 12_345
    assert recorded(series).peak_bytes == 12_345


def test_the_peak_is_never_below_what_was_seen() -> None:
    machine = Machine()
    series = machine.series()
    machine.pass_time(series, 1, lambda _: 20_000)
    assert recorded(series).peak_bytes == 20_000


def test_a_size_that_cannot_be_read_is_a_loss() -> None:
    def refuse() -> int:
        raise OSError("closed")

    series = MemorySeries(read_bytes=refuse, read_peak_bytes=refuse)
    series.begin()
    assert series.record() is None
    assert {collector for collector, _ in losses.failures} == {"memory"}


def test_a_growing_process_is_seen_to_grow() -> None:
    series = MemorySeries()
    series.begin()
    block = bytearray(64_000_000)
    memory = recorded(series)
    (_, before), (_, after) = memory.series
    assert 64_000_000 <= after - before < 80_000_000
    assert memory.peak_bytes >= after
    del block


def test_a_forked_child_begins_anew_and_reads_its_own_size() -> None:
    program = """
import os
from pyrometer.capture.memory import MemorySeries
series = MemorySeries()
series.begin()
for _ in range(3):
    series.record()
if os.fork() == 0:
    block = bytearray(64_000_000)
    memory = series.record()
    print(len(memory.series), memory.series[0][0], memory.series[0][1] > 64_000_000, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1 0 True\n"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to list open files")
def test_the_file_kept_open_leaves_the_small_numbers_to_the_program() -> None:
    program = """
import os
before = os.open("/dev/null", os.O_RDONLY)
os.close(before)
from pyrometer.capture.memory import MemorySeries
series = MemorySeries()
series.begin()
print(os.open("/dev/null", os.O_RDONLY) == before)
os.closerange(3, 4_096)
taken = [os.dup(0) for _ in range(1_200)]
series.record()
print(len(series.record().series) > 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\nTrue\n", done.stderr
