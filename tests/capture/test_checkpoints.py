"""The thread that saves what was recorded."""

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrometer.capture import termination
from pyrometer.capture.checkpoints import Checkpoints, pause_s
from pyrometer.capture.losses import failures

OFTEN_S = 0.001
NEVER_S = 1_000_000.0


class Calls:
    """Counts the calls of a checkpoint's two callbacks, and lets a test wait for them."""

    def __init__(self) -> None:
        self.saved = threading.Semaphore(0)
        self.terminated = threading.Semaphore(0)
        self.error: Exception | None = None

    def save(self) -> None:
        self.saved.release()
        if self.error is not None:
            raise self.error

    def terminate(self) -> None:
        self.terminated.release()

    def checkpoints(self, interval_s: float) -> Checkpoints:
        return Checkpoints(save=self.save, terminated=self.terminate, interval_s=interval_s)


@pytest.fixture(autouse=True)
def no_failures() -> Iterator[None]:
    failures.clear()
    yield
    failures.clear()


def test_it_saves_again_and_again_and_counts_the_time() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(OFTEN_S)
    checkpoints.start()
    for _ in range(3):
        calls.saved.acquire()
    checkpoints.stop()
    assert checkpoints.cost_ns > 0
    assert not checkpoints.heard_termination()
    checkpoints.close()


@pytest.mark.parametrize(
    ("saving_s", "expected_s"), [(0.0, 5.0), (0.001, 5.0), (0.02, 8.0), (0.03, 9.0), (60.0, 9.0)]
)
def test_what_takes_longer_to_save_is_saved_less_often_but_within_ten_seconds(
    saving_s: float, expected_s: float
) -> None:
    assert pause_s(5.0, saving_s=saving_s) == pytest.approx(expected_s)


def running_tasks() -> set[str]:
    """The threads of this process as Linux knows them; elsewhere none."""
    return {path.name for path in Path("/proc/self/task").glob("*")}


def test_it_is_no_thread_the_program_can_see_and_gone_when_stopped() -> None:
    tasks = running_tasks()
    checkpoints = Calls().checkpoints(NEVER_S)
    before = threading.enumerate()
    checkpoints.start()
    assert threading.enumerate() == before
    checkpoints.stop()
    assert running_tasks() <= tasks
    checkpoints.close()


def test_it_can_be_stopped_and_started_again() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(OFTEN_S)
    for _ in range(3):
        checkpoints.start()
        calls.saved.acquire()
        checkpoints.stop()
        checkpoints.stop()
    checkpoints.close()


def test_a_save_that_fails_is_counted_and_the_next_is_tried() -> None:
    calls = Calls()
    calls.error = OSError("disk full")
    checkpoints = calls.checkpoints(OFTEN_S)
    checkpoints.start()
    for _ in range(3):
        calls.saved.acquire()
    checkpoints.stop()
    checkpoints.close()
    ((collector, reason),) = failures
    assert collector == "checkpoints"
    assert reason == "a checkpoint was not written: OSError: disk full"


def test_a_byte_of_the_signals_handler_is_heard() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(NEVER_S)
    checkpoints.start()
    os.write(checkpoints._write_fd, b"T")
    calls.terminated.acquire()
    checkpoints.stop()
    assert not checkpoints.heard_termination()
    checkpoints.close()


def test_a_signal_that_nobody_acted_on_is_told_at_the_end() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(NEVER_S)
    checkpoints.start()
    checkpoints.stop()
    os.write(checkpoints._write_fd, b"T")
    assert checkpoints.heard_termination()
    assert checkpoints.heard_termination()
    checkpoints.close()


def test_a_signal_during_a_fork_is_heard_after_it() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(NEVER_S)
    checkpoints.start()
    checkpoints.stop()
    os.write(checkpoints._write_fd, b"T")
    checkpoints.start()
    calls.terminated.acquire()
    checkpoints.stop()
    checkpoints.close()


def test_a_program_that_closes_all_files_only_loses_its_checkpoints() -> None:
    calls = Calls()
    checkpoints = calls.checkpoints(OFTEN_S)
    checkpoints.abandon()
    checkpoints.start()
    while not failures:
        os.sched_yield()
    checkpoints.stop()
    ((collector, reason),) = failures
    assert (collector, reason) == ("checkpoints", "no more checkpoints: OSError: the program closed our pipe")


def test_the_pipe_stays_away_from_the_programs_numbers() -> None:
    checkpoints = Calls().checkpoints(NEVER_S)
    assert min(checkpoints._read_fd, checkpoints._write_fd) > 200
    assert not os.get_inheritable(checkpoints._write_fd)
    checkpoints.close()


def test_it_never_receives_a_signal_not_even_before_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[set[int]] = []

    def note_inherited_mask(
        work: Callable[[], None], arguments: tuple[()], start: Any = _thread.start_new_thread
    ) -> int:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return int(start(work, arguments))

    monkeypatch.setattr(_thread, "start_new_thread", note_inherited_mask)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    checkpoints = Calls().checkpoints(NEVER_S)
    checkpoints.start()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    checkpoints.stop()
    checkpoints.close()
    (inherited,) = masks
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1} <= inherited


@pytest.mark.parametrize("running", [True, False], ids=["by the thread", "at the end"])
def test_the_core_is_told_that_its_byte_was_read(monkeypatch: pytest.MonkeyPatch, running: bool) -> None:
    told = threading.Semaphore(0)
    monkeypatch.setattr(termination, "heard", told.release)
    calls = Calls()
    checkpoints = calls.checkpoints(NEVER_S)
    os.write(checkpoints._write_fd, b"T")
    if running:
        checkpoints.start()
        calls.terminated.acquire()
        checkpoints.stop()
    else:
        assert checkpoints.heard_termination()
    assert told.acquire(blocking=False)
    checkpoints.close()
