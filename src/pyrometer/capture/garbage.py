"""Collections of Python's garbage collector: when they ran, for how long, and what they freed.

A callback in Python would be the first bytecode after a long collection. Python runs the handlers of
signals there, and the collector swallows what they raise: Ctrl-C would be lost. So ours are put
together from functions in C alone. They leave what they saw in a queue, which is emptied later.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import deque
from functools import partial
from itertools import repeat
from operator import itemgetter
from time import perf_counter_ns

from pyrometer.capture.losses import note_failure

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pyrometer.record.garbage import GarbageCollections, GarbageGeneration
    from pyrometer.record.run import Loss

GENERATIONS = 3
MAX_PAUSES = 64
MAX_INTERVALS = 512
FIRST_INTERVAL_NS = 10_000_000
"""Of pauses over time; doubles whenever there are too many."""
MAX_WAITING = 16_384
"""Beginnings and ends of collections that wait to be counted; with more, the oldest go."""
MANY_WAITING = 1_024

_LOSS_TEXT = (
    "collections that were counted but not timed: the program has changed gc.callbacks, or recording "
    "began in one, or there were too many at a time"
)
_COUNTS = ("collections", "collected", "uncollectable")
_UNKNOWN = {"generation": GENERATIONS, "collected": 0, "uncollectable": 0}


class GarbageWatch:
    """Watches the collector from ``start()`` to ``stop()``; what was seen stays until ``reset()``.

    A collection is the profiler's own if it runs on a thread between ``begin_own_work()`` and
    ``end_own_work()`` of that thread. Our hooks of microseconds are not marked so: a collection that
    falls in one is counted as the program's. ``gc.callbacks`` is as it was after ``stop()``.
    """

    def __init__(self, *, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._waiting: deque[Any] = deque(maxlen=MAX_WAITING)
        """When each collection began; and when it ended, on which thread, and what the collector says
        of it. Numbers and tuples of numbers, which the collector itself takes no notice of."""
        self._callbacks = _callbacks(self._waiting, clock_ns)
        self.wanted = True
        """Whether ``start()`` is to watch."""
        self._running = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        # A signal handler of the program's, or a __del__, may find its own thread inside.
        self._lock = threading.RLock()
        self._own_threads: dict[int, int] = {}
        """How deep each thread is in work of ours."""
        self._forget()

    def _forget(self) -> None:
        self._waiting.clear()
        self._origin_ns: int | None = None
        self._began_ns: int | None = None
        """Of the collection under way."""
        self._generations = [_Generation() for _ in range(GENERATIONS)]
        self._longest: list[tuple[int, int, int]] = []
        self._interval_ns = FIRST_INTERVAL_NS
        self._interval_pause_ns: list[int] = []

    # Switching.

    def start(self) -> None:
        """Begin to watch, unless that is not wanted; never raises."""
        if not self.wanted or self._running:
            return
        try:
            self._begin_time(_recorded_ns())
            self._begin_counting()
            # What is timed is asked of the interpreter in a shorter stretch, or it would seem to be missed.
            gc.callbacks.extend(self._callbacks)
            self._begin_counting()
            self._running = True
        except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
            note_failure("garbage", "collections are not seen", error)

    def stop(self) -> None:
        """Watch no more, and leave ``gc.callbacks`` to those who were there before and since."""
        if not self._running:
            return
        self._count()
        self._running = False
        for callback in self._callbacks:
            # By identity: to compare would call code of the program's.
            for index in reversed(range(len(gc.callbacks))):
                if gc.callbacks[index] is callback:
                    del gc.callbacks[index]
        self.time_waiting()
        self._began_ns = None

    def reset(self) -> None:
        """Forget what was seen so far; time begins anew, unless that of the whole process is recorded."""
        with self._lock:
            self._forget()
            if self._running:
                self._begin_time(_recorded_ns())
                self._begin_counting()

    def begin_anew_in_child(self) -> None:
        """In a forked child: what was seen is the parent's, and what is to come its own."""
        self._begin_anew()
        if self._running:
            self._begin_time(0)
            self._begin_counting()

    def _begin_time(self, elapsed_ns: int) -> None:
        if self._origin_ns is None:
            self._origin_ns = self._clock_ns() - elapsed_ns

    def _begin_counting(self) -> None:
        for generation, counts in zip(self._generations, gc.get_stats(), strict=True):
            generation.counted_from = counts

    @property
    def elapsed_ns(self) -> int:
        """Since recording began, or began anew: all that has a time has it from then on."""
        if self._origin_ns is None or not self._running:
            return _recorded_ns()
        return max(self._clock_ns() - self._origin_ns, 0)

    # Our own work.

    def begin_own_work(self) -> None:
        """Until it ends, collections on the calling thread are the profiler's."""
        if self._running:
            self.time_waiting()
            thread_id = threading.get_ident()
            self._own_threads[thread_id] = self._own_threads.get(thread_id, 0) + 1

    def end_own_work(self) -> None:
        """Undo one ``begin_own_work()``."""
        thread_id = threading.get_ident()
        depth = self._own_threads.get(thread_id)
        if depth is not None:
            self.time_waiting()
            if depth > 1:
                self._own_threads[thread_id] = depth - 1
            else:
                self._own_threads.pop(thread_id, None)

    # What the callbacks have left.

    def time_if_many(self) -> None:
        """As ``time_waiting``, before there is too much that waits; otherwise it costs next to nothing."""
        if len(self._waiting) >= MANY_WAITING:
            self.time_waiting()

    def time_waiting(self) -> None:
        """Add up what the callbacks have left."""
        with self._lock:
            while self._waiting:
                event = self._waiting.popleft()
                if isinstance(event, int):
                    self._began_ns = event
                else:
                    began_ns, self._began_ns = self._began_ns, None
                    self._add(began_ns, *event)

    def _add(self, began_ns: int | None, ended_ns: int, thread_id: int, found: tuple[int, int, int]) -> None:
        number, collected, uncollectable = found
        if number >= GENERATIONS or self._origin_ns is None:
            return
        if thread_id in self._own_threads:
            self._generations[number].leave_out((1, collected, uncollectable))
        elif began_ns is not None:
            started_ns, duration_ns = max(began_ns - self._origin_ns, 0), max(ended_ns - began_ns, 0)
            self._generations[number].time(duration_ns)
            self._add_to_longest((duration_ns, started_ns, number))
            self._add_to_interval(started_ns, duration_ns)

    def _add_to_longest(self, pause: tuple[int, int, int]) -> None:
        self._longest.append(pause)
        if len(self._longest) >= 2 * MAX_PAUSES:
            self._longest = _longest_of(self._longest)

    def _add_to_interval(self, started_ns: int, duration_ns: int) -> None:
        pauses_ns = self._interval_pause_ns
        while started_ns // self._interval_ns >= MAX_INTERVALS:
            pauses_ns[:] = [sum(pauses_ns[index : index + 2]) for index in range(0, len(pauses_ns), 2)]
            self._interval_ns *= 2
        index = started_ns // self._interval_ns
        pauses_ns.extend(repeat(0, index + 1 - len(pauses_ns)))
        pauses_ns[index] += duration_ns

    # The record.

    def record(self) -> tuple[GarbageCollections | None, tuple[Loss, ...]]:
        """What was seen so far, None where nothing was watched; and what was not."""
        if self._origin_ns is None:
            return None, ()
        from pyrometer.record.garbage import GarbageCollections, GarbagePause
        from pyrometer.record.run import Loss

        with self._lock:
            if self._running:
                self._count()
            self.time_waiting()
            is_under_way = self._began_ns is not None
            seen = GarbageCollections(
                generations=tuple(generation.record() for generation in self._generations),
                longest=tuple(
                    GarbagePause(started_ns, duration_ns, number)
                    for duration_ns, started_ns, number in sorted(
                        _longest_of(self._longest), key=lambda pause: pause[1]
                    )
                ),
                interval_ns=self._interval_ns,
                interval_pause_ns=tuple(self._interval_pause_ns),
            )
        # The one under way may be counted already.
        missed = seen.collections - seen.timed_collections - is_under_way
        return seen, (Loss(collector="garbage", reason=_LOSS_TEXT, count=missed),) if missed > 0 else ()

    def _count(self) -> None:
        """Add what the interpreter itself has counted since it was last asked; before what was timed."""
        for generation, counts in zip(self._generations, gc.get_stats(), strict=True):
            generation.count(counts)


class _Generation:
    """All collections of one."""

    def __init__(self) -> None:
        self.counted_from: dict[str, int] = {}
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._timed = self._total_ns = self._max_ns = 0

    def count(self, counts: dict[str, int]) -> None:
        before, self.counted_from = self.counted_from, counts
        for name in _COUNTS:
            self._counts[name] += counts[name] - before[name]

    def leave_out(self, counts: tuple[int, int, int]) -> None:
        """Those that are ours have been counted as well, or will be."""
        for name, count in zip(_COUNTS, counts, strict=True):
            self._counts[name] -= count

    def time(self, duration_ns: int) -> None:
        self._timed += 1
        self._total_ns += duration_ns
        self._max_ns = max(self._max_ns, duration_ns)

    def record(self) -> GarbageGeneration:
        from pyrometer.record.garbage import GarbageGeneration

        counts = {name: max(count, 0) for name, count in self._counts.items()}
        # Timed since the interpreter was asked.
        counts["collections"] = max(counts["collections"], self._timed)
        return GarbageGeneration(
            **counts,
            timed_collections=self._timed,
            total_ns=self._total_ns,
            max_ns=self._max_ns,
        )


class OwnCollections:
    """While it is entered, collections on the calling thread are the profiler's."""

    __slots__ = ()

    def __enter__(self) -> None:
        watch.begin_own_work()

    def __exit__(self, *_: object) -> None:
        watch.end_own_work()


def _callbacks(
    waiting: deque[Any], clock_ns: Callable[[], int]
) -> tuple[Callable[..., object], Callable[..., object]]:
    """Two for ``gc.callbacks``, called with ``start`` or ``stop`` and a dict; without a line of Python.

    The first keeps the dict. The second reads the attribute by the name that it is told, and each is
    a property that appends to ``waiting``. A dict is taken out when it is used: if the program takes
    one of the two away, none is used twice.
    """
    told: dict[str, dict[str, int]] = {}
    times: Iterable[int] = iter(clock_ns, None)
    found = map(itemgetter(*_UNKNOWN), map(told.pop, repeat("stop"), repeat(_UNKNOWN)))
    ends = zip(times, iter(threading.get_ident, None), found)  # noqa: B905 - all of them are endless
    moments = type(
        "Moments",
        (),
        {
            "start": property(partial(next, map(waiting.append, times))),
            "stop": property(partial(next, map(waiting.append, ends))),
        },
    )
    return told.__setitem__, partial(getattr, moments())


def _longest_of(pauses: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return sorted(pauses, reverse=True)[:MAX_PAUSES]


def _recorded_ns() -> int:
    """For how long memory over time has been recorded: since before us, where it is at all."""
    memory = sys.modules.get("pyrometer.capture.memory")
    return memory.series.elapsed_ns if memory is not None and memory.series.begun else 0


watch = GarbageWatch()
"""Of this process."""
