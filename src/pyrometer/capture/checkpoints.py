"""A thread that saves what was recorded every few seconds, and hears of SIGTERM.

``_thread`` starts it, so it is not among ``threading.enumerate()`` and nobody waits for it. It is
gone while the process forks: a thread would not survive in the child, and Python warns of
forks beside threads.
"""

import _thread
import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from pyrometer.capture import termination
from pyrometer.capture.descriptors import high_pipe
from pyrometer.capture.losses import note_failure
from pyrometer.capture.own_work import OwnWork

_MAX_SHARE = 1 / 400
"""Of the time that saving may take, while the program waits for the interpreter: then pauses grow longer."""
_LONGEST_PAUSE = 1.8
"""In intervals."""
_FIRST_SOONER = 5
"""Times that the first comes sooner: a program may be ended early, and what saving takes is taken early."""


def pause_s(interval_s: float, *, saving_s: float) -> float:
    """How long to wait for the next checkpoint, when the last took so much processor time."""
    return min(max(interval_s, saving_s / _MAX_SHARE), interval_s * _LONGEST_PAUSE)


class Checkpoints:
    """Calls ``save`` every ``interval_s`` or less often, and ``terminated`` once when SIGTERM has come.

    ``tick`` is called more often: it says itself after how many seconds. ``begun`` is called by the
    thread that does all this, when it begins.
    """

    def __init__(
        self,
        *,
        save: Callable[[], None],
        terminated: Callable[[], None],
        interval_s: float,
        begun: Callable[[], object] | None = None,
        tick: Callable[[], float] | None = None,
    ) -> None:
        self._save = save
        self._terminated = terminated
        self._interval_s = interval_s
        self._pause_s = interval_s / _FIRST_SOONER
        self._begun = begun
        self._tick = tick
        self._read_fd, self._write_fd = high_pipe()
        self._stopping = False
        self._running = False
        self._unheard = False
        self._ended = _thread.allocate_lock()
        self._thread_id: int | None = None
        self._own_work = OwnWork()
        self.cost_ns = 0
        """Time spent saving, and in ticks, so far."""

    def watch_termination(self) -> None:
        """Have SIGTERM announced here; on the main thread only."""
        termination.watch(self._write_fd)

    def start(self) -> None:
        """Start the thread; it may be stopped and started again."""
        self._stopping = False
        self._running = True
        self._ended.acquire()
        # Signals are the program's threads' to receive, interrupt a call with, or hold back. The
        # new thread inherits the mask: set by itself, it would come a moment too late.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            _thread.start_new_thread(self._work, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def stop(self) -> None:
        """Stop the thread and wait until it is gone; a checkpoint under way is finished first."""
        if not self._running:
            return
        self._running = False
        self._stopping = True
        with contextlib.suppress(OSError):  # the program has closed it, and the thread knows
            os.write(self._write_fd, b"S")
        self._ended.acquire()
        self._ended.release()
        _wait_for_thread(self._thread_id)

    def heard_termination(self) -> bool:
        """Whether a SIGTERM has come that nobody has acted on; asked while the thread is stopped."""
        with contextlib.suppress(OSError):  # nothing in it, or closed by the program
            if termination.is_announced(os.read(self._read_fd, 64)):
                termination.heard()
                self._unheard = True
        return self._unheard

    def close(self) -> None:
        """Stop hearing of SIGTERM for good."""
        termination.unwatch()
        self.abandon()

    def abandon(self) -> None:
        """Close the pipe, without asking what is in it: it may be the parent's."""
        for fd in (self._read_fd, self._write_fd):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _work(self) -> None:
        self._thread_id = _thread.get_native_id()
        try:
            if self._begun is not None:
                self._begun()
            while not self._stopping:
                event = self._wait()
                if event == b"T":
                    self._terminated()
                elif event == b"":
                    self._save_once()
        except Exception as error:  # noqa: BLE001 - nothing of ours may end in the program's stderr
            note_failure("checkpoints", "no more checkpoints", error)
        finally:
            self._ended.release()

    def _wait(self) -> bytes:
        """What woke the thread: ``T`` for SIGTERM, ``S`` to stop, nothing when time is up."""
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        deadline_s = time.monotonic() + self._pause_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            for _, happened in poll.poll(min(left_s, self._ticked()) * 1_000):
                if not happened & select.POLLIN:
                    termination.unwatch()
                    raise OSError("the program closed our pipe")
                # One of ours to stop and SIGTERM's may both be there: SIGTERM goes first. Other
                # bytes are other signals, which the twin's wake-up hears of too.
                found = os.read(self._read_fd, 64)
                if termination.is_announced(found):
                    termination.heard()
                    return b"T"
                if b"S" in found:
                    return b"S"
        return b""

    def _ticked(self) -> float:
        """The seconds until the next tick."""
        if self._tick is None:
            return self._interval_s
        began_ns = time.perf_counter_ns()
        with self._own_work:
            next_s = self._tick()
        self.cost_ns += time.perf_counter_ns() - began_ns
        return next_s

    def _save_once(self) -> None:
        began_ns, ran_s = time.perf_counter_ns(), time.thread_time()
        try:
            with self._own_work:
                self._save()
        except Exception as error:  # noqa: BLE001 - a full disk must not end the program
            note_failure("checkpoints", "a checkpoint was not written", error)
        self.cost_ns += time.perf_counter_ns() - began_ns
        self._pause_s = pause_s(self._interval_s, saving_s=time.thread_time() - ran_s)


def _wait_for_thread(thread_id: int | None) -> None:
    """Until the system has let go of the thread, which is a moment after its last Python line."""
    task = Path(f"/proc/self/task/{thread_id}")
    deadline_ns = time.perf_counter_ns() + 100_000_000
    while task.exists() and time.perf_counter_ns() < deadline_ns:
        time.sleep(0)
