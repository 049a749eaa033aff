"""Work on other threads hangs under the scope that asked for it."""

import sys
import threading
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyrometer
from pyrometer import profile, scope
from pyrometer.capture import recording
from pyrometer.capture.snapshots import losses_in

pytestmark = pytest.mark.usefixtures("clean_recorder")


def paths() -> set[tuple[str, ...]]:
    return {node.path for _, node in pyrometer.results().tree.walk()}


def work(name: str = "work") -> None:
    with scope(name):
        pass


def test_a_thread_hangs_under_the_scope_it_was_started_in() -> None:
    with profile():
        with scope("starter"):
            thread = threading.Thread(target=work)
            thread.start()
        thread.join()
    assert paths() == {("starter",), ("starter", "work")}


def test_a_thread_started_outside_any_scope_stands_by_itself() -> None:
    thread = threading.Thread(target=work)
    with profile():
        thread.start()
        thread.join()
    assert paths() == {("work",)}


def test_work_hangs_under_the_scope_that_submitted_it_whatever_thread_does_it() -> None:
    with profile(), ThreadPoolExecutor(1) as pool:
        with scope("first"):
            pool.submit(work, "one").result()
        with scope("second"):
            pool.submit(work, "two").result()
        pool.submit(work, "three").result()
        with scope("second"):
            assert list(pool.map(work, ["two", "two"])) == [None, None]
    assert paths() == {("first",), ("first", "one"), ("second",), ("second", "two"), ("three",)}


def test_executors_imported_while_recording_are_seen_too() -> None:
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("concurrent.")}
    try:
        with profile(), scope("starter"):
            from concurrent.futures import thread as fresh

            with fresh.ThreadPoolExecutor(1) as pool:
                pool.submit(work, "first").result()
                with scope("inner"):
                    pool.submit(work, "second").result()
        assert "__init__" in vars(fresh._WorkItem)
        assert fresh._WorkItem.run.__module__ == "concurrent.futures.thread"
    finally:
        sys.modules.update(hidden)
    assert paths() == {
        ("starter",),
        ("starter", "first"),
        ("starter", "inner"),
        ("starter", "inner", "second"),
    }


def test_everything_is_put_back_when_recording_ends() -> None:
    item: Any = futures.thread._WorkItem
    before = (threading.Thread.start, item.__init__, item.run)
    with profile():
        with profile():
            pass
        assert threading.Thread.start is not before[0]
        assert item.run is not before[2]
    assert (threading.Thread.start, item.__init__, item.run) == before


def test_a_wrapper_somebody_put_around_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that the original comes back after the test, whatever stands there then.
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    started: list[threading.Thread] = []
    with profile():
        ours = threading.Thread.start

        def theirs(thread: threading.Thread) -> None:
            started.append(thread)
            ours(thread)

        setattr(threading.Thread, "start", theirs)  # noqa: B010 - past the type checker
    assert threading.Thread.start is theirs
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert started == [thread]
    assert paths() == set()


class Sealed(threading.Thread):
    """A thread whose dictionary is not to be had."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("sealed")


def test_a_failure_of_ours_is_a_loss_and_the_thread_starts() -> None:
    ran = threading.Event()
    with profile(), scope("starter"):
        thread = Sealed(target=ran.set)
        thread.start()
        thread.join()
    assert ran.is_set()
    (loss,) = losses_in(recording.recorder.snapshot())
    assert (loss.collector, loss.count) == ("threads", 1)
    assert "RuntimeError: sealed" in loss.reason
