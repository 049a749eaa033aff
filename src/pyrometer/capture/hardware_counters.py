"""The processor's own counters: whether they can be believed, and what they counted."""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pyrometer._native import KIND
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.threads import call_before
from pyrometer.record.counters import HardwareCounter, HardwareCounters, ThreadCounters

Seen = Sequence[tuple[str, tuple[int, int, int] | int]]
"""Each event with its count, the time it was to be counted and the time it was, or an error's number."""

PARANOID_FILE = Path("/proc/sys/kernel/perf_event_paranoid")

# The first six events of the core: each thread has its own besides the process's.
_THREAD_EVENTS = 6
_THREADS_KEPT_OPEN = 32
_THREADS_SHOWN = 100
_MOST_THREADS_OPEN = 128

_NO_CORE = "needs the native recorder on Linux"
_GET_CORE = "To get it: pyrometer doctor"
_SIMULATE = "Cache misses can be simulated instead: pyrometer run --cachegrind SCRIPT"
_UNSUPPORTED = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)
_FORBIDDEN = (errno.EACCES, errno.EPERM)


def judge(seen: Seen, known_instructions: int) -> dict[str, str]:
    """What is wrong with each counter, after work that takes at least so many instructions.

    Nothing is said of those that can be believed. Some machines have counters that always stand at 0.
    """
    wrong = {}
    for name, found in seen:
        if isinstance(found, int):
            wrong[name] = _describe_error(found)
            continue
        count, enabled_ns, running_ns = found
        if running_ns == 0:
            wrong[name] = "was never counted: other programs, or the system's watchdog, hold the counters"
            continue
        count = count * enabled_ns // running_ns
        least, most = _expected(name, known_instructions)
        if not least <= count <= most:
            wrong[name] = f"cannot be believed: reads {count:,} for work that takes {least:,} or more"
    return wrong


def _expected(name: str, known_instructions: int) -> tuple[int, int]:
    """The least and the most that the known work can take of it."""
    # The loop is no more than half of the work, and no processor does 16 instructions in a cycle.
    most = 16 * known_instructions
    match name:
        case "instructions":
            return known_instructions, most
        case "cycles":
            return known_instructions // 16, most
        case "branches":
            return known_instructions // 2, most
        case _:
            return 1, most


def _describe_error(number: int) -> str:
    if number in _UNSUPPORTED:
        return f"not given by this machine ({errno.errorcode[number]})"
    if number in _FORBIDDEN:
        return f"the system does not allow it ({errno.errorcode[number]})"
    if number == errno.ENOSYS:
        return "this kernel, or a filter around this container, has no perf events (ENOSYS)"
    if number == errno.EBADF:
        return "the program has closed our files"
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


def advise(seen: Seen, paranoid: int | None) -> str | None:
    """What to do to have the counters that cannot be read."""
    errors = {found for _, found in seen if isinstance(found, int)}
    if not errors:
        return None
    if errors.isdisjoint(_FORBIDDEN):
        return f"Virtual machines often pass no counters on. {_SIMULATE}"
    if paranoid is not None and paranoid > 2:
        setting = f"sysctl kernel.perf_event_paranoid=2 (it is {paranoid})"
        return f"As root: {setting}, or give the program CAP_PERFMON. {_SIMULATE}"
    return (
        "A container's filter forbids perf_event_open: docker run --cap-add PERFMON, or a seccomp profile "
        f"that allows it. {_SIMULATE}"
    )


def read_paranoid(path: Path = PARANOID_FILE) -> int | None:
    """The kernel's setting; None where there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What the counters said of known work."""

    names: tuple[str, ...]
    wrong: dict[str, str]
    advice: str | None


def probe() -> Probe | None:
    """Count known work, here and now; None where there is no way to count."""
    opener = _opener()
    if opener is None:
        return None
    from pyrometer._native.core import known_work

    counters = opener()
    known_instructions = known_work()
    seen = counters.read()
    counters.close()
    wrong = judge(seen, known_instructions)
    return Probe(
        names=tuple(name for name, _ in seen),
        wrong=wrong,
        advice=advise(seen, read_paranoid()) or (_SIMULATE if wrong else None),
    )


def _opener() -> Callable[..., "PerfCounters"] | None:
    if KIND != "native":
        return None
    from pyrometer._native import core

    return getattr(core, "PerfCounters", None)


def figures(seen: Seen, wrong: dict[str, str]) -> tuple[HardwareCounter, ...]:
    """The counts, scaled where counters were shared by turns; those known to be wrong have the reason."""
    return tuple(_figure(name, found, wrong.get(name)) for name, found in seen)


def _figure(name: str, found: tuple[int, int, int] | int, reason: str | None) -> HardwareCounter:
    if reason is None and isinstance(found, int):
        reason = _describe_error(found)
    if reason is not None or isinstance(found, int):
        return HardwareCounter(name=name, reason=reason)
    count, enabled_ns, running_ns = found
    if running_ns == 0:
        idle = "nothing ran" if enabled_ns == 0 else "was never counted: other events had the counters"
        return HardwareCounter(name=name, reason=idle)
    share = min(running_ns / enabled_ns, 1.0) if enabled_ns else 1.0
    return HardwareCounter(
        name=name, count=count * max(enabled_ns, running_ns) // running_ns, counted_share=share
    )


class CountedThreads:
    """Counters of each thread that Python starts, opened by the thread itself as it begins."""

    def __init__(self, open_counters: Callable[[int], "PerfCounters"]) -> None:
        self._open_counters = open_counters
        self._lock = threading.Lock()
        self._open: list[tuple[threading.Thread, PerfCounters]] = []
        self._ended: list[tuple[str, int, Seen]] = []
        self._replaced: tuple[Callable[..., object], Callable[..., object]] | None = None

    def install(self) -> None:
        """Count the calling thread, and all that start from now on."""
        self._begin(threading.current_thread())
        original = threading.Thread.__dict__.get("_bootstrap_inner")
        if original is not None:
            ours = call_before(self._begin, original)
            self._replaced = original, ours
            threading.Thread._bootstrap_inner = ours  # type: ignore[attr-defined]  # noqa: SLF001

    def remove(self) -> None:
        """Look out for threads no more; what was counted stays."""
        if self._replaced is not None and threading.Thread.__dict__["_bootstrap_inner"] is self._replaced[1]:
            threading.Thread._bootstrap_inner = self._replaced[0]  # type: ignore[attr-defined]  # noqa: SLF001
        self._replaced = None

    def close(self) -> None:
        """Let go of all files."""
        for _, counters in self._open:
            counters.close()
        self._open.clear()

    def read(self) -> list[tuple[str, int, Seen]]:
        """The name of each thread, how many it stands for, and what was counted."""
        with self._lock:
            return [*self._ended, *((thread.name, 1, counters.read()) for thread, counters in self._open)]

    def _begin(self, thread: threading.Thread, *_: object) -> None:
        try:
            with self._lock:
                if len(self._open) >= _THREADS_KEPT_OPEN:
                    self._settle_ended()
                if len(self._open) < _MOST_THREADS_OPEN:
                    self._open.append((thread, self._open_counters(_THREAD_EVENTS)))
                else:
                    note_loss(
                        "counters", f"a thread beside {_MOST_THREADS_OPEN} others is not shown by itself"
                    )
        except Exception as error:  # noqa: BLE001 - a thread must start whatever happens to us
            note_failure("counters", "a thread was not counted by itself", error)

    def _settle_ended(self) -> None:
        # Not alive is also what a thread is that has just begun: it is not started yet.
        alive = [each for each in self._open if each[0].is_alive() or not each[0].ident]
        for thread, counters in self._open:
            if not any(thread is other for other, _ in alive):
                self._keep(thread.name, counters.read())
                counters.close()
        self._open = alive

    def _keep(self, name: str, seen: Seen) -> None:
        if len(self._ended) < _THREADS_SHOWN:
            self._ended.append((name, 1, seen))
            return
        _, threads, together = self._ended[-1]
        self._ended[-1] = "more threads", threads + 1, _added(together, seen)


def _added(first: Seen, second: Seen) -> Seen:
    return [
        (name, one if isinstance(one, int) else _sum(one, two))
        for (name, one), (_, two) in zip(first, second, strict=True)
    ]


def _sum(one: tuple[int, int, int], two: tuple[int, int, int] | int) -> tuple[int, int, int] | int:
    return two if isinstance(two, int) else (one[0] + two[0], one[1] + two[1], one[2] + two[2])


class HardwareCounting:
    """Counts this process from ``start()`` on."""

    def __init__(self) -> None:
        self._probe: Probe | None = None
        self._process: PerfCounters | None = None
        self._threads: CountedThreads | None = None
        self._last: HardwareCounters | None = None

    def start(self) -> None:
        """Find out what can be counted, and begin; on the main thread, before the program has others."""
        opener = _opener()
        self._probe = probe()
        if opener is None or self._probe is None or len(self._probe.wrong) == len(self._probe.names):
            return
        self._process = opener(inherit=True)
        self._threads = CountedThreads(opener)
        self._threads.install()

    def stop(self) -> None:
        """Keep what was counted, and count no more."""
        self._last = self.record()
        self.abandon()

    def abandon(self) -> None:
        """Let go of everything: in a forked child the counters are its parent's."""
        if self._threads is not None:
            self._threads.remove()
            self._threads.close()
        if self._process is not None:
            self._process.close()
        self._process = self._threads = None

    def record(self) -> HardwareCounters:
        """What was counted so far."""
        if self._last is not None:
            return self._last
        if self._probe is None:
            return HardwareCounters(counters=_all_missing(_NO_CORE), advice=_GET_CORE)
        wrong = self._probe.wrong
        if self._process is None or self._threads is None:
            counters = tuple(
                HardwareCounter(name=name, reason=wrong.get(name, "was not started"))
                for name in self._probe.names
            )
            return HardwareCounters(counters=counters, advice=self._probe.advice)
        return HardwareCounters(
            counters=figures(self._process.read(), wrong),
            threads=tuple(
                ThreadCounters(thread_name=name, threads=threads, counters=figures(seen, wrong))
                for name, threads, seen in self._threads.read()
            ),
            with_forked_processes=self._process.with_forks,
            advice=self._probe.advice,
        )


def _all_missing(reason: str) -> tuple[HardwareCounter, ...]:
    names = ("instructions", "cycles", "cache references", "cache misses", "branches", "branch misses")
    return tuple(HardwareCounter(name=name, reason=reason) for name in names)


# Not from typing: needed for types only, and not there without the core.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer._native.core import PerfCounters
