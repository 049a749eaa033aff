"""What a call of a scope held at most: over what its thread held when the call began."""

import gc
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import CORE, available_recorders, load, seen, seen_in_strand

SLACK_BYTES = 64 * 1024
"""What a thread may have kept without having told of it, when it falls again."""


def about(size: int, expected: int) -> bool:
    return abs(size - expected) < SLACK_BYTES


@pytest.fixture
def counting() -> Iterator[ModuleType]:
    if CORE not in available_recorders():
        pytest.skip("the C core is not built: nothing is counted without it")
    core = load(CORE)
    if core.count_allocations() is not None:
        pytest.skip("allocations are not counted on this system")
    # Recorders of other tests, on and part of a cycle, would have the few places there are for peaks.
    gc.collect()
    yield core
    core.stop_counting_allocations()


@pytest.fixture
def recording(counting: ModuleType) -> Iterator[Any]:
    """A recorder that is on, while allocations are counted."""
    recorder = counting.Recorder()
    recorder.start()
    yield recorder
    recorder.stop()


def test_a_scope_knows_the_most_a_call_of_it_held(recording: Any) -> None:
    with recording.scope("outer"):
        kept = bytearray(1_000_000)
        for size in (200_000, 500_000, 300_000):
            with recording.scope("inner"):
                bytearray(size)
        del kept
        with recording.scope("later"):
            bytearray(100_000)
    nodes = seen(recording)
    assert about(nodes["outer",].peak_bytes, 1_500_000)
    assert about(nodes["outer", "inner"].peak_bytes, 500_000)
    assert about(nodes["outer", "later"].peak_bytes, 100_000)


def test_a_call_that_is_still_open_has_its_peak_so_far(recording: Any) -> None:
    with recording.scope("outer"):
        bytearray(400_000)
        with recording.scope("inner"):
            bytearray(2_000_000)
            nodes = seen(recording)
    assert about(nodes["outer",].peak_bytes, 2_000_000)
    assert about(nodes["outer", "inner"].peak_bytes, 2_000_000)


def test_what_was_there_before_a_call_is_no_part_of_its_peak(recording: Any) -> None:
    before = bytearray(5_000_000)
    with recording.scope("free first"):
        del before
        bytearray(3_000_000)
    assert seen(recording)["free first",].peak_bytes < SLACK_BYTES


def test_many_small_blocks_are_held_too(recording: Any) -> None:
    with recording.scope("rows"):
        rows = [bytearray(1_000) for _ in range(3_000)]
        rows.clear()
    peak_bytes = seen(recording)["rows",].peak_bytes
    assert 3_000_000 - SLACK_BYTES < peak_bytes < 3_300_000


def test_a_generator_holds_what_it_held_before_it_was_suspended(recording: Any) -> None:
    def work() -> Iterator[None]:
        with recording.scope("work"):
            first = bytearray(1_000_000)
            yield
            second = bytearray(700_000)
            yield
            del first, second

    steps = work()
    next(steps)
    others = bytearray(9_000_000)
    with recording.scope("drive"):
        next(steps)
    del others
    list(steps)
    nodes = seen(recording)
    assert about(nodes["drive",].peak_bytes, 700_000)
    assert about(max(node.peak_bytes for path, node in nodes.items() if path[-1] == "work"), 1_700_000)


def test_two_recorders_have_peaks_of_their_own(counting: ModuleType) -> None:
    one, other = counting.Recorder(), counting.Recorder()
    one.start()
    other.start()
    first, second = one.scope("first"), other.scope("second")
    first.__enter__()
    bytearray(3_000_000)
    second.__enter__()
    bytearray(1_000_000)
    first.__exit__(None, None, None)
    bytearray(2_000_000)
    second.__exit__(None, None, None)
    assert about(seen(one)["first",].peak_bytes, 3_000_000)
    assert about(seen(other)["second",].peak_bytes, 2_000_000)
    one.stop()
    other.stop()


def test_each_thread_has_its_own_peak(recording: Any) -> None:
    def work(size: int) -> None:
        with recording.scope(f"{size}"):
            bytearray(size)

    with recording.scope("wait"):
        threads = [threading.Thread(target=work, args=(size,)) for size in (1_000_000, 4_000_000)]
        for thread in threads:
            thread.start()
            thread.join()
    peaks = {
        path[-1]: node.peak_bytes
        for strand in recording.snapshot()["strands"]
        for path, node in seen_in_strand(strand).items()
    }
    assert about(peaks["1000000"], 1_000_000)
    assert about(peaks["4000000"], 4_000_000)
    assert peaks["wait"] < SLACK_BYTES


def test_more_recorders_than_marks_do_without_peaks(counting: ModuleType) -> None:
    recorders = [counting.Recorder() for _ in range(9)]
    last = recorders[-1]
    for recorder in recorders:
        recorder.start()
    with last.scope("work"):
        bytearray(1_000_000)
    node = seen(last)["work",]
    last.stop()
    assert node.peak_bytes == -1
    assert node.heap_bytes >= 1_000_000
