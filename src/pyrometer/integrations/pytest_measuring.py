"""What a stretch of a test takes: time, allocations, and the most memory it held at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any, Self

from pyrometer._native import Recorder, Scope
from pyrometer._native import allocations as core
from pyrometer.capture import allocations, recording

TOLD_BYTES = 65_536
"""To which a peak is exact: UNTOLD_BYTES of allocations.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured; what was not is None, and ``why_not_counted`` says why.

    Allocations are those of all threads, of tensors and of the heap, as docs/memory.md has them: Python
    objects up to 512 bytes are in no figure. The peak lies from ``peak_low_bytes`` to
    ``peak_high_bytes``; only while the process is recorded, and other threads allocate as well, do
    the two differ.
    """

    duration_ns: int
    allocated_bytes: int | None = None
    allocations: int | None = None
    peak_low_bytes: int | None = None
    peak_high_bytes: int | None = None
    why_not_counted: str | None = None

    @property
    def peak_bytes(self) -> int | None:
        """The most held at once, over what there was at the start; None where it is not known to 64 KiB."""
        low, high = self.peak_low_bytes, self.peak_high_bytes
        return low if low is not None and high is not None and high - low < TOLD_BYTES else None


class Meter:
    """Measures from ``begin()`` to ``end()``; meters nest.

    Where nothing else was recorded in the process the outermost one begins the process's counters at
    0, so its peak is that of all threads. Else those belong to the recording, and the peak is the
    process's if that rose meanwhile, and that of the calling thread if no other has allocated.
    """

    _open = 0

    def __init__(self) -> None:
        self._reason: str | None = None
        self._is_alone = False
        self._own: _OwnPeak | None = None

    def begin(self) -> None:
        """Begin."""
        self._reason = core.count_allocations()
        if self._reason is None:
            self._is_alone = Meter._open == 0 and not _is_recorded()
            Meter._open += 1
            if self._is_alone:
                allocations.start()  # notes the lines too
                core.reset_allocations()
            else:
                self._own = _OwnPeak()
            self._before = core.process_allocations()
        self._began_ns = time.perf_counter_ns()

    def end(self) -> Figures:
        """End, and what it came to."""
        duration_ns = time.perf_counter_ns() - self._began_ns
        if self._reason is not None:
            return Figures(
                duration_ns=duration_ns, why_not_counted=f"allocations are not counted: {self._reason}"
            )
        after = core.process_allocations()
        own_peak_bytes = None if self._own is None else self._own.end()
        Meter._open -= 1
        if self._is_alone:
            allocations.stop()
        core.stop_counting_allocations()
        return self._figures(duration_ns, after, own_peak_bytes)

    def _figures(self, duration_ns: int, after: dict[str, Any], own_peak_bytes: int | None) -> Figures:
        before = self._before
        size, calls = (now - then for now, then in zip(_of_process(after), _of_process(before), strict=True))
        others_bytes = size - sum(
            now[0] - then[0] for now, then in zip(after["thread"], before["thread"], strict=True)
        )
        if others_bytes < 0 or calls < 0:
            return Figures(
                duration_ns=duration_ns, why_not_counted="pyrometer.reset() forgot what was counted meanwhile"
            )
        if self._is_alone or after["peak"] > before["peak"]:
            low = high = max(after["peak"] - before["live"], 0)
        else:
            low = own_peak_bytes or 0
            unseen_bytes = others_bytes if own_peak_bytes is not None else size
            high = max(low, min(low + unseen_bytes, before["peak"] - before["live"]))
        return Figures(
            duration_ns=duration_ns,
            allocated_bytes=size,
            allocations=calls,
            peak_low_bytes=low,
            peak_high_bytes=high,
        )

    @property
    def knows_lines(self) -> bool:
        """Whether the lines noted last are those of this stretch alone; until another meter begins."""
        return self._is_alone


class Measured:
    """A stretch measured by ``with``: its figures are there once it has ended, and ``ended`` is told."""

    def __init__(self, name: str, ended: Callable[["Measured"], object]) -> None:
        self.name = name
        self._ended = ended
        self._meter = Meter()
        self._figures: Figures | None = None

    @property
    def figures(self) -> Figures:
        """All of them."""
        if self._figures is None:
            raise RuntimeError(
                f"{self.name!r} is still being measured: ask for its figures after the with block"
            )
        return self._figures

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.figures.duration_ns

    @property
    def allocated_bytes(self) -> int | None:
        """Bytes allocated by all threads; None where they cannot be counted."""
        return self.figures.allocated_bytes

    @property
    def allocations(self) -> int | None:
        """How many allocations those were."""
        return self.figures.allocations

    @property
    def peak_bytes(self) -> int | None:
        """The most held at once, over what there was at the start; None where that is not known."""
        return self.figures.peak_bytes

    @property
    def why_not_counted(self) -> str | None:
        """Why there are no allocations to tell; None where they were counted."""
        return self.figures.why_not_counted

    def __enter__(self) -> Self:
        self._meter.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._figures = self._meter.end()
        self._ended(self)

    def __repr__(self) -> str:
        return f"Measured({self.name!r}, {self._figures or 'not ended'})"


class _OwnPeak:
    """The most that the calling thread holds at once, by a recorder of ours beside the process's."""

    _recorder: Recorder | None = None
    _open = 0
    _names = count()

    def __init__(self) -> None:
        if _OwnPeak._recorder is None:
            _OwnPeak._recorder = Recorder()
        self._name = str(next(_OwnPeak._names))
        self._scope: Scope = _OwnPeak._recorder.scope(self._name)
        _OwnPeak._recorder.start()
        _OwnPeak._open += 1
        self._scope.__enter__()

    def end(self) -> int | None:
        """It; None where too many others look at peaks."""
        self._scope.__exit__(None, None, None)
        recorder = _OwnPeak._recorder
        if recorder is None:
            return None
        nodes = [node for strand in recorder.snapshot()["strands"] for node in strand[-1]]
        # As capture/snapshots.py reads them: the name is the second, the peak the last, -1 for none.
        peak_bytes = next((node[-1] for node in nodes if node[1] == self._name), -1)
        recorder.stop()
        _OwnPeak._open -= 1
        if _OwnPeak._open == 0:
            recorder.reset()
        return None if peak_bytes < 0 else peak_bytes


def _is_recorded() -> bool:
    """Whether the process's counters are somebody's: of a recording that goes on, or was made."""
    recorder = recording.recorder
    return recorder.enabled or recorder.snapshot()["profiled_ns"] > 0


def _of_process(seen: dict[str, Any]) -> tuple[int, int]:
    """Bytes and calls of tensors and heap together."""
    (tensor_bytes, tensors), (heap_bytes, heap) = seen["tensors"], seen["heap"]
    return tensor_bytes + heap_bytes, tensors + heap
