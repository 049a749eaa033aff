"""Generators and coroutines own their scopes: suspended time is apart, and interleaving is harmless."""

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, Seen, assert_conserved, losses, seen, totals


def drive(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Step coroutines in turn until all have ended: an event loop without a clock."""
    waiting = list(coroutines)
    while waiting:
        coroutine = waiting.pop(0)
        try:
            coroutine.send(None)
        except StopIteration:
            continue
        waiting.append(coroutine)


class Pause:
    """Awaiting it suspends once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def timed(node: Seen) -> tuple[int, int, int]:
    return node.calls, node.total_ns, node.suspended_ns


def test_a_generator_pays_for_its_own_time_only(recorder: Any, clock: Clock) -> None:
    def batches() -> Iterator[int]:
        for i in range(3):
            with recorder.scope("load"):
                clock.spend(2)
                yield i
                clock.spend(1)

    with recorder.scope("epoch"):
        for _ in batches():
            with recorder.scope("train"):
                clock.spend(5)
            clock.spend(4)
    nodes = seen(recorder)
    assert timed(nodes["epoch",]) == (1, 36, 0)
    assert timed(nodes["epoch", "load"]) == (3, 9, 27)
    assert timed(nodes["epoch", "train"]) == (3, 15, 0)
    assert nodes["epoch", "load"].max_ns == 3
    assert losses(recorder) == {}


def test_a_generator_stands_under_the_scope_that_resumes_it(recorder: Any, clock: Clock) -> None:
    def work() -> Iterator[None]:
        with recorder.scope("work"):
            clock.spend(1)
            yield
            clock.spend(10)

    generator = work()
    with recorder.scope("first"):
        next(generator)
    clock.spend(100)
    with recorder.scope("second"):
        next(generator, None)
    nodes = seen(recorder)
    assert timed(nodes["first", "work"]) == (0, 1, 100)
    assert timed(nodes["second", "work"]) == (1, 10, 0)
    assert nodes["second", "work"].max_ns == 11
    assert_conserved(recorder)


def test_nested_generators_each_keep_their_scopes(recorder: Any, clock: Clock) -> None:
    def inner() -> Iterator[int]:
        with recorder.scope("inner"):
            clock.spend(1)
            yield 1
            clock.spend(1)

    def outer() -> Iterator[int]:
        with recorder.scope("outer"):
            clock.spend(10)
            yield from inner()
            clock.spend(10)

    for _ in outer():
        with recorder.scope("consumer"):
            clock.spend(100)
    nodes = seen(recorder)
    assert timed(nodes["outer",]) == (1, 22, 100)
    assert timed(nodes["outer", "inner"]) == (1, 2, 100)
    assert timed(nodes["consumer",]) == (1, 100, 0)
    assert losses(recorder) == {}


def test_two_generators_interleaved(recorder: Any, clock: Clock) -> None:
    def work(name: str) -> Iterator[None]:
        with recorder.scope(name):
            for _ in range(2):
                clock.spend(1 if name == "a" else 10)
                yield

    for _ in zip(work("a"), work("b"), strict=True):
        clock.spend(100)
    nodes = seen(recorder)
    assert nodes["a",].total_ns == 2
    assert nodes["b",].total_ns == 20
    assert losses(recorder) == {}
    assert_conserved(recorder)


def test_a_generator_dropped_half_way_closes_its_scope(recorder: Any, clock: Clock) -> None:
    def work() -> Iterator[None]:
        with recorder.scope("work"):
            clock.spend(1)
            yield

    generator = work()
    next(generator)
    clock.spend(50)
    del generator
    gc.collect()
    assert timed(seen(recorder)["work",]) == (1, 1, 50)
    with recorder.scope("after"):
        pass
    assert ("after",) in seen(recorder)


def test_a_suspended_generator_is_not_kept_alive(recorder: Any) -> None:
    finished = []

    def work() -> Iterator[None]:
        try:
            with recorder.scope("work"):
                yield
        finally:
            finished.append(True)

    generator = work()
    next(generator)
    del generator
    gc.collect()
    assert finished == [True]


def test_send_throw_and_close_resume_a_generator_too(recorder: Any, clock: Clock) -> None:
    def work() -> Generator[None, int, None]:
        with recorder.scope("work"):
            try:
                clock.spend((yield))
                yield
            except KeyError:
                clock.spend(20)
                try:
                    yield
                finally:
                    clock.spend(300)

    generator = work()
    next(generator)
    clock.spend(1_000)
    generator.send(1)
    clock.spend(1_000)
    generator.throw(KeyError())
    clock.spend(1_000)
    generator.close()
    assert timed(seen(recorder)["work",]) == (1, 321, 3_000)
    assert losses(recorder) == {}


def test_an_exception_thrown_through_a_delegate_finds_its_scopes(recorder: Any, clock: Clock) -> None:
    def inner() -> Iterator[None]:
        with recorder.scope("inner"):
            try:
                yield
            finally:
                clock.spend(7)

    def outer() -> Iterator[None]:
        with recorder.scope("outer"):
            yield from inner()

    generator = outer()
    next(generator)
    clock.spend(100)
    with pytest.raises(KeyError):
        generator.throw(KeyError())  # type: ignore[attr-defined]
    nodes = seen(recorder)
    assert timed(nodes["outer",]) == (1, 7, 100)
    assert timed(nodes["outer", "inner"]) == (1, 7, 100)


def test_a_delegate_that_catches_what_was_thrown_and_waits_again(recorder: Any, clock: Clock) -> None:
    def inner() -> Iterator[None]:
        with recorder.scope("inner"):
            try:
                yield
            except KeyError:
                clock.spend(7)
                yield
            clock.spend(1)

    def outer() -> Iterator[None]:
        with recorder.scope("outer"):
            yield from inner()

    generator = outer()
    next(generator)
    clock.spend(100)
    generator.throw(KeyError())  # type: ignore[attr-defined]
    with recorder.scope("between"):
        clock.spend(1_000)
    assert list(generator) == []
    nodes = seen(recorder)
    assert timed(nodes["outer",]) == (1, 8, 1_100)
    assert timed(nodes["outer", "inner"]) == (1, 8, 1_100)
    assert timed(nodes["between",]) == (1, 1_000, 0)
    assert losses(recorder) == {}


def test_interleaved_tasks_do_not_nest_in_each_other(recorder: Any, clock: Clock) -> None:
    async def work(name: str, duration_ns: int) -> None:
        with recorder.scope(name):
            clock.spend(duration_ns)
            await Pause()
            clock.spend(duration_ns)

    with recorder.scope("serve"):
        drive(work("a", 1), work("b", 10), work("c", 100))
    nodes = seen(recorder)
    assert timed(nodes["serve",]) == (1, 222, 0)
    assert timed(nodes["serve", "a"]) == (1, 2, 110)
    assert timed(nodes["serve", "b"]) == (1, 20, 101)
    assert timed(nodes["serve", "c"]) == (1, 200, 11)
    assert losses(recorder) == {}


def test_awaited_coroutines_stand_under_the_one_that_awaits(recorder: Any, clock: Clock) -> None:
    async def inner() -> None:
        with recorder.scope("inner"):
            clock.spend(1)
            await Pause()
            clock.spend(1)

    async def outer() -> None:
        with recorder.scope("outer"):
            clock.spend(10)
            await inner()

    drive(outer(), outer())
    nodes = seen(recorder)
    assert set(nodes) == {("outer",), ("outer", "inner")}
    assert nodes["outer",].calls == nodes["outer", "inner"].calls == 2
    assert nodes["outer", "inner"].total_ns == 4
    assert nodes["outer",].total_ns == 24


def test_real_asyncio_tasks(recorder: Any, clock: Clock) -> None:
    async def work(duration_ns: int) -> None:
        with recorder.scope("work"):
            clock.spend(duration_ns)
            await asyncio.sleep(0)
            clock.spend(duration_ns)

    async def main() -> None:
        with recorder.scope("main"):
            clock.spend(1_000)
            await asyncio.gather(work(1), work(10), work(100))

    with recorder.scope("serve"):
        asyncio.run(main())
    nodes = seen(recorder)
    assert timed(nodes["serve", "main"]) == (1, 1_000, 222)
    assert nodes["serve", "work"].calls == 3
    assert nodes["serve", "work"].total_ns == 222
    assert losses(recorder) == {}
    assert_conserved(recorder)


def test_a_cancelled_task_closes_its_scopes(recorder: Any, clock: Clock) -> None:
    async def inner() -> None:
        with recorder.scope("inner"):
            try:
                await asyncio.Event().wait()
            finally:
                clock.spend(3)

    async def main() -> None:
        task = asyncio.create_task(inner())
        await asyncio.sleep(0)
        clock.spend(50)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert timed(seen(recorder)["inner",]) == (1, 3, 50)
    assert losses(recorder) == {}


def test_asynchronous_generators(recorder: Any, clock: Clock) -> None:
    async def batches() -> AsyncIterator[int]:
        for i in range(2):
            with recorder.scope("load"):
                clock.spend(2)
                await Pause()
                yield i
                clock.spend(1)

    async def main() -> None:
        with recorder.scope("epoch"):
            async for _ in batches():
                with recorder.scope("train"):
                    clock.spend(10)

    drive(main())
    nodes = seen(recorder)
    assert timed(nodes["epoch", "load"]) == (2, 6, 20)
    assert timed(nodes["epoch", "train"]) == (2, 20, 0)
    assert nodes["epoch",].total_ns == 26
    assert losses(recorder) == {}


def test_an_asynchronous_generator_left_half_way_closes_its_scope(recorder: Any, clock: Clock) -> None:
    async def batches() -> AsyncIterator[int]:
        with recorder.scope("load"):
            for i in range(10):
                clock.spend(2)
                yield i

    async def main() -> None:
        async for i in batches():
            clock.spend(100)
            if i == 1:
                break

    asyncio.run(main())
    assert timed(seen(recorder)["load",]) == (1, 4, 200)
    assert losses(recorder) == {}


def test_a_scope_behind_a_context_manager_function_belongs_to_the_with(recorder: Any, clock: Clock) -> None:
    @contextlib.contextmanager
    def managed() -> Iterator[None]:
        with recorder.scope("managed"):
            yield

    with managed(), recorder.scope("inner"):
        clock.spend(5)
    nodes = seen(recorder)
    assert timed(nodes["managed",]) == (1, 5, 0)
    assert timed(nodes["managed", "inner"]) == (1, 5, 0)


def test_a_context_manager_function_in_a_coroutine_is_suspended_with_it(recorder: Any, clock: Clock) -> None:
    @contextlib.contextmanager
    def managed() -> Iterator[None]:
        with recorder.scope("managed"):
            yield

    @contextlib.asynccontextmanager
    async def managed_later() -> AsyncIterator[None]:
        with recorder.scope("later"):
            yield

    class Manager:
        def __enter__(self) -> None:
            self.scope = recorder.scope("class").__enter__()

        def __exit__(self, *exception: object) -> None:
            self.scope.__exit__(*exception)

    async def work() -> None:
        with managed(), Manager(), contextlib.ExitStack() as stack:
            stack.enter_context(recorder.scope("stack"))
            async with managed_later():
                clock.spend(1)
                await Pause()
                clock.spend(1)

    async def other() -> None:
        with recorder.scope("other"):
            clock.spend(100)
            await Pause()

    drive(work(), other())
    nodes = seen(recorder)
    path = ("managed", "class", "stack", "later")
    for depth in range(1, 5):
        assert timed(nodes[path[:depth]]) == (1, 2, 100)
    assert timed(nodes["other",]) == (1, 100, 1)
    assert losses(recorder) == {}


def test_suspended_scopes_are_open_in_a_snapshot(recorder: Any, clock: Clock) -> None:
    def work() -> Iterator[None]:
        with recorder.scope("work"):
            clock.spend(1)
            yield

    generator = work()
    next(generator)
    clock.spend(8)
    node = seen(recorder)["work",]
    assert (node.calls, node.open_calls, node.total_ns, node.suspended_ns) == (0, 1, 1, 8)
    recorder.stop()
    node = seen(recorder)["work",]
    assert (node.calls, node.open_calls, node.total_ns, node.suspended_ns) == (0, 1, 1, 8)
    recorder.start()


def test_plain_calls_inside_a_generator_nest_in_its_scope(recorder: Any, clock: Clock) -> None:
    def helper() -> None:
        with recorder.scope("helper"):
            clock.spend(1)

    def work() -> Iterator[None]:
        with recorder.scope("work"):
            for _ in range(3):
                helper()
                yield

    for _ in work():
        helper()
    nodes = seen(recorder)
    assert nodes["work", "helper"].calls == 3
    assert nodes["helper",].calls == 3
    assert nodes["work",].total_ns == 3


def test_a_generator_resumed_where_there_is_no_room_leaves_its_time_there(
    implementation: ModuleType, clock: Clock
) -> None:
    recorder = implementation.Recorder(clock=clock, max_nodes=20)
    recorder.start()

    def work() -> Iterator[None]:
        with recorder.scope("work"):
            clock.spend(1)
            yield
            with recorder.scope("inner"):
                clock.spend(10)
            yield
            clock.spend(100)

    generator = work()
    with recorder.scope("outer"):
        next(generator)
    for i in range(30):
        with recorder.scope(f"fill {i}"):
            pass
    with recorder.scope("late"):
        next(generator)
        clock.spend(5)
    with recorder.scope("outer"):
        next(generator, None)
    recorder.stop()
    nodes = seen(recorder)
    assert nodes["outer",].total_ns == nodes["outer", "work"].total_ns == 101
    assert nodes["outer", "work"].calls == 1
    assert nodes["(other)",].total_ns == 15
    assert_conserved(recorder)


def test_many_suspended_at_once(recorder: Any, clock: Clock) -> None:
    async def work() -> None:
        with recorder.scope("work"):
            clock.spend(1)
            await Pause()
            clock.spend(1)

    drive(*(work() for _ in range(500)))
    assert timed(seen(recorder)["work",])[:2] == (500, 1_000)
    assert losses(recorder) == {}


def test_the_interpreter_is_left_as_it_was(implementation: ModuleType, clock: Clock) -> None:
    recorder = implementation.Recorder(clock=clock)
    recorder.start()

    def work() -> Generator[None, None, None]:
        with recorder.scope("work"):
            yield

    list(work())
    recorder.stop()
    assert sys.getprofile() is None
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(tool_id) for tool_id in (3, 4)] == [None, None]
    with contextlib.closing(work()) as generator:
        next(generator)
    assert totals(recorder) == {("work",): 0}
