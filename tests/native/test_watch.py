"""Phases: what each thread is at, one thing at a time, to the nanosecond."""

import threading
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, losses
from tests.watches import NAMES, NUMBERS, Watched, watch_class


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


def run_in_thread(function: Any) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_function_is_a_phase_while_it_runs(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(5, "batch"))
    watched.clock.spend(2)
    assert fetch() == "batch"
    watched.clock.spend(3)
    assert watched.taken() == {"data": 5, "other": 5}
    assert watched.totals() == {("data",): 5}


def test_an_inner_phase_takes_its_time_from_the_outer_one(watched: Watched) -> None:
    forward = watched.phased("forward", watched.spends(7))

    def step() -> None:
        watched.clock.spend(1)
        forward()
        watched.clock.spend(2)

    watched.phased("optimizer", step)()
    assert watched.taken() == {"optimizer": 3, "forward": 7}
    assert watched.totals() == {("optimizer",): 10, ("optimizer", "forward"): 7}


def test_a_phase_that_is_kept_stays_what_it_is(watched: Watched) -> None:
    inner = watched.phased("loss", watched.spends(4), keeps=["forward"], begun=lambda _: 1 / 0)
    watched.phased("forward", inner)()
    assert watched.taken() == {"forward": 4}
    assert watched.totals() == {("forward",): 4}
    assert watched.failures == []


def test_a_function_of_a_phase_called_in_that_phase_is_part_of_it(watched: Watched) -> None:
    ended: list[Any] = []
    inner = watched.phased("backward", watched.spends(4), ended=lambda *told: ended.append(told))
    outer = watched.phased("backward", inner, ended=lambda *told: ended.append(told))
    outer("loss")
    assert watched.taken() == {"backward": 4}
    assert ended == [("loss", None, 4, False)]


def test_what_was_taken_is_not_taken_again_and_phases_sum_to_the_time_gone_by(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(5))
    began_ns = watched.watch.take()[0]
    sums = 0
    for _ in range(3):
        fetch()
        watched.clock.spend(1)
        now_ns, taken_ns, allocated_bytes, allocations = watched.watch.take()
        assert taken_ns == (1, 5, *(0,) * 7)
        assert allocated_bytes == allocations == (0,) * len(NAMES)
        sums += sum(taken_ns)
    assert sums == now_ns - began_ns == 18


def test_what_is_taken_inside_a_phase_is_that_so_far(watched: Watched) -> None:
    def step() -> None:
        watched.clock.spend(3)
        assert watched.taken() == {"data": 3}
        watched.clock.spend(4)

    watched.phased("data", step)()
    assert watched.taken() == {"data": 4}


def test_callbacks_get_the_first_argument_the_result_and_the_duration(watched: Watched) -> None:
    told: list[Any] = []
    fetch = watched.phased(
        "data",
        watched.spends(5, "batch"),
        begun=told.append,
        ended=lambda *end: told.append(end),
    )
    assert fetch("iterator", 2, key=3) == "batch"
    assert told == ["iterator", ("iterator", "batch", 5, False)]
    fetch(key=3)
    assert told[2:] == [None, (None, "batch", 5, False)]


def test_time_in_callbacks_is_known_and_charged_as_by_a_timer_around_the_call(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(5), begun=watched.spends(2), ended=watched.spends(4))
    fetch()
    assert watched.watch.hook_ns == 6
    assert watched.taken() == {"data": 11}
    assert watched.totals() == {("data",): 5}


def test_a_function_that_raises_leaves_its_phase(watched: Watched) -> None:
    told: list[Any] = []

    def fail(_iterator: object) -> None:
        watched.clock.spend(5)
        raise StopIteration("the end")

    fetch = watched.phased("data", fail, ended=lambda *end: told.append(end))
    with pytest.raises(StopIteration, match="the end"):
        fetch("iterator")
    watched.clock.spend(1)
    assert told == [("iterator", None, 5, True)]
    assert watched.taken() == {"data": 5, "other": 1}
    assert watched.totals() == {("data",): 5}
    assert losses(watched.recorder) == {}


def test_an_error_of_a_callback_is_noted_and_never_raised(watched: Watched) -> None:
    def fail(*_told: object) -> None:
        watched.clock.spend(1)
        raise ValueError("ours")

    fetch = watched.phased("data", watched.spends(5, "batch"), begun=fail, ended=fail)
    assert fetch() == "batch"
    assert [str(error) for error in watched.failures] == ["ours", "ours"]
    assert all(error.__traceback__ is not None for error in watched.failures)
    assert watched.taken() == {"data": 7}


def test_an_error_of_a_callback_leaves_the_programs_exception_as_it_is(watched: Watched) -> None:
    theirs = KeyError("theirs")

    def function() -> None:
        raise theirs

    def fail(*_told: object) -> None:
        raise ValueError("ours")

    with pytest.raises(KeyError) as caught:
        watched.phased("data", function, begun=fail, ended=fail)()
    assert caught.value is theirs
    assert theirs.__context__ is None
    assert len(watched.failures) == 2


def test_an_error_while_noting_an_error_is_swallowed(implementation: ModuleType, clock: Clock) -> None:
    def failed(_error: BaseException) -> None:
        raise TypeError("noting fails too")

    recorder = implementation.Recorder(clock=clock, suspends=False)
    watch = watch_class(implementation)(recorder, NAMES, failed)
    watch.start()
    assert watch.phased(lambda: 3, 1, 0, lambda _: 1 / 0, None)() == 3


@pytest.mark.parametrize("where", ["begun", "ended"])
def test_what_a_signal_handler_raises_in_a_callback_is_the_programs(watched: Watched, where: str) -> None:
    """Ctrl-C, or a handler of SIGTERM that calls sys.exit(): swallowed, the program would go on."""

    def exit_here(*_told: object) -> None:
        raise SystemExit(3)

    callbacks: dict[str, Any] = {where: exit_here}
    fetch = watched.phased("data", watched.spends(5), **callbacks)
    with pytest.raises(SystemExit) as caught:
        fetch()
    assert caught.value.code == 3
    assert watched.failures == []
    watched.clock.spend(1)
    assert watched.taken()["other"] == 1


def test_entering_and_leaving_a_phase(watched: Watched) -> None:
    outer = watched.watch.enter(NUMBERS["optimizer"])
    watched.clock.spend(2)
    inner = watched.watch.enter(NUMBERS["clipping"])
    watched.clock.spend(3)
    watched.watch.leave(inner)
    watched.clock.spend(4)
    watched.watch.leave(outer)
    watched.clock.spend(5)
    assert watched.taken() == {"optimizer": 6, "clipping": 3, "other": 5}
    assert watched.totals() == {("optimizer",): 9, ("optimizer", "clipping"): 3}


def test_a_function_that_keeps_a_phase_keeps_it_when_it_was_entered(watched: Watched) -> None:
    copy = watched.phased("copies", watched.spends(3), keeps=["optimizer"])
    token = watched.watch.enter(NUMBERS["optimizer"])
    copy()
    watched.watch.leave(token)
    assert watched.taken() == {"optimizer": 3}


def test_a_held_phase_has_all_the_time_and_what_is_found_in_it_stands_below(watched: Watched) -> None:
    number = watched.watch.phase("mine")
    assert number == len(NAMES)
    told: list[Any] = []
    fetch = watched.phased("data", watched.spends(5), ended=lambda *end: told.append(end))
    token = watched.watch.enter(number, True)
    watched.clock.spend(1)
    fetch("iterator")
    optimizer = watched.watch.enter(NUMBERS["optimizer"])
    watched.clock.spend(2)
    watched.watch.leave(optimizer)
    watched.watch.leave(token)
    watched.clock.spend(3)
    fetch("iterator")
    _, taken_ns, _, _ = watched.watch.take()
    assert taken_ns[number] == 8
    assert taken_ns[NUMBERS["other"]] == 3
    assert taken_ns[NUMBERS["data"]] == 5
    assert told == [("iterator", None, 5, False)] * 2
    assert watched.totals() == {
        ("mine",): 8,
        ("mine", "data"): 5,
        ("mine", "optimizer"): 2,
        ("data",): 5,
    }


def test_a_function_is_told_of_though_the_program_has_named_its_phase_itself(watched: Watched) -> None:
    told: list[Any] = []
    fetch = watched.phased("data", watched.spends(5), ended=lambda *end: told.append(end))
    token = watched.watch.enter(NUMBERS["data"], True)
    fetch("iterator")
    watched.clock.spend(1)
    watched.watch.leave(token)
    assert told == [("iterator", None, 5, False)]
    assert watched.taken() == {"data": 6}
    assert watched.totals() == {("data",): 6}


def test_inside_a_held_phase_functions_keep_what_they_would_keep_without(watched: Watched) -> None:
    loss = watched.phased("loss", watched.spends(4), keeps=["forward"])

    def forward() -> None:
        token = watched.watch.enter(watched.watch.phase("attention"), True)
        loss()
        watched.watch.leave(token)

    watched.phased("forward", forward)()
    assert watched.totals() == {("forward",): 4, ("forward", "attention"): 4}


def test_a_held_phase_inside_a_held_one_takes_over(watched: Watched) -> None:
    outer, inner = watched.watch.phase("outer"), watched.watch.phase("inner")
    first = watched.watch.enter(outer, True)
    second = watched.watch.enter(inner, True)
    watched.clock.spend(2)
    watched.watch.leave(second)
    watched.phased("data", watched.spends(3))()
    watched.watch.leave(first)
    _, taken_ns, _, _ = watched.watch.take()
    assert (taken_ns[outer], taken_ns[inner]) == (3, 2)


def test_more_phases_than_fit_share_the_last(watched: Watched) -> None:
    numbers = [watched.watch.phase(f"phase {number}") for number in range(40)]
    assert numbers == [*range(9, 32), *[31] * 17]
    token = watched.watch.enter(31, True)
    watched.clock.spend(2)
    watched.watch.leave(token)
    assert watched.watch.take()[1] == (*(0,) * 31, 2)
