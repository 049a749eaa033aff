"""Calls of modules that raise, callbacks that do, switches in mid-call, and calls that are measured."""

import gc
import threading
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, losses, seen, seen_in_strand
from tests.watches import Watched, chain


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


def test_a_module_that_raises_is_left(watched: Watched) -> None:
    def fail() -> None:
        watched.clock.spend(2)
        raise KeyError("theirs")

    inner = watched.module("net.a", fail)
    net = watched.module("net", inner)
    for _ in range(2):
        with pytest.raises(KeyError, match="theirs"):
            net()
    assert watched.told[-1] == ("ended", "net", None, 2, True)
    chain(watched, "other net")()
    assert watched.taken() == {"forward": 5}
    assert watched.totals() == {
        ("forward",): 5,
        ("forward", "net"): 4,
        ("forward", "net", "net.a"): 4,
        ("forward", "other net"): 1,
    }
    assert losses(watched.recorder) == {}


@pytest.mark.parametrize("name", ["describe", "root_begun", "root_ended", "measure", "tracks_gradients"])
def test_an_error_of_a_callback_is_noted_and_never_raised(watched: Watched, name: str) -> None:
    def fail(*_told: object) -> Any:
        raise ValueError("ours")

    watched.module.__call__ = watched.module_call(watched.module.call, **{name: fail})
    watched.watch.detail = 2
    net = chain(watched, "net", "net.a")
    assert net() == "result"
    assert {str(error) for error in watched.failures} == {"ours"}
    watched.clock.spend(1)
    assert watched.taken()["other"] == (3 if name == "describe" else 1)


def test_an_error_of_a_callback_leaves_the_programs_exception_as_it_is(watched: Watched) -> None:
    theirs = KeyError("theirs")

    def forward() -> None:
        raise theirs

    def fail(*_told: object) -> None:
        raise ValueError("ours")

    watched.module.__call__ = watched.module_call(watched.module.call, root_ended=fail)
    with pytest.raises(KeyError) as caught:
        watched.module("net", forward)()
    assert caught.value is theirs
    assert len(watched.failures) == 1


@pytest.mark.parametrize("name", ["describe", "root_begun", "root_ended", "measure", "tracks_gradients"])
def test_what_a_signal_handler_raises_in_a_callback_is_the_programs(watched: Watched, name: str) -> None:
    def interrupted(*_told: object) -> Any:
        raise KeyboardInterrupt

    watched.module.__call__ = watched.module_call(watched.module.call, **{name: interrupted})
    watched.watch.detail = 2
    with pytest.raises(KeyboardInterrupt):
        chain(watched, "net", "net.a")()
    assert watched.failures == []
    watched.clock.spend(1)
    assert watched.taken()["other"] == 1


@pytest.mark.parametrize("description", [None, ("name",), (3, False)])
def test_a_module_without_a_name_is_called_all_the_same(watched: Watched, description: object) -> None:
    watched.module.__call__ = watched.module_call(watched.module.call, describe=lambda *_: description)
    assert chain(watched, "net")() == "result"
    assert watched.totals() == {}
    assert len(watched.failures) == 1


def test_a_module_that_resets_the_watch_is_not_seen_again_and_those_below_begin_anew(
    watched: Watched,
) -> None:
    inner = chain(watched, "net.a")

    def forward() -> None:
        watched.clock.spend(1)
        watched.recorder.reset()
        watched.watch.reset()
        inner()
        watched.clock.spend(2)

    net = watched.module("net", watched.module("net.b", forward))
    net()
    assert watched.taken() == {"forward": 1, "other": 2}
    assert watched.totals() == {("forward",): 1, ("forward", "net.a"): 1}
    assert losses(watched.recorder) == {}
    net()
    assert [told[1] for told in watched.told if told[0] == "ended"] == ["net.a", "net.a"]


def test_a_module_that_stops_and_starts_the_watch(watched: Watched) -> None:
    inner = chain(watched, "net.a")

    def forward() -> str:
        watched.watch.stop()
        watched.recorder.stop()
        inner()
        watched.recorder.start()
        watched.watch.start()
        inner()
        return "result"

    watched.watch.detail = 1
    assert watched.module("net", forward)() == "result"
    node = seen(watched.recorder)["forward", "net"]
    assert (node.calls, node.open_calls) == (0, 1)
    assert watched.totals()["forward", "net.a"] == 1
    assert watched.watch.detail == 0
    assert losses(watched.recorder) == {}


def test_another_thread_may_reset_while_a_module_runs(watched: Watched) -> None:
    inner = chain(watched, "net.a")

    def forward() -> None:
        thread = threading.Thread(target=watched.watch.reset)
        thread.start()
        thread.join()
        gc.collect()
        inner()

    watched.watch.detail = 1
    for _ in range(20):
        watched.module("net", forward)()
    assert watched.totals()["forward", "net", "forward", "net.a"] == 20
    assert watched.failures == []


def test_each_thread_has_its_own_modules(watched: Watched) -> None:
    net = chain(watched, "net", "net.a")

    def forward() -> None:
        thread = threading.Thread(target=net)
        thread.start()
        thread.join()

    watched.module("outer", forward)()
    main, worker = watched.recorder.snapshot()["strands"]
    assert set(seen_in_strand(main)) == {("forward",), ("forward", "outer")}
    assert ("forward", "net", "net.a") in seen_in_strand(worker)
    assert ("begun", "net", (), None, True) in watched.told


def test_many_threads_call_the_same_modules(implementation: ModuleType) -> None:
    watched = Watched(implementation, Clock())
    net = chain(watched, "net", "net.a", duration_ns=0)
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for number in range(300):
            net()
            if number % 50 == 0:
                watched.watch.take()
                watched.watch.detail = number % 3

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    strands = [seen_in_strand(strand) for strand in watched.recorder.snapshot()["strands"]]
    assert sum(strand["forward", "net", "net.a"].calls for strand in strands) == 8 * 300
    assert watched.failures == []
    assert losses(watched.recorder) == {}


def test_sizes_are_taken_of_a_few_calls_in_steps_chosen_for_it(watched: Watched) -> None:
    net = watched.module("net", watched.spends(1, "result"))
    net(0)
    for detail in (2, 1):
        watched.watch.detail = detail
        for number in range(15):
            net(number, key=detail)
    watched.watch.detail = 0
    net(0)
    assert [told for told in watched.told if told[0] == "measured"] == [
        *(("measured", "net", (number,), {"key": 2}, "result") for number in range(15)),
        ("measured", "net", (0,), {"key": 1}, "result"),
    ]


def test_a_call_in_which_the_watch_was_switched_is_not_measured(watched: Watched) -> None:
    def forward() -> None:
        watched.watch.stop()
        watched.watch.start()

    watched.watch.detail = 2
    watched.module("net", forward)()
    assert [told[0] for told in watched.told] == ["described", "begun"]


def test_a_call_that_raises_is_not_measured(watched: Watched) -> None:
    def fail() -> None:
        raise KeyError

    watched.watch.detail = 2
    with pytest.raises(KeyError):
        watched.module("net", fail)()
    assert not [told for told in watched.told if told[0] == "measured"]


def test_what_is_wrapped_only_calls_through_while_the_watch_is_off(watched: Watched) -> None:
    watched.watch.stop()
    assert chain(watched, "net")() == "result"
    assert watched.told == []
    assert watched.totals() == {}


def test_a_module_whose_class_calls_it_without_itself_is_the_programs_error(watched: Watched) -> None:
    with pytest.raises(TypeError, match="self"):
        watched.module.__call__()
