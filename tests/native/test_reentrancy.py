"""The program's own code may run in the middle of ours: collections, finalizers, Ctrl-C."""

import gc
import signal
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, assert_conserved, losses, seen, seen_in_strand, totals


class InACollection:
    """Makes the garbage collector run often, and enter a scope each time."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.before = gc.get_threshold()

    def __call__(self, phase: str, _info: object) -> None:
        if phase == "start":
            with self.recorder.scope("collection"):
                pass

    def __enter__(self) -> None:
        gc.callbacks.append(self)
        gc.set_threshold(1)

    def __exit__(self, *exception: object) -> None:
        gc.set_threshold(*self.before)
        gc.callbacks.remove(self)


def test_a_collection_that_enters_scopes_while_a_generator_is_suspended(recorder: Any) -> None:
    def work() -> Iterator[list[object]]:
        with recorder.scope("a"), recorder.scope("b"), recorder.scope("c"):
            yield [[] for _ in range(20)]

    with InACollection(recorder):
        for _ in range(50):
            list(work())
    nodes = seen(recorder)
    assert nodes["a", "b", "c"].calls == nodes["a",].calls == 50
    assert losses(recorder) == {}
    assert_conserved(recorder)


def test_reset_may_drop_the_last_reference_to_a_generator(implementation: ModuleType, clock: Clock) -> None:
    recorder = implementation.Recorder(clock=clock)

    def work() -> Iterator[None]:
        recorder.start()  # so that this first suspension may go unseen
        with recorder.scope("a"):
            yield

    generator = work()
    next(generator)
    del generator
    recorder.reset()
    with recorder.scope("z"), recorder.scope("y"):
        clock.spend(1)
    recorder.stop()
    assert {path: total_ns for path, total_ns in totals(recorder).items() if path[0] == "z"} == {
        ("z",): 1,
        ("z", "y"): 1,
    }


def test_a_scope_in_a_finalizer_at_a_threads_end_does_not_reach_other_threads(
    recorder: Any, clock: Clock
) -> None:
    local = threading.local()

    class UsesAScope:
        def __del__(self) -> None:
            with recorder.scope("finalizer"):
                clock.spend(1)

    def work() -> None:
        with recorder.scope("work"):
            clock.spend(1)
        local.kept = UsesAScope()

    def other() -> None:
        with recorder.scope("other"):
            clock.spend(1)

    for target in (work, other) * 3:
        thread = threading.Thread(target=target, name=target.__name__)
        thread.start()
        thread.join()
    for strand in recorder.snapshot()["strands"]:
        if strand[1] == "other":
            assert set(seen_in_strand(strand)) == {("other",)}


def test_ctrl_c_that_comes_while_we_work_is_not_lost(
    implementation: ModuleType, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = implementation.Recorder(clock=clock)
    recorder.start()

    class Interrupted(type(threading.current_thread())):  # type: ignore[misc]
        @property
        def _pyrometer_position(self) -> None:  # asked for when a thread is first met
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.current_thread(), "__class__", Interrupted)
    with pytest.raises(KeyboardInterrupt), recorder.scope("a"):
        for _ in range(10):  # signals are looked for where loops turn
            pass
    monkeypatch.undo()
    recorder.stop()
