"""Single calls kept one by one, while they are asked for."""

import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tests.recorders import Clock, totals

START_NS = 1_000_000


def times(recorder: Any) -> list[tuple[str, int, int, int]]:
    """Name, depth, start and end since the clock's start; all on this thread."""
    calls, lost = recorder.take_log()
    assert lost == 0
    assert {thread_id for _, thread_id, *_ in calls} <= {threading.get_ident()}
    return [(name, depth, start - START_NS, end - START_NS) for name, _, depth, start, end in calls]


def test_calls_are_kept_in_the_order_they_end_with_their_depth(recorder: Any, clock: Clock) -> None:
    recorder.start_log(100)
    for _ in range(2):
        with recorder.scope("outer"):
            clock.spend(10)
            with recorder.scope("inner"):
                clock.spend(5)
    assert times(recorder) == [
        ("inner", 2, 10, 15),
        ("outer", 1, 0, 15),
        ("inner", 2, 25, 30),
        ("outer", 1, 15, 30),
    ]
    assert totals(recorder) == {("outer",): 30, ("outer", "inner"): 10}


def test_a_call_open_before_and_after_the_log_is_in_it_whole(recorder: Any, clock: Clock) -> None:
    with recorder.scope("epoch"):
        clock.spend(7)
        recorder.start_log(100)
        clock.spend(3)
        assert times(recorder) == [("epoch", 1, 0, 10)]
    assert recorder.take_log() == ([], 0)


def test_nothing_is_kept_before_or_after(recorder: Any, clock: Clock) -> None:
    with recorder.scope("before"):
        clock.spend(1)
    recorder.start_log(100)
    recorder.take_log()
    with recorder.scope("after"):
        clock.spend(1)
    assert recorder.take_log() == ([], 0)


def test_what_finds_no_room_is_counted(recorder: Any) -> None:
    recorder.start_log(2)
    for name in "abcde":
        with recorder.scope(name):
            pass
    calls, lost = recorder.take_log()
    assert ([name for name, *_ in calls], lost) == (["a", "b"], 3)


def test_a_generators_scope_is_one_stretch_for_each_time_it_runs(recorder: Any, clock: Clock) -> None:
    def batches() -> Iterator[int]:
        with recorder.scope("batch"):
            for number in range(2):
                clock.spend(4)
                yield number

    recorder.start_log(100)
    for _ in batches():
        clock.spend(100)
    assert times(recorder)[:2] == [("batch", 1, 0, 4), ("batch", 1, 104, 108)]


def test_each_thread_has_its_own(implementation: ModuleType) -> None:
    recorder = implementation.Recorder()
    recorder.start()
    recorder.start_log(100)

    def work() -> None:
        with recorder.scope("work"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with recorder.scope("here"):
        pass
    calls, _ = recorder.take_log()
    recorder.stop()
    assert [name for name, *_ in calls] == ["work", "here"]
    assert calls[0][1] != calls[1][1] == threading.get_ident()
    assert all(start <= end <= recorder.now() for *_, start, end in calls)


def test_a_log_outlives_a_reset(recorder: Any, clock: Clock) -> None:
    recorder.start_log(100)
    with recorder.scope("a"):
        clock.spend(2)
    recorder.reset()
    with recorder.scope("b"):
        clock.spend(2)
    assert [name for name, *_ in times(recorder)] == ["a", "b"]
