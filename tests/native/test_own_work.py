"""Work of the profiler's own on the program's threads: in no scope's time, and nobody's allocations."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import CORE, Clock, assert_conserved, available_recorders, load, seen, totals

MIB = 1024 * 1024


def test_what_is_left_out_is_in_no_open_scope(recorder: Any, clock: Clock) -> None:
    with recorder.scope("epoch"), recorder.scope("step"):
        clock.spend(300)
        clock.spend(5_000)
        recorder.leave_out(5_000)
        with recorder.scope("inner"):
            clock.spend(20)
        clock.spend(7)
    assert totals(recorder) == {("epoch",): 327, ("epoch", "step"): 327, ("epoch", "step", "inner"): 20}
    step = seen(recorder)["epoch", "step"]
    assert (step.min_ns, step.max_ns) == (327, 327)
    assert_conserved(recorder)


def test_and_not_in_what_was_profiled(recorder: Any, clock: Clock) -> None:
    clock.spend(1_000)
    recorder.leave_out(400)
    assert recorder.snapshot()["profiled_ns"] == 600


def test_calls_made_before_and_after_keep_their_time(recorder: Any, clock: Clock) -> None:
    for duration_ns in (10, 30):
        with recorder.scope("step"):
            clock.spend(duration_ns)
        clock.spend(1_000)
        recorder.leave_out(1_000)
    assert totals(recorder) == {("step",): 40}


def test_other_threads_go_on_meanwhile(recorder: Any, clock: Clock) -> None:
    with recorder.scope("main"):
        clock.spend(50)

        def elsewhere() -> None:
            clock.spend(200)
            recorder.leave_out(200)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert totals(recorder)["main",] == 250
    assert recorder.snapshot()["profiled_ns"] == 250


def test_a_recorder_that_is_off_leaves_nothing_out(recorder: Any, clock: Clock) -> None:
    clock.spend(100)
    recorder.stop()
    recorder.leave_out(60)
    assert recorder.snapshot()["profiled_ns"] == 100
    recorder.start()


@pytest.fixture
def core() -> ModuleType:
    if CORE not in available_recorders():
        pytest.skip("the C core is not built: nothing is counted without it")
    return load(CORE)


@pytest.fixture
def counting(core: ModuleType) -> Iterator[ModuleType]:
    if core.count_allocations() is not None:
        pytest.skip("allocations are not counted on this system")
    core.reset_allocations()
    yield core
    core.stop_counting_allocations()


def heap(core: ModuleType) -> int:
    bytes_, _ = core.process_allocations()["heap"]
    return int(bytes_)


def test_what_it_allocates_is_not_counted(counting: ModuleType) -> None:
    recorder = counting.Recorder()
    recorder.start()
    before = counting.process_allocations()
    with recorder.scope("step"):
        kept = bytearray(3 * MIB)
        assert counting.begin_own_work()
        ours = bytearray(40 * MIB)
        in_between = heap(counting)
        counting.end_own_work()
    after = counting.process_allocations()
    step = seen(recorder)["step",]
    recorder.stop()
    assert 3 * MIB <= step.heap_bytes < 4 * MIB
    assert 3 * MIB <= step.peak_bytes < 4 * MIB
    assert in_between - before["heap"][0] < 4 * MIB
    assert after["heap"][0] - before["heap"][0] < 4 * MIB
    assert after["peak"] < 5 * MIB
    assert len(kept) + len(ours) == 43 * MIB


def test_what_it_frees_later_is_not_counted_either(counting: ModuleType) -> None:
    assert counting.begin_own_work()
    ours = bytearray(40 * MIB)
    counting.end_own_work()
    before = counting.process_allocations()
    assert counting.begin_own_work()
    del ours
    counting.end_own_work()
    after = counting.process_allocations()
    assert after["freed"][0] - before["freed"][0] < MIB
    assert abs(after["live"] - before["live"]) < MIB


def test_but_what_it_frees_of_the_programs_is(counting: ModuleType) -> None:
    theirs = [bytearray(10 * MIB)]
    before = counting.process_allocations()
    assert counting.begin_own_work()
    theirs.clear()
    counting.end_own_work()
    after = counting.process_allocations()
    assert 10 * MIB <= after["freed"][0] - before["freed"][0] < 11 * MIB
    assert after["live"] - before["live"] < -9 * MIB


def test_one_inside_another_changes_nothing(counting: ModuleType) -> None:
    assert counting.begin_own_work()
    assert not counting.begin_own_work()
    counting.end_own_work()
    counting.end_own_work()
    before = heap(counting)
    kept = bytearray(2 * MIB)
    assert heap(counting) - before >= 2 * MIB
    assert len(kept) == 2 * MIB


def test_lines_that_allocate_are_not_noted_for_it(counting: ModuleType) -> None:
    if counting.note_allocation_sites(512 * 1024) is not None:
        pytest.skip("stacks cannot be read on this version of Python")
    try:
        counting.begin_own_work()
        ours = bytearray(30 * MIB)
        counting.end_own_work()
        seen_sites = counting.allocation_sites_seen()
    finally:
        counting.note_allocation_sites(0)
    assert seen_sites is not None
    assert all(large_bytes < 30 * MIB for _, _, large_bytes, _ in seen_sites["sites"])
    assert len(ours) == 30 * MIB


def test_a_thread_that_ends_in_it_has_counted_nothing(counting: ModuleType) -> None:
    before = heap(counting)
    thread = threading.Thread(target=lambda: (counting.begin_own_work(), bytearray(30 * MIB)))
    thread.start()
    thread.join()
    assert heap(counting) - before < MIB


@pytest.mark.usefixtures("core")
def test_before_anything_was_counted_nothing_of_the_thread_is_touched() -> None:
    # A key that was never made is the first one of the process, in which Python has the thread's state.
    program = """
import ctypes
from pyrometer._native import core
recorder = core.Recorder()
recorder.start()
watch = core.Watch(recorder, tuple("abcdefghi"), print)
watch.start()
watch.enter(1, True)
core.begin_own_work()
core.end_own_work()
watch.memory()
ctypes.CFUNCTYPE(None)(lambda: print("called"))()
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.returncode) == ("called\n", 0), answer.stderr
