"""Threads under one watch, and what is open when watch or recorder are switched."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import CORE, Clock, available_recorders, load, losses, seen, seen_in_strand
from tests.watches import NAMES, NUMBERS, Watched, watch_class


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


def run_in_thread(function: Any) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_each_thread_is_in_its_own_phase(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(5))
    taken: list[dict[str, int]] = []

    def work() -> None:
        watched.taken()
        fetch()
        watched.clock.spend(1)
        taken.append(watched.taken())

    watched.phased("optimizer", lambda: run_in_thread(work))()
    assert taken == [{"data": 5, "other": 1}]
    assert watched.taken() == {"optimizer": 6}
    main, worker = watched.recorder.snapshot()["strands"]
    assert set(seen_in_strand(main)) == {("optimizer",)}
    assert set(seen_in_strand(worker)) == {("data",)}


def test_a_thread_begins_in_no_phase_wherever_one_before_it_was(watched: Watched) -> None:
    taken: list[dict[str, int]] = []

    def leaves_a_phase_open() -> None:
        watched.watch.enter(NUMBERS["data"], True)
        watched.clock.spend(5)

    def work() -> None:
        watched.taken()
        watched.clock.spend(1)
        taken.append(watched.taken())

    for _ in range(3):
        run_in_thread(leaves_a_phase_open)
        run_in_thread(work)
    assert taken == [{"other": 1}] * 3


def test_what_is_wrapped_only_calls_through_before_the_start_and_after_the_end(watched: Watched) -> None:
    told: list[Any] = []
    fetch = watched.phased("data", watched.spends(5, "batch"), begun=told.append, ended=told.append)
    watched.watch.stop()
    assert fetch() == "batch"
    assert watched.watch.enter(NUMBERS["data"]) == -1
    watched.watch.leave(-1)
    assert told == []
    assert watched.totals() == {}
    assert not watched.watch.active


def test_a_start_begins_in_no_phase_with_nothing_taken(watched: Watched) -> None:
    outer = watched.watch.enter(NUMBERS["data"], True)
    inner = watched.watch.enter(NUMBERS["loss"], True)
    watched.clock.spend(2)
    watched.watch.stop()
    watched.clock.spend(3)
    watched.watch.start()
    watched.clock.spend(4)
    watched.watch.leave(inner)
    watched.clock.spend(5)
    watched.watch.leave(outer)
    assert watched.taken() == {"other": 9}


def test_the_other_threads_begin_anew_with_a_start_as_well(watched: Watched) -> None:
    ready, go_on = threading.Event(), threading.Event()
    taken: list[dict[str, int]] = []

    def work() -> None:
        watched.watch.enter(NUMBERS["data"], True)
        ready.set()
        go_on.wait()
        taken.append(watched.taken())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    watched.clock.spend(2)
    watched.watch.stop()
    watched.watch.start()
    watched.clock.spend(3)
    go_on.set()
    thread.join()
    assert taken == [{"other": 3}]


@pytest.mark.parametrize("switch", ["stop and start", "reset"])
def test_a_function_that_was_running_when_all_began_anew_is_not_seen_again(
    watched: Watched, switch: str
) -> None:
    told: list[Any] = []
    inner = watched.phased("loss", watched.spends(4))

    def step() -> None:
        watched.clock.spend(1)
        if switch == "reset":
            watched.watch.reset()
        else:
            watched.watch.stop()
            watched.watch.start()
        inner()
        watched.clock.spend(2)

    watched.phased("data", step, ended=lambda *end: told.append(end))()
    watched.clock.spend(3)
    assert watched.taken() == {"loss": 4, "other": 5}
    assert told == []
    # The recorder went on all the while.
    assert watched.totals() == {("data",): 7, ("data", "loss"): 4}


def test_a_callback_that_stops_the_watch_is_harmless(watched: Watched) -> None:
    ended: list[Any] = []
    fetch = watched.phased(
        "data", watched.spends(5, "batch"), begun=lambda _: watched.watch.stop(), ended=ended.append
    )
    assert fetch() == "batch"
    assert ended == []
    assert watched.totals() == {}


def test_a_recorder_switched_inside_a_phase_loses_nothing(watched: Watched) -> None:
    def step() -> None:
        watched.clock.spend(1)
        watched.recorder.stop()
        watched.clock.spend(2)
        watched.recorder.start()
        token = watched.watch.enter(NUMBERS["loss"])
        watched.recorder.reset()
        watched.clock.spend(3)
        watched.watch.leave(token)

    watched.phased("data", step)()
    watched.phased("clearing", watched.spends(4))()
    assert watched.taken() == {"data": 3, "loss": 3, "clearing": 4}
    assert watched.totals() == {("clearing",): 4}
    assert losses(watched.recorder) == {}


def test_while_the_recorder_is_off_phases_are_counted_all_the_same(watched: Watched) -> None:
    watched.recorder.stop()
    watched.phased("data", watched.spends(5))()
    assert watched.taken() == {"data": 5}
    assert seen(watched.recorder) == {}


def test_two_watches_on_one_thread_know_nothing_of_each_other(
    implementation: ModuleType, clock: Clock
) -> None:
    one, two = Watched(implementation, clock), Watched(implementation, clock)
    fetch = one.phased("data", two.phased("forward", one.phased("loss", one.spends(3))))
    for _ in range(2):
        fetch()
    assert one.taken() == {"loss": 6}
    assert two.taken() == {"forward": 6}
    assert one.totals() == {("data",): 6, ("data", "loss"): 6}


def test_wrong_arguments_are_refused(implementation: ModuleType, watched: Watched) -> None:
    make = watch_class(implementation)
    with pytest.raises(ValueError, match="at least 8 phases, not 2"):
        make(watched.recorder, ("other", "data"), print)
    with pytest.raises(TypeError, match="name must be a str"):
        make(watched.recorder, (1,) * 9, print)
    with pytest.raises(ValueError, match="there is no phase 9"):
        watched.watch.enter(9)
    with pytest.raises(ValueError, match="there is no phase -1"):
        watched.watch.phased(print, -1, 0, None, None)
    for detail in (-1, 3):
        with pytest.raises(ValueError, match="there is no detail"):
            watched.watch.detail = detail
    with pytest.raises(AttributeError):
        del watched.watch.detail
    with pytest.raises(TypeError, match="is not a type"):
        watched.watch.set_tensor_type(3)
    assert watched.watch.detail == 0


def test_a_watch_that_nobody_needs_any_more_goes(implementation: ModuleType, clock: Clock) -> None:
    class Holder:
        def __init__(self) -> None:
            recorder = implementation.Recorder(clock=clock, suspends=False)
            self.watch = watch_class(implementation)(recorder, NAMES, self.failed)
            self.watch.start()
            self.fetch = self.watch.phased(lambda: self, 1, 0, None, None)

        def failed(self, error: BaseException) -> None: ...

    holder = Holder()
    holder.fetch()
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_forked_child_can_stop_start_and_count_for_itself(watched: Watched) -> None:
    read, write = os.pipe()

    def step() -> None:
        watched.clock.spend(1)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        # From here on the child, in the middle of its parent's phase.
        watched.watch.stop()
        watched.recorder.reset()
        watched.watch.start()
        watched.phased("loss", watched.spends(4))()
        os.write(write, repr((watched.taken(), watched.totals())).encode())
        os._exit(0)

    watched.phased("data", step)()
    assert eval(os.read(read, 1_000)) == ({"loss": 4}, {("loss",): 4})  # noqa: S307 - our own bytes
    assert watched.taken() == {"data": 1}
    os.close(read)
    os.close(write)


EXIT = """
import threading
from tests.recorders import Clock, load
from tests.watches import Watched, chain
watched = Watched(load(%r), Clock())
watched.watch.detail = 1
net = chain(watched, "net", "net.a")
fetch = watched.phased("data", net)
begun = threading.Barrier(4)

def work():
    begun.wait()
    while True:
        fetch()
        net()

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
net()
print("exits")
"""


def test_a_program_may_end_while_other_threads_are_at_work(implementation: ModuleType) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", EXIT % implementation.__name__]
    for _ in range(5):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "exits\n", "")


@pytest.mark.torch
@pytest.mark.skipif(
    CORE not in available_recorders() or sys.platform != "linux",
    reason="allocations are counted on Linux, in C",
)
def test_bytes_are_those_of_the_thread_whoever_starts_the_watch() -> None:
    import torch

    core = load(CORE)
    assert core.count_allocations() is None
    watched = Watched(core, Clock())
    ready, go_on = threading.Event(), threading.Event()
    taken: list[Any] = []

    def work() -> None:
        watched.watch.take()
        torch.empty(1_000)
        ready.set()
        go_on.wait()
        taken.append(watched.watch.take()[2:])
        watched.phased("data", lambda: torch.empty(10))()
        taken.append(watched.watch.take()[2:])

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    watched.watch.stop()
    torch.empty(100_000)
    watched.watch.start()
    go_on.set()
    thread.join()
    core.stop_counting_allocations()
    nothing = (0,) * len(NAMES)
    assert taken == [(nothing, nothing), ((0, 40, *nothing[2:]), (0, 1, *nothing[2:]))]
