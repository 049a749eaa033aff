"""The process's resident memory over time, in a bounded number of points."""

import contextlib
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyrometer.capture.descriptors import move_high
from pyrometer.capture.losses import note_failure
from pyrometer.record.run import Memory

MAX_POINTS = 512
FIRST_INTERVAL_NS = 100_000_000
"""Between points at first; doubles whenever there are too many."""
LONGEST_PATIENCE_NS = 1_000_000_000
"""Between ticks, while others sample."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")


class MemorySeries:
    """(time since ``begin()``, bytes) pairs at even distances, at most ``MAX_POINTS``.

    When they are too many, every second one goes and the distance doubles; the highest one stays.
    A forked child begins anew. ``sample`` never raises, and may be called by any thread.
    """

    def __init__(
        self,
        *,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        read_bytes: Callable[[], int] | None = None,
        read_peak_bytes: Callable[[], int] | None = None,
    ) -> None:
        self._clock_ns = clock_ns
        self._read_bytes = read_bytes or _Resident().read
        self._read_peak_bytes = read_peak_bytes or peak_resident_bytes
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._points: list[tuple[int, int]] = []
        self._origin_ns: int | None = None
        self._interval_ns = self._patience_ns = FIRST_INTERVAL_NS
        self._due_ns = 0
        self._in_process = os.getpid()
        self.begun = False
        """Whether memory over time was asked for, in this process."""

    def begin(self) -> None:
        """Forget what was seen: recording begins now."""
        self._begin_anew()
        self.begun = True
        self._origin_ns = self._clock_ns()
        self.sample(self._origin_ns)

    @property
    def elapsed_ns(self) -> int:
        """Since ``begin()``; 0 where that was never called."""
        return 0 if self._origin_ns is None else max(self._clock_ns() - self._origin_ns, 0)

    def sample(self, now_ns: int) -> None:
        """Add a point, unless the last one is not yet old enough; then it costs next to nothing."""
        if now_ns >= self._due_ns:
            self._add(now_ns)

    def tick(self) -> float:
        """Add a point if one is due; the seconds until the next tick.

        Where others sample, as a program's steps do, ticks are only there for when they stop.
        """
        now_ns = self._clock_ns()
        if now_ns < self._due_ns:
            self._patience_ns = min(2 * self._patience_ns, max(LONGEST_PATIENCE_NS, self._interval_ns))
        else:
            self._add(now_ns)
            self._patience_ns = self._interval_ns
        return self._patience_ns / 1e9

    def record(self) -> Memory | None:
        """What was seen so far, with a point for now; None where the system does not tell."""
        self._add(self._clock_ns())
        points = tuple(self._points)
        try:
            peak_bytes = self._read_peak_bytes()
        except Exception as error:  # noqa: BLE001 - the rest of the run is still worth having
            note_failure("memory", "the peak was not read", error)
            peak_bytes = 0
        # The system counts in steps of its own, and may lag behind what it just said.
        peak_bytes = max((peak_bytes, *(size for _, size in points)))
        return Memory(peak_bytes=peak_bytes, series=points) if peak_bytes else None

    def _add(self, now_ns: int) -> None:
        if os.getpid() != self._in_process:
            self._begin_anew()
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            if self._origin_ns is None:
                self._origin_ns = now_ns
            elapsed_ns = max(now_ns - self._origin_ns, 0)
            if self._points and elapsed_ns <= self._points[-1][0]:
                return
            self._points.append((elapsed_ns, self._read_bytes()))
            if len(self._points) >= MAX_POINTS:
                self._thin_out()
            self._due_ns = now_ns + self._interval_ns
        except Exception as error:  # noqa: BLE001 - the program knows nothing of us
            self._due_ns = now_ns + self._interval_ns
            note_failure("memory", "resident memory was not read", error)
        finally:
            self._lock.release()

    def _thin_out(self) -> None:
        highest = max(self._points, key=lambda point: point[1])
        last = self._points[-1]
        self._points = [
            point
            for index, point in enumerate(self._points)
            if index % 2 == 0 or point is highest or point is last
        ]
        self._interval_ns *= 2


class _Resident:
    """Reads the process's resident bytes: on Linux through a file kept open, which is the cheapest way."""

    def __init__(self) -> None:
        self._has_statm = _STATM.exists()
        self._fd: int | None = None
        self._in_process = 0

    def read(self) -> int:
        if not self._has_statm:
            import psutil

            return int(psutil.Process().memory_info().rss)
        # In a forked child the file is still that of its parent.
        if self._fd is None or self._in_process != os.getpid():
            self._open()
        try:
            return self._statm_bytes()
        except (OSError, ValueError, IndexError):
            # The program has closed it, and the number may be a file of its own: not ours to close.
            self._open()
            return self._statm_bytes()

    def _statm_bytes(self) -> int:
        if self._fd is None:
            raise OSError("not open")
        return int(os.pread(self._fd, 128, 0).split()[1]) * _PAGE_BYTES

    def _open(self) -> None:
        self._fd = None
        self._fd = move_high(os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC))
        self._in_process = os.getpid()


def peak_resident_bytes() -> int:
    """The most since the program began. Not ``getrusage`` on Linux, which counts what ran before an exec."""
    with contextlib.suppress(FileNotFoundError):
        for line in _STATUS.read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1_024
    unit_bytes = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes


series = MemorySeries()
"""Of this process."""
