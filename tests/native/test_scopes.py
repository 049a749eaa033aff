"""Scopes on one thread: what is counted where, whatever order things happen in."""

from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, assert_conserved, losses, seen, totals


def test_a_scope_lasts_as_long_as_the_clock_says(recorder: Any, clock: Clock) -> None:
    with recorder.scope("forward"):
        clock.spend(3_000)
    assert totals(recorder) == {("forward",): 3_000}


def test_calls_are_counted_with_their_shortest_and_longest(recorder: Any, clock: Clock) -> None:
    scope = recorder.scope("step")
    for duration_ns in (30, 10, 20):
        with scope:
            clock.spend(duration_ns)
    step = seen(recorder)["step",]
    assert (step.calls, step.total_ns, step.min_ns, step.max_ns) == (3, 60, 10, 30)
    assert step.buckets == ((10, 1), (20, 1), (30, 1))


def test_entering_a_scope_gives_the_scope(recorder: Any) -> None:
    scope = recorder.scope("x")
    with scope as entered:
        pass
    assert entered is scope
    assert scope.name == "x"
    assert repr(scope) == "scope('x')"


def test_the_same_name_under_different_parents_stays_apart(recorder: Any, clock: Clock) -> None:
    for parent, duration_ns in (("train", 5), ("evaluate", 7)):
        with recorder.scope(parent), recorder.scope("forward"):
            clock.spend(duration_ns)
    assert totals(recorder) == {
        ("train",): 5,
        ("train", "forward"): 5,
        ("evaluate",): 7,
        ("evaluate", "forward"): 7,
    }


def test_names_equal_but_not_identical_are_one_scope(recorder: Any, clock: Clock) -> None:
    for number in (0, 0):
        with recorder.scope(f"layer {number}"):
            clock.spend(4)
    assert seen(recorder)["layer 0",].calls == 2


def test_a_name_that_is_not_text_is_refused_at_once(recorder: Any) -> None:
    with pytest.raises(TypeError, match="a scope's name must be a str, not int: 3"):
        recorder.scope(3)


def test_a_subclass_of_str_is_a_name_like_any_other(recorder: Any) -> None:
    class Name(str):
        __slots__ = ()

    with recorder.scope(Name("x")), recorder.scope("y"):
        pass
    assert set(seen(recorder)) == {("x",), ("x", "y")}


def test_a_very_long_name_is_cut(recorder: Any) -> None:
    with recorder.scope("x" * 1_000), recorder.scope("y" * 5_000):
        pass
    assert set(seen(recorder)) == {("x" * 1_000,), ("x" * 1_000, "y" * 999 + "…")}


def test_recursion_nests(recorder: Any, clock: Clock) -> None:
    scope = recorder.scope("f")

    def recurse(depth: int) -> None:
        with scope:
            clock.spend(1)
            if depth:
                recurse(depth - 1)

    recurse(3)
    assert totals(recorder) == {("f",) * n: 5 - n for n in range(1, 5)}


def test_a_scope_left_by_an_exception_is_counted(recorder: Any, clock: Clock) -> None:
    def fail() -> None:
        with recorder.scope("outer"), recorder.scope("inner"):
            clock.spend(2)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        fail()
    assert totals(recorder) == {("outer",): 2, ("outer", "inner"): 2}
    assert losses(recorder) == {}


def test_a_scope_still_open_is_listed_as_open_with_its_time_so_far(recorder: Any, clock: Clock) -> None:
    scope = recorder.scope("open")
    scope.__enter__()
    clock.spend(9)
    node = seen(recorder)["open",]
    assert (node.calls, node.open_calls, node.total_ns, node.min_ns, node.max_ns) == (0, 1, 9, -1, -1)
    clock.spend(1)
    scope.__exit__(None, None, None)
    node = seen(recorder)["open",]
    assert (node.calls, node.open_calls, node.total_ns) == (1, 0, 10)


def test_scopes_left_open_when_recording_stops_stay_listed(implementation: ModuleType, clock: Clock) -> None:
    recorder = implementation.Recorder(clock=clock)
    recorder.start()
    scope = recorder.scope("open")
    scope.__enter__()
    clock.spend(9)
    recorder.stop()
    clock.spend(100)
    scope.__exit__(None, None, None)
    node = seen(recorder)["open",]
    assert (node.calls, node.open_calls, node.total_ns) == (0, 1, 9)
    assert losses(recorder) == {}


def test_closing_a_scope_closes_what_is_open_inside_it(recorder: Any, clock: Clock) -> None:
    outer, inner = recorder.scope("outer"), recorder.scope("inner")
    outer.__enter__()
    inner.__enter__()
    clock.spend(5)
    outer.__exit__(None, None, None)
    clock.spend(100)
    inner.__exit__(None, None, None)
    assert totals(recorder) == {("outer",): 5, ("outer", "inner"): 5}
    assert losses(recorder) == {"out_of_order": 1, "unmatched_exits": 1}


def test_an_exit_without_an_entry_is_a_loss_and_nothing_else(recorder: Any, clock: Clock) -> None:
    with recorder.scope("a"):
        recorder.scope("never entered").__exit__(None, None, None)
        clock.spend(1)
    assert totals(recorder) == {("a",): 1}
    assert losses(recorder) == {"unmatched_exits": 1}


def test_nothing_is_recorded_until_started(implementation: ModuleType, clock: Clock) -> None:
    recorder = implementation.Recorder(clock=clock)
    with recorder.scope("before"):
        clock.spend(1)
    assert not recorder.enabled
    assert recorder.snapshot()["strands"] == []
    assert recorder.snapshot()["profiled_ns"] == 0


def test_a_scope_open_before_recording_began_is_said_to_be_missing(
    implementation: ModuleType, clock: Clock
) -> None:
    recorder = implementation.Recorder(clock=clock)
    with recorder.scope("early"):
        recorder.start()
        with recorder.scope("seen"):
            clock.spend(2)
    recorder.stop()
    assert totals(recorder) == {("seen",): 2}
    assert losses(recorder) == {"unmatched_exits": 1}


def test_starts_nest_and_stretches_add_up(implementation: ModuleType, clock: Clock) -> None:
    recorder = implementation.Recorder(clock=clock)
    recorder.start()
    recorder.start()
    clock.spend(3)
    recorder.stop()
    assert recorder.enabled
    clock.spend(4)
    recorder.stop()
    recorder.stop()
    assert not recorder.enabled
    clock.spend(100)
    recorder.start()
    clock.spend(5)
    assert recorder.snapshot()["profiled_ns"] == 12
    recorder.stop()
    assert recorder.snapshot()["profiled_ns"] == 12


def test_reset_forgets_everything_but_stays_on(recorder: Any, clock: Clock) -> None:
    kept = recorder.scope("kept")
    with kept, recorder.scope("inner"):
        clock.spend(5)
    recorder.scope("x").__exit__(None, None, None)
    recorder.reset()
    assert recorder.snapshot()["strands"] == []
    assert recorder.snapshot()["entries"] == 0
    assert losses(recorder) == {}
    with kept:
        clock.spend(2)
    assert totals(recorder) == {("kept",): 2}


def test_reset_inside_a_scope_does_not_see_that_scope_again(recorder: Any, clock: Clock) -> None:
    with recorder.scope("outer"):
        clock.spend(1)
        recorder.reset()
        with recorder.scope("inner"):
            clock.spend(2)
    assert totals(recorder) == {("inner",): 2}
    assert losses(recorder) == {"unmatched_exits": 1}


def test_entries_count_every_enabled_scope(recorder: Any) -> None:
    for _ in range(3):
        with recorder.scope("a"), recorder.scope("b"):
            pass
    assert recorder.snapshot()["entries"] == 6


def test_a_clock_that_goes_back_gives_no_negative_time(recorder: Any, clock: Clock) -> None:
    with recorder.scope("a"):
        clock.spend(-10)
    assert totals(recorder) == {("a",): 0}


class TestBounds:
    """Memory does not grow with the number of names or the depth of recursion."""

    def test_names_beyond_the_limit_go_to_other(self, implementation: ModuleType, clock: Clock) -> None:
        recorder = implementation.Recorder(clock=clock, max_nodes=40)
        recorder.start()
        with recorder.scope("parent"):
            for i in range(1_000):
                with recorder.scope(f"item {i}"):
                    clock.spend(1)
        recorder.stop()
        nodes = seen(recorder)
        assert len(nodes) == 39  # 38 named, and one "(other)"
        other = nodes["parent", "(other)"]
        assert other.calls == other.total_ns == 1_000 - 37
        assert nodes["parent",].total_ns == 1_000
        assert losses(recorder) == {"places": 963}
        assert_conserved(recorder)

    def test_what_is_inside_other_is_counted_there(self, implementation: ModuleType, clock: Clock) -> None:
        recorder = implementation.Recorder(clock=clock, max_nodes=60)
        recorder.start()
        for i in range(40):
            with recorder.scope(f"item {i}"), recorder.scope("inner"):
                clock.spend(1)
        recorder.stop()
        nodes = seen(recorder)
        assert sum(node.total_ns for path, node in nodes.items() if len(path) == 1) == 40
        assert ("(other)", "inner") not in nodes
        assert_conserved(recorder)

    def test_with_no_room_even_for_other_time_stays_with_the_parent(
        self, implementation: ModuleType, clock: Clock
    ) -> None:
        recorder = implementation.Recorder(clock=clock, max_nodes=3)
        recorder.start()
        with recorder.scope("a"), recorder.scope("b"), recorder.scope("c"):
            for name in "de":
                with recorder.scope(name), recorder.scope("inner"):
                    clock.spend(1)
        recorder.stop()
        assert totals(recorder) == {("a",): 2, ("a", "b"): 2, ("a", "b", "c"): 2}
        assert losses(recorder) == {"places": 4}

    def test_deep_recursion_goes_to_other(self, implementation: ModuleType, clock: Clock) -> None:
        recorder = implementation.Recorder(clock=clock, max_depth=10)
        recorder.start()
        scope = recorder.scope("f")

        def recurse(depth: int) -> None:
            with scope:
                clock.spend(1)
                if depth > 1:
                    recurse(depth - 1)

        recurse(50)
        recorder.stop()
        nodes = seen(recorder)
        assert max(len(path) for path in nodes) == 11
        assert nodes["f",].total_ns == 50
        assert nodes[(*["f"] * 10, "(other)")].total_ns == 40
        assert losses(recorder) == {"depth": 40}
        assert_conserved(recorder)

    def test_the_deepest_tree_there_is_can_be_read(self, implementation: ModuleType) -> None:
        recorder = implementation.Recorder()
        recorder.start()
        scopes = [recorder.scope("f") for _ in range(1_500)]
        for scope in scopes:
            scope.__enter__()
        for scope in scopes:
            scope.__exit__(None, None, None)
        recorder.stop()
        assert max(len(path) for path in seen(recorder)) == 1_001
        assert losses(recorder) == {"depth": 500}

    def test_a_scope_named_like_the_overflow_is_an_ordinary_scope(self, recorder: Any, clock: Clock) -> None:
        with recorder.scope("(other)"), recorder.scope("inner"):
            clock.spend(3)
        assert totals(recorder) == {("(other)",): 3, ("(other)", "inner"): 3}
        assert losses(recorder) == {}

    def test_the_default_limits_are_those_of_the_documentation(self, implementation: ModuleType) -> None:
        recorder = implementation.Recorder()
        recorder.start()
        for i in range(20_500):
            with recorder.scope(f"{i}"):
                pass
        recorder.stop()
        assert 19_000 <= len(seen(recorder)) <= 20_000
        assert losses(recorder)["places"] == 20_500 - 19_000
