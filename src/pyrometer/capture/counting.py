"""What is counted in this process, if anything was asked for: by the processor, or by valgrind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrometer.capture.losses import note_failure

if TYPE_CHECKING:  # most runs count nothing, and are not to wait for what does
    from pyrometer.capture.callgrind import CallgrindCounting
    from pyrometer.capture.hardware_counters import HardwareCounting
    from pyrometer.record.counters import CounterRecord

_hardware: HardwareCounting | None = None
_callgrind: CallgrindCounting | None = None


def configure(*, hardware: bool, callgrind: dict[str, Any] | None) -> None:
    """What to count from ``start()`` on; ``callgrind`` is what ``Settings`` has, as plain values."""
    global _hardware, _callgrind
    if hardware:
        from pyrometer.capture.hardware_counters import HardwareCounting

        _hardware = HardwareCounting()
    if callgrind is not None:
        import msgspec

        from pyrometer.capture.callgrind import CallgrindCounting, Settings

        _callgrind = CallgrindCounting(msgspec.convert(callgrind, Settings))


def start() -> None:
    """Begin; the last of all that is started, as it is to count the program and not us."""
    _try("counting could not be started", *(part.start for part in (_hardware, _callgrind) if part))


def stop() -> None:
    """Count no more; the first of all that is stopped."""
    _try("counting did not end well", *(part.stop for part in (_callgrind, _hardware) if part))


def leave_thread_out() -> None:
    """Do not count the calling thread, which is ours."""
    if _callgrind is not None:
        _try("a thread of ours is counted too", _callgrind.leave_thread_out)


def abandon() -> None:
    """In a forked child: what is counted is its parent's."""
    global _hardware, _callgrind
    if _hardware is not None:
        _hardware.abandon()
    _hardware = _callgrind = None


def record() -> CounterRecord | None:
    """What was counted so far; None when nothing was asked for."""
    if _hardware is None and _callgrind is None:
        return None
    from pyrometer.record.counters import CounterRecord

    return CounterRecord(
        hardware=None if _hardware is None else _hardware.record(),
        simulated=None if _callgrind is None else _callgrind.record(),
    )


def _try(doing: str, *actions: Callable[[], None]) -> None:
    for action in actions:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
            note_failure("counters", doing, error)
