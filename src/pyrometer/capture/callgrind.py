"""Counting under valgrind: all of the program, or what it does while scopes of one name are open."""

import importlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pyrometer._native import KIND
from pyrometer.capture.callgrind_file import CallgrindFormatError, read_callgrind
from pyrometer.capture.losses import note_loss
from pyrometer.record.counters import (
    MAX_COUNTED_FUNCTIONS,
    CacheSimulation,
    CounterRecord,
    SimulatedCache,
)
from pyrometer.record.counters_validation import counters_problems

_FUNCTIONS_KEPT = MAX_COUNTED_FUNCTIONS // 4
_REFERENCE_ROUNDS = 10_000
_REFERENCE_LOOPS = 3
_LONGEST_LOG = 2_000
# Said of what it would have done, had it not been told the caches.
_OF_NO_INTEREST = (
    "using its data for the LL simulation",
    "warning: specified LL cache:",
    "warning: simulated LL cache:",
)


def reference_ns() -> int:
    """What a loop in Python takes of the processor: without valgrind and with it, this gives the slowdown.

    The best of a few: the first translates the loop's code, and what else disturbs only adds.
    """
    taken_ns = []
    for _ in range(_REFERENCE_LOOPS):
        began_ns = time.thread_time_ns()
        total = 0
        for number in range(_REFERENCE_ROUNDS):
            total += number & 3
        taken_ns.append(time.thread_time_ns() - began_ns)
    return min(taken_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What ``pyrometer run --cachegrind`` has set up before the program's start."""

    scope: str | None
    counts_file: str
    log_file: str
    caches: tuple[SimulatedCache, ...]
    environment: dict[str, str]
    reference_ns: int


class CallgrindCounting:
    """Counts this process, which valgrind runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._core: Any = None
        self._simulation = CacheSimulation(
            scope=settings.scope,
            reason="the program has not ended",
            caches=settings.caches,
            environment=settings.environment,
        )

    def start(self) -> None:
        """Begin to count, or to wait for the scope."""
        if KIND != "native":
            self._give_up("counting under valgrind needs the native recorder")
            return
        core = importlib.import_module("pyrometer._native.core")
        if not core.on_valgrind():
            self._give_up("the program does not run on valgrind")
            return
        self._core = core
        if self._settings.scope is None:
            core.start_callgrind()
        else:
            core.count_scope(self._settings.scope)

    def leave_thread_out(self) -> None:
        """The calling thread is ours, and no part of the program; with a scope only its threads count."""
        if self._settings.scope is None and self._core is not None:
            self._core.leave_thread_out()

    def stop(self) -> None:
        """Read what was counted, and what counting cost."""
        if self._core is None:
            return
        self._core.dump_callgrind()
        self.leave_thread_out()
        slowdown = reference_ns() / self._settings.reference_ns if self._settings.reference_ns > 0 else None
        self._core.stop_callgrind()
        try:
            self._read(slowdown)
        except (OSError, CallgrindFormatError) as error:
            self._give_up(f"what callgrind wrote cannot be read: {error}")
        self._tidy_log()

    def record(self) -> CacheSimulation:
        """What was counted; nothing before the end."""
        return self._simulation

    def _read(self, slowdown: float | None) -> None:
        with Path(self._settings.counts_file).open(encoding="utf-8", errors="replace") as lines:
            file = read_callgrind(lines)
        if file.totals.instructions == 0:
            self._give_up(self._nothing_counted())
            return
        simulation = msgspec.structs.replace(
            self._simulation,
            tool=file.tool,
            counts=file.totals,
            reason=None,
            functions=file.functions[:_FUNCTIONS_KEPT],
            function_count=len(file.functions),
            slowdown=slowdown,
            file=self._settings.counts_file,
        )
        problem = next(counters_problems(CounterRecord(simulated=simulation), "counts"), None)
        if problem is not None:
            self._give_up(f"what callgrind wrote contradicts itself: {problem.text}")
        else:
            self._simulation = simulation

    def _nothing_counted(self) -> str:
        if self._settings.scope is None:
            return "callgrind counted nothing"
        return f"no scope named {self._settings.scope!r} was entered"

    def _give_up(self, reason: str) -> None:
        self._simulation = msgspec.structs.replace(self._simulation, reason=reason)

    def _tidy_log(self) -> None:
        """What valgrind said is a loss; a file in which it said nothing of interest is taken away."""
        path = Path(self._settings.log_file)
        try:
            said = path.read_text(encoding="utf-8", errors="replace")[:_LONGEST_LOG].splitlines()
            told = [
                line for line in said if line.strip() and not any(text in line for text in _OF_NO_INTEREST)
            ]
            if told:
                note_loss("valgrind", f"it says: {told[0]} (more in {path})")
            else:
                path.unlink()
        except OSError:
            return  # nothing was said at all
