"""Threads: a tree each, under the scope that started them, with wall time apart from summed time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

from tests.recorders import Clock, assert_conserved, losses, seen, seen_in_strand


def run_in_thread(function: Callable[[], None], name: str = "worker") -> None:
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()


def test_each_thread_has_its_own_tree(recorder: Any, clock: Clock) -> None:
    def work() -> None:
        with recorder.scope("work"):
            clock.spend(3)

    with recorder.scope("main"):
        run_in_thread(work, "one")
        run_in_thread(work, "two")
    strands = recorder.snapshot()["strands"]
    assert [strand[1] for strand in strands] == ["MainThread", "one", "two"]
    assert [strand[2] for strand in strands] == [None, None, None]
    assert seen_in_strand(strands[1])["work",].total_ns == 3


def test_threads_that_hang_nowhere_share_their_wall_time_too(recorder: Any, clock: Clock) -> None:
    def work() -> None:
        with recorder.scope("work"):
            clock.spend(3)

    with recorder.scope("main"):
        run_in_thread(work, "one")
        run_in_thread(work, "two")
    main, one, two = recorder.snapshot()["strands"]
    assert seen_in_strand(main)["main",].wall_ns == -1
    assert seen_in_strand(one)["work",].wall_ns == seen_in_strand(two)["work",].wall_ns == 6
    recorder.reset()
    run_in_thread(work)
    (strand,) = recorder.snapshot()["strands"]
    assert seen_in_strand(strand)["work",].wall_ns == 3


def test_a_thread_that_enters_a_position_hangs_there(recorder: Any, clock: Clock) -> None:
    with recorder.scope("epoch"), recorder.scope("parallel"):
        position = recorder.position()

        def work() -> None:
            assert recorder.enter_position(position)
            with recorder.scope("step"):
                clock.spend(3)
            recorder.leave_position()

        run_in_thread(work)
    main, worker = recorder.snapshot()["strands"]
    assert worker[2] == (0, 1)
    assert main[4][1][1] == "parallel"
    assert seen_in_strand(worker)["step",].wall_ns == 3
    assert seen(recorder)["epoch", "parallel"].wall_ns == -1


def test_wall_time_counts_overlapping_threads_once(recorder: Any, clock: Clock) -> None:
    """Two workers, 0–10 and 4–16 on the clock: 22 ns of thread time within 16 ns of wall time."""
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    with recorder.scope("parallel"):
        position = recorder.position()

        def first() -> None:
            recorder.enter_position(position)
            with recorder.scope("step"):
                clock.spend(4)
                first_is_in.set()
                second_is_in.wait()
                clock.spend(6)
            recorder.leave_position()
            first_is_out.set()

        def second() -> None:
            first_is_in.wait()
            recorder.enter_position(position)
            with recorder.scope("step"):
                second_is_in.set()
                first_is_out.wait()
                clock.spend(6)
            recorder.leave_position()

        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    steps = [seen_in_strand(strand)["step",] for strand in recorder.snapshot()["strands"][1:]]
    assert sorted(step.total_ns for step in steps) == [10, 12]
    assert [step.wall_ns for step in steps] == [16, 16]
    assert_conserved(recorder)


def test_a_pool_thread_has_a_strand_for_each_scope_it_works_for(recorder: Any, clock: Clock) -> None:
    def work(position: Any) -> None:
        recorder.enter_position(position)
        with recorder.scope("work"):
            clock.spend(1)
        recorder.leave_position()

    with ThreadPoolExecutor(max_workers=1) as pool:
        for name in ("train", "evaluate", "train"):
            with recorder.scope(name):
                pool.submit(work, recorder.position()).result()
    strands = recorder.snapshot()["strands"]
    assert [strand[2] for strand in strands] == [None, (0, 0), (0, 1)]
    assert seen_in_strand(strands[1])["work",].calls == 2
    assert seen_in_strand(strands[2])["work",].calls == 1


def test_a_thread_started_by_a_thread_hangs_where_that_one_is(recorder: Any, clock: Clock) -> None:
    def under(position: Any, body: Callable[[], None]) -> Callable[[], None]:
        def work() -> None:
            recorder.enter_position(position)
            body()
            recorder.leave_position()

        return work

    def innermost() -> None:
        with recorder.scope("inner"):
            clock.spend(1)

    def middle() -> None:
        with recorder.scope("middle"):
            run_in_thread(under(recorder.position(), innermost))

    with recorder.scope("outer"):
        run_in_thread(under(recorder.position(), middle))
    strands = recorder.snapshot()["strands"]
    assert [strand[2] for strand in strands] == [None, (0, 0), (1, 0)]


def test_outside_any_scope_there_is_no_position(recorder: Any) -> None:
    assert recorder.position() is None


def test_a_position_of_before_a_reset_is_void(recorder: Any, clock: Clock) -> None:
    with recorder.scope("gone"):
        position = recorder.position()
    recorder.reset()

    def work() -> None:
        recorder.enter_position(position)
        with recorder.scope("work"):
            clock.spend(1)
        recorder.leave_position()

    run_in_thread(work)
    (strand,) = recorder.snapshot()["strands"]
    assert strand[2] is None


def test_a_scope_left_open_when_its_thread_ends_stops_there(recorder: Any, clock: Clock) -> None:
    def work() -> None:
        recorder.scope("left open").__enter__()
        clock.spend(5)

    run_in_thread(work)
    clock.spend(1_000)
    node = seen(recorder)["left open",]
    assert (node.calls, node.open_calls, node.total_ns) == (0, 1, 5)


def test_a_thread_that_follows_one_which_left_a_scope_open_starts_at_the_top(
    recorder: Any, clock: Clock
) -> None:
    def work() -> None:
        recorder.scope("left open").__enter__()
        clock.spend(5)

    for _ in range(3):
        run_in_thread(work, "same name")
        clock.spend(1_000)
    strands = [seen_in_strand(strand) for strand in recorder.snapshot()["strands"]]
    assert {path for strand in strands for path in strand} == {("left open",)}
    assert sum(strand["left open",].total_ns for strand in strands) == 15
    assert sum(strand["left open",].open_calls for strand in strands) == 3
    assert {strand["left open",].wall_ns for strand in strands} == {15}


def test_leaving_a_scope_on_another_thread_is_a_loss(recorder: Any, clock: Clock) -> None:
    scope = recorder.scope("shared")
    scope.__enter__()
    run_in_thread(lambda: scope.__exit__(None, None, None))
    clock.spend(2)
    assert seen(recorder)["shared",].open_calls == 1
    assert losses(recorder) == {"unmatched_exits": 1}


def test_many_short_threads_are_folded_together(recorder: Any, clock: Clock) -> None:
    def work() -> None:
        with recorder.scope("work"), recorder.scope("inner"):
            clock.spend(1)

    with recorder.scope("main"):
        pass
    # All alive at once, so that no thread's id is used twice.
    barrier = threading.Barrier(51)

    def work_and_wait() -> None:
        work()
        barrier.wait()

    for _ in range(12):
        threads = [threading.Thread(target=work_and_wait) for _ in range(50)]
        for thread in threads:
            thread.start()
        barrier.wait()
        for thread in threads:
            thread.join()
    strands = recorder.snapshot()["strands"]
    assert len(strands) <= 64 + 52
    assert sum(strand[3] for strand in strands) >= 300
    works = [seen_in_strand(strand) for strand in strands[1:]]
    assert sum(nodes["work",].calls for nodes in works) == 600
    assert sum(nodes["work", "inner"].calls for nodes in works) == 600
    assert losses(recorder) == {}
    assert_conserved(recorder)


def test_a_real_clock_and_many_threads_lose_nothing(implementation: ModuleType) -> None:
    recorder = implementation.Recorder()
    recorder.start()
    scope = recorder.scope("outer")

    def work() -> None:
        for _ in range(2_000):
            with scope, recorder.scope("inner"):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        recorder.snapshot()
    for thread in threads:
        thread.join()
    recorder.stop()
    strands = recorder.snapshot()["strands"]
    assert sum(seen_in_strand(strand)["outer", "inner"].calls for strand in strands) == 16_000
    assert losses(recorder) == {}
    assert_conserved(recorder)
