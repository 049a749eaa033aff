"""Programs whose every nanosecond is known, because they move the clock themselves."""

import asyncio
import threading
from collections.abc import Generator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recorders import Clock, Path


class Times(NamedTuple):
    """What the recorder says of one node."""

    calls: int
    total_ns: int
    min_ns: int
    max_ns: int
    suspended_ns: int = 0
    wall_ns: int = -1


def tree_of(recorder: Any) -> dict[Path, Times]:
    """Every node by its path; a thread's paths begin with that of the scope it was started in."""
    paths: list[list[Path]] = []
    tree: dict[Path, Times] = {}
    for _, _, parent, _, nodes in recorder.snapshot()["strands"]:
        root: Path = () if parent is None else paths[parent[0]][parent[1]]
        own: list[Path] = []
        paths.append(own)
        for parent_index, name, calls, _open, total, least, greatest, suspended, wall, *_ in nodes:
            path = (root if parent_index < 0 else own[parent_index]) + (name,)
            own.append(path)
            times = Times(calls, total, least, greatest, suspended, wall)
            tree[path] = times if path not in tree else added(tree[path], times)
    return tree


def added(one: Times, other: Times) -> Times:
    return Times(
        one.calls + other.calls,
        one.total_ns + other.total_ns,
        min(one.min_ns, other.min_ns),
        max(one.max_ns, other.max_ns),
        one.suspended_ns + other.suspended_ns,
        max(one.wall_ns, other.wall_ns),
    )


def test_scopes_side_by_side_last_as_long_as_the_program_spent_in_them(recorder: Any, clock: Clock) -> None:
    for duration_ns in (3, 1, 7):
        clock.spend(100)
        with recorder.scope("short"):
            clock.spend(duration_ns)
        with recorder.scope("long"):
            clock.spend(1_000 * duration_ns)
    assert tree_of(recorder) == {
        ("short",): Times(3, 11, 1, 7),
        ("long",): Times(3, 11_000, 1_000, 7_000),
    }


def test_the_same_name_under_two_parents_is_two_nodes(recorder: Any, clock: Clock) -> None:
    with recorder.scope("outer"):
        clock.spend(1)
        with recorder.scope("middle"):
            clock.spend(20)
            with recorder.scope("inner"):
                clock.spend(300)
        with recorder.scope("inner"):
            clock.spend(4_000)
        clock.spend(50_000)
    assert tree_of(recorder) == {
        ("outer",): Times(1, 54_321, 54_321, 54_321),
        ("outer", "middle"): Times(1, 320, 320, 320),
        ("outer", "middle", "inner"): Times(1, 300, 300, 300),
        ("outer", "inner"): Times(1, 4_000, 4_000, 4_000),
    }


def test_each_level_of_a_recursion_is_a_node_of_its_own(recorder: Any, clock: Clock) -> None:
    def descend(levels: int) -> None:
        clock.spend(10**levels)
        if levels:
            profiled(levels - 1)

    profiled = recorder.profiled(descend, "descend")
    profiled(3)
    profiled(1)
    assert tree_of(recorder) == {
        ("descend",): Times(2, 1_111 + 11, 11, 1_111),
        ("descend", "descend"): Times(2, 111 + 1, 1, 111),
        ("descend", "descend", "descend"): Times(1, 11, 11, 11),
        ("descend", "descend", "descend", "descend"): Times(1, 1, 1, 1),
    }


def test_a_call_that_raises_lasts_until_it_raised(recorder: Any, clock: Clock) -> None:
    def fail() -> None:
        with recorder.scope("outer"):
            clock.spend(5)
            with recorder.scope("inner"):
                clock.spend(7)
                raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert tree_of(recorder) == {("outer",): Times(1, 12, 12, 12), ("outer", "inner"): Times(1, 7, 7, 7)}


def test_a_generator_is_not_inside_its_scope_while_its_consumer_works(recorder: Any, clock: Clock) -> None:
    def produce() -> Generator[None, None, None]:
        with recorder.scope("produce"):
            for _ in range(3):
                clock.spend(10)
                yield
            clock.spend(5)

    with recorder.scope("consume"):
        for _ in produce():
            clock.spend(100)
            with recorder.scope("use"):
                clock.spend(1_000)
    assert tree_of(recorder) == {
        ("consume",): Times(1, 3_335, 3_335, 3_335),
        ("consume", "produce"): Times(1, 35, 35, 35, suspended_ns=3_300),
        ("consume", "use"): Times(3, 3_000, 1_000, 1_000),
    }


def test_interleaved_tasks_are_each_charged_their_own_time(recorder: Any, clock: Clock) -> None:
    async def work(name: str, duration_ns: int) -> None:
        with recorder.scope(name):
            for _ in range(3):
                clock.spend(duration_ns)
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(work("one", 1), work("two", 10), work("two", 100))

    asyncio.run(main())
    tree = tree_of(recorder)
    assert tree.keys() == {("one",), ("two",)}
    assert tree["one",][:4] == (1, 3, 3, 3)
    assert tree["two",][:4] == (2, 330, 30, 300)


def test_a_thread_hangs_under_the_scope_it_works_for(recorder: Any, clock: Clock) -> None:
    def work(position: object, duration_ns: int) -> None:
        recorder.enter_position(position)
        with recorder.scope("work"):
            clock.spend(duration_ns)
        recorder.leave_position()

    with recorder.scope("parallel"):
        clock.spend(1)
        for duration_ns in (20, 300):
            thread = threading.Thread(target=work, args=(recorder.position(), duration_ns))
            thread.start()
            thread.join()
    assert tree_of(recorder) == {
        ("parallel",): Times(1, 321, 321, 321),
        ("parallel", "work"): Times(2, 320, 20, 300, wall_ns=320),
    }


def test_threads_inside_at_once_add_up_in_total_but_not_in_wall_time(recorder: Any, clock: Clock) -> None:
    class Worker(threading.Thread):
        def __init__(self, position: object) -> None:
            super().__init__()
            self.position = position
            self.may_enter, self.inside, self.may_leave = (threading.Event() for _ in range(3))

        def run(self) -> None:
            self.may_enter.wait()
            recorder.enter_position(self.position)
            with recorder.scope("work"):
                self.inside.set()
                self.may_leave.wait()
            recorder.leave_position()

        def enter(self) -> None:
            self.may_enter.set()
            self.inside.wait()

        def leave(self) -> None:
            self.may_leave.set()
            self.join()

    with recorder.scope("parallel"):
        one, two = Worker(recorder.position()), Worker(recorder.position())
        one.start()
        two.start()
        one.enter()
        clock.spend(10)
        two.enter()
        clock.spend(200)
        one.leave()
        clock.spend(3_000)
        two.leave()
    assert tree_of(recorder) == {
        ("parallel",): Times(1, 3_210, 3_210, 3_210),
        ("parallel", "work"): Times(2, 210 + 3_200, 210, 3_200, wall_ns=3_210),
    }


class Call(NamedTuple):
    """One call of a made-up program: time before, between and after the calls it makes."""

    name: str
    pauses_ns: list[int]
    calls: "list[Call]"

    def duration_ns(self) -> int:
        return sum(self.pauses_ns) + sum(call.duration_ns() for call in self.calls)


def calls_making(calls: st.SearchStrategy[list[Call]]) -> st.SearchStrategy[Call]:
    durations_ns = st.integers(min_value=0, max_value=2**40)
    return st.builds(
        Call,
        name=st.sampled_from("abc"),
        pauses_ns=st.lists(durations_ns, min_size=1, max_size=3),
        calls=calls,
    )


single_calls = calls_making(st.just([]))
nested_calls = st.recursive(single_calls, lambda calls: calls_making(st.lists(calls, max_size=3)))


@given(program=st.lists(nested_calls, max_size=4))
def test_any_tree_of_calls_is_recorded_to_the_nanosecond(
    implementation: ModuleType, program: list[Call]
) -> None:
    clock = Clock()
    recorder = implementation.Recorder(clock=clock)
    expected: dict[Path, Times] = {}

    def perform(call: Call, path: Path) -> None:
        with recorder.scope(call.name):
            for pause_ns in call.pauses_ns:
                clock.spend(pause_ns)
            for inner in call.calls:
                perform(inner, (*path, inner.name))
        duration_ns = call.duration_ns()
        times = Times(1, duration_ns, duration_ns, duration_ns)
        expected[path] = added(expected[path], times) if path in expected else times

    recorder.start()
    for call in program:
        perform(call, (call.name,))
    recorder.stop()
    assert tree_of(recorder) == expected
