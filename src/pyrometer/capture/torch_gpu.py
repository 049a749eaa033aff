"""The GPU's side of a PyTorch program: time by CUDA events, memory by torch's allocator, load by NVML.

Nothing here makes the program wait for its device, or initialises one that it has not.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.record.torch_run import Gpu

MAX_EVENTS = 512
"""How many may wait for the device at once; what happens meanwhile is not timed, which is a loss."""

MEMORY_INTERVAL_NS = 100_000_000
"""Between two looks at one phase's memory: asking takes longer than a short phase."""

UTILISATION_INTERVAL_NS = 1_000_000_000

_CURRENT = "allocated_bytes.all.current"
_PEAK = "allocated_bytes.all.peak"
_RESERVED = "reserved_bytes.all.current"


class GpuWatch:
    """Follows the phases of the thread that makes the first one; ``cuda`` is ``torch.cuda``.

    Phases exclude each other on the device as they do on the host: an inner one takes its time
    from the outer. Never raises: a failure of ours is a loss, and the end of the watch.
    """

    def __init__(self, cuda: Any, *, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._cuda = cuda
        self._clock_ns = clock_ns
        # A signal handler of the program's that asks for a report may find its own thread inside.
        self._lock = threading.RLock()
        self._thread_id: int | None = None
        self._device: int | None = None
        self._failed = False
        self._open: list[str] = []
        self._last_event: Any = None
        self._stretches: deque[tuple[str, Any, Any]] = deque()
        self._free: list[Any] = []
        self._events = 0
        self._before: dict[str, tuple[int, int]] = {}
        self._memory_due_ns: dict[str, int] = {}
        self._utilisation_due_ns: int | None = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        with self._lock:
            self._device_ns: dict[str, int] = {}
            self._phase_peaks: dict[str, int] = {}
            self._peak_bytes = 0
            self._utilisations_sum = 0.0
            self._utilisations = 0

    def available(self) -> bool:
        """Whether the program has begun to use a GPU."""
        return not self._failed and bool(self._cuda.is_initialized())

    def phase_began(self, name: str) -> None:
        """The program enters a phase."""
        if self._follows():
            self._guarded(lambda: self._began(name))

    def phase_ended(self, name: str) -> None:
        """The program leaves it."""
        if self._follows() and name in self._open:
            self._guarded(lambda: self._ended(name))

    def record(self) -> Gpu | None:
        """What was seen so far, as far as the device has come; None without a GPU."""
        records: list[Gpu] = []
        if self.available():
            self._guarded(lambda: records.append(self._record()))
        return records[0] if records else None

    def _follows(self) -> bool:
        if not self.available():
            return False
        if self._thread_id is None:
            self._thread_id = threading.get_ident()
        return self._thread_id == threading.get_ident()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            with self._lock:
                work()
        except Exception as error:  # noqa: BLE001 - the program trains whatever happens to us
            self._failed = True
            note_failure("gpu", "the GPU is no longer watched", error)

    def _began(self, name: str) -> None:
        if self._device is None:
            self._device = self._cuda.current_device()
        self._settle()
        self._switch()
        self._open.append(name)
        now_ns = self._clock_ns()
        self._sample_utilisation(now_ns)
        if now_ns >= self._memory_due_ns.get(name, 0):
            self._memory_due_ns[name] = now_ns + MEMORY_INTERVAL_NS
            stats = self._stats()
            self._before[name] = stats.get(_CURRENT, 0), stats.get(_PEAK, 0)

    def _ended(self, name: str) -> None:
        self._switch()
        while self._open.pop() != name:  # one that an error has ended
            continue
        if not self._open:
            self._let_go()
        before = self._before.pop(name, None)
        if before is not None:
            self._note_peak(name, *before)

    # Device time: one event at each switch, and the time between two belongs to one phase.

    def _switch(self) -> None:
        event = self._record_event()
        if self._open and self._last_event is not None and event is not None:
            self._stretches.append((self._open[-1], self._last_event, event))
        else:
            self._let_go()
            if self._open:
                note_loss("gpu", "device time of a phase was not taken")
        self._last_event = event

    def _let_go(self) -> None:
        """Forget the last event: it is free, unless a stretch still to be added up ends with it."""
        event, self._last_event = self._last_event, None
        if event is not None and not (self._stretches and self._stretches[-1][2] is event):
            self._free.append(event)

    def _record_event(self) -> Any:
        # A graph being captured would take the event for a part of it.
        if self._cuda.is_current_stream_capturing():
            return None
        if self._free:
            event = self._free.pop()
        elif self._events < MAX_EVENTS:
            self._events += 1
            event = self._cuda.Event(enable_timing=True)
        else:
            return None
        event.record()
        return event

    def _settle(self) -> None:
        """Add up what the device has done meanwhile, without waiting for the rest."""
        if self._cuda.is_current_stream_capturing():
            return
        while self._stretches and self._stretches[0][2].query():
            name, began, ended = self._stretches.popleft()
            device_ns = round(began.elapsed_time(ended) * 1e6)
            self._device_ns[name] = self._device_ns.get(name, 0) + max(device_ns, 0)
            self._free.append(began)
            still_used = self._stretches and self._stretches[0][1] is ended
            if not still_used and ended is not self._last_event:
                self._free.append(ended)

    # Memory and load.

    def _stats(self) -> dict[str, int]:
        stats: dict[str, int] = self._cuda.memory_stats(self._device)
        self._peak_bytes = max(self._peak_bytes, stats.get(_PEAK, 0))
        return stats

    def _note_peak(self, name: str, current_before: int, peak_before: int) -> None:
        """The highest of the phase, if it was the highest of all; else at least what stood at its ends.

        The program's own peak is never reset for the sake of ours.
        """
        stats = self._stats()
        current, peak = stats.get(_CURRENT, 0), stats.get(_PEAK, 0)
        seen = peak if peak > peak_before else max(current_before, current)
        self._phase_peaks[name] = max(self._phase_peaks.get(name, 0), seen)

    def _sample_utilisation(self, now_ns: int) -> None:
        if self._utilisation_due_ns is None or now_ns < self._utilisation_due_ns:
            return
        self._utilisation_due_ns = now_ns + UTILISATION_INTERVAL_NS
        try:
            self._utilisations_sum += self._cuda.utilization(self._device)
            self._utilisations += 1
        except Exception as error:  # noqa: BLE001 - NVML is a library that may be absent or refuse
            self._utilisation_due_ns = None
            note_failure("gpu", "utilisation was not read", error)

    def _record(self) -> Gpu:
        if self._device is None:
            self._device = self._cuda.current_device()
        self._settle()
        stats = self._stats()
        return Gpu(
            name=self._cuda.get_device_name(self._device),
            current_bytes=stats.get(_CURRENT),
            peak_bytes=self._peak_bytes,
            reserved_bytes=stats.get(_RESERVED),
            utilisation_percent=(self._utilisations_sum / self._utilisations if self._utilisations else None),
            phase_device_ns=dict(self._device_ns),
            phase_peak_bytes=dict(self._phase_peaks),
        )
