"""Watches the program's data loaders: what it waits for them, and how long they work on a batch."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import Any, Protocol

import msgspec

from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.threads import call_before
from pyrometer.capture.torch_batches import batch_size
from pyrometer.capture.torch_workers import (
    ATTRIBUTE,
    COLLECTOR,
    FETCHERS,
    FetchTimes,
    Timing,
    Timings,
    fetch_begins,
    noting_failure,
    timed_worker_loop,
)
from pyrometer.record.torch_run import MAX_LOADERS, Loader

_OTHER = "(other)"

_now_ns = time.monotonic_ns


class _Patches(Protocol):
    def replace(self, owner: object, name: str, wrapper: Any) -> None: ...


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """What is known of a batch that the program has just received."""

    samples: int | None
    tokens: int | None
    worker_ns: int | None
    """What a worker process took to make it; None when none did, or it was not timed."""


class LoaderWatch:
    """Watches the program's data loaders; ``records()`` says what was seen.

    Nothing of the program is kept alive: what is known of an iterator hangs on the iterator.
    """

    def __init__(self) -> None:
        self._process_id = os.getpid()
        self._being_made = threading.local()
        self._groups: dict[tuple[str, int], _Group] = {}
        self.prefetched_batches = 0
        """So many may lie ready in workers' queues, of the loader that has most."""

    def install(self, patches: _Patches) -> None:
        """Hook into ``torch.utils.data``, which the program has imported."""
        dataloader = sys.modules["torch.utils.data.dataloader"]
        worker, fetch = dataloader._utils.worker, dataloader._utils.fetch  # noqa: SLF001
        several = dataloader._MultiProcessingDataLoaderIter  # noqa: SLF001

        def hook(owner: Any, name: str, before: Any, *, sparing: bool = False) -> None:
            patches.replace(owner, name, call_before(before, vars(owner)[name], sparing=sparing))

        hook(dataloader._BaseDataLoaderIter, "__init__", self._iterator_made)  # noqa: SLF001
        hook(several, "_reset", self._iterator_reset)
        for name in FETCHERS:
            hook(getattr(fetch, name), "fetch", fetch_begins, sparing=True)
        loop = timed_worker_loop(worker._worker_loop, self._timings_being_shared)  # noqa: SLF001
        patches.replace(worker, "_worker_loop", loop)

    def started(self, iterator: object, duration_ns: int) -> None:
        """``DataLoader.__iter__`` has returned the iterator, and took that long."""
        self._iteration(iterator).group.start_ns += duration_ns

    def fetched(self, iterator: object, batch: object, wait_ns: int, *, counted: bool = True) -> Fetched:
        """``__next__`` has just returned the batch, and took that long.

        One that is not ``counted`` is in no figure: its step is not recorded.
        """
        now_ns = _now_ns()
        worker_ns = None
        try:
            worker_ns = self._account(iterator, now_ns, wait_ns, counted=counted)
        except Exception as error:  # noqa: BLE001 - torch's loader may look different one day
            note_failure(COLLECTOR, "a batch is not accounted for", error)
        return Fetched(*batch_size(batch), worker_ns)

    def works_in_process(self, iterator: object) -> bool:
        """Whether the batches of this iterator need no closer look than ``more_fetched``."""
        iteration = self._iteration(iterator)
        return iteration.group.workers == 0 and iteration.began_ns == 0

    def group_of(self, iterator: object) -> _Group:
        """For ``more_fetched``: where the iterator's batches are counted."""
        return self._iteration(iterator).group

    def exhausted(self, iterator: object) -> None:
        """``__next__`` has raised: at the end of the data, or the program's own error."""
        # After an error torch goes on with the next batch; the workers are still at it.
        if vars(iterator).get("_shutdown", False):
            self._iteration(iterator).timings = None

    def records(self) -> tuple[Loader, ...]:
        """What was seen so far, the loader that began first first."""
        return tuple(group.record() for group in list(self._groups.values()))

    def reset(self) -> None:
        """Forget what was seen."""
        self._groups = {}

    def _account(self, iterator: Any, now_ns: int, wait_ns: int, *, counted: bool) -> int | None:
        iteration = self._iteration(iterator)
        group = iteration.group
        if iteration.began_ns:
            group.first_batch_ns += now_ns - iteration.began_ns
            iteration.began_ns = 0
        if not counted:
            group = _Group(group.name, group.workers)
        group.batches += 1
        group.wait_ns += wait_ns
        if not group.workers:
            times = iteration.fetch_times(iterator)
            taken = None if times is None else times.take(now_ns)
            if taken is not None:
                # A fetch is a part of the waiting; that we look at the clock a little later is not.
                group.add_work(min(now_ns - taken[0], wait_ns), min(taken[1], wait_ns), None)
            return None
        timing = iteration.received(iterator)
        if timing is None:
            note_loss(COLLECTOR, "batches whose making in a worker process was not timed")
            return None
        worker_ns = timing.done_ns - timing.began_ns
        group.add_work(worker_ns, timing.collate_ns, timing.transform_ns)
        asked_ns = now_ns - wait_ns
        ready = timing.done_ns <= asked_ns
        group.ready_batches += ready
        group.queued_batches += ready + iteration.finished_others(iterator, timing.round, asked_ns)
        return worker_ns

    def _iteration(self, iterator: Any) -> _Iteration:
        """What is known of the iterator; little, when it was made before we came."""
        iteration: _Iteration | None = iterator.__dict__.get(ATTRIBUTE)
        if iteration is None:
            iteration = iterator.__dict__[ATTRIBUTE] = _Iteration()
        if iteration.groups is not self._groups:
            iteration.groups = self._groups
            iteration.group = self._group(iterator._dataset, iterator._num_workers)  # noqa: SLF001
            # One that was begun before a reset, and has given nothing yet, is still to be seen.
            iteration.group.iterators += iteration.began_ns != 0
        return iteration

    def _group(self, dataset: object, workers: int) -> _Group:
        key = (f"DataLoader({type(dataset).__name__})", workers)
        if key not in self._groups:
            if len(self._groups) >= MAX_LOADERS - 1:
                key = (_OTHER, 0)
            self._groups.setdefault(key, _Group(*key))
        group = self._groups[key]
        group.workers = max(group.workers, workers)
        return group

    def _iterator_made(self, iterator: Any, loader: Any, *_: object) -> None:
        """Called before the iterator's ``__init__``."""
        if os.getpid() != self._process_id:
            return
        with noting_failure("an iterator is not timed"):
            self._begin(iterator, loader)

    def _begin(self, iterator: Any, loader: Any) -> None:
        iteration = iterator.__dict__[ATTRIBUTE] = _Iteration()
        iteration.groups = self._groups
        iteration.group = self._group(loader.dataset, loader.num_workers)
        iteration.begin()
        if loader.num_workers > 0:
            iteration.group.worker_starts += 1
            # torch has at most this many batches under way; the room is for those that come late.
            most = loader.num_workers * (loader.prefetch_factor or 2)
            self.prefetched_batches = max(self.prefetched_batches, most)
            iteration.timings = Timings(4 * most)
            made = [known for known in self._iterators_being_made() if known() is not None]
            self._being_made.iterators = [*made, weakref.ref(iterator)]

    def _iterator_reset(self, iterator: Any, *_: object) -> None:
        """Called before an iterator with workers begins, also when it is a new one."""
        if os.getpid() == self._process_id and "_send_idx" in iterator.__dict__:
            with noting_failure("an iteration is not timed"):
                self._iteration(iterator).begin()

    def _iterators_being_made(self) -> list[weakref.ref[Any]]:
        return getattr(self._being_made, "iterators", [])

    def _timings_being_shared(self) -> Timings | None:
        """Those of the iterator that is starting a worker just now, on this thread."""
        for known in reversed(self._iterators_being_made()):
            iterator = known()
            workers = None if iterator is None else iterator.__dict__.get("_workers")
            if workers is not None and len(workers) < iterator._num_workers:  # noqa: SLF001
                return self._iteration(iterator).timings
        return None


class _Iteration:
    """One iterator, each time it is gone through."""

    __slots__ = ("_known", "_sent", "_times", "began_ns", "group", "groups", "timings")

    group: _Group

    def __init__(self) -> None:
        self.groups: dict[tuple[str, int], _Group] | None = None
        """Those that ``group`` is one of: a reset makes others."""
        self.timings: Timings | None = None
        self.began_ns = 0
        """0 after the first batch."""
        self._times: FetchTimes | None = None
        self._known: set[int] = set()
        self._sent = 0

    def begin(self) -> None:
        self.group.iterators += 1
        self.began_ns = _now_ns()
        self._known, self._sent = set(), 0

    def fetch_times(self, iterator: Any) -> FetchTimes | None:
        """Of an iterator that works in the program's own process."""
        if self._times is None:
            self._times = iterator._dataset_fetcher.__dict__.get(ATTRIBUTE)  # noqa: SLF001
        return self._times

    def received(self, iterator: Any) -> Timing | None:
        """The timing of the batch that was received last."""
        timings = self.timings
        if timings is None:
            return None
        if getattr(iterator, "_in_order", True):
            return timings.read(iterator._rcvd_idx - 1)  # noqa: SLF001
        # Out of order, torch does not say which one it was: one that was under way and is no more.
        under_way = set(iterator._task_info)  # noqa: SLF001
        gone = (self._known | set(range(self._sent, iterator._send_idx))) - under_way  # noqa: SLF001
        self._known, self._sent = under_way, iterator._send_idx  # noqa: SLF001
        return next((timing for index in gone if (timing := timings.read(index)) is not None), None)

    def finished_others(self, iterator: Any, made_in: int, at_ns: int) -> int:
        """How many batches of the round, not received yet, were finished at that time."""
        timings = self.timings
        return 0 if timings is None else timings.count_done(iterator._task_info, made_in, at_ns)  # noqa: SLF001


class _Group:
    """The figures of a ``Loader``, as they grow."""

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = workers
        self.iterators = 0
        self.worker_starts = 0
        self.start_ns = 0
        self.batches = 0
        self.wait_ns = 0
        self.first_batch_ns = 0
        self.timed_batches = 0
        self.work_ns = 0
        self.collate_ns = 0
        self.transform_ns: int | None = None
        self.ready_batches = 0
        self.queued_batches = 0

    def add_work(self, work_ns: int, collate_ns: int, transform_ns: int | None) -> None:
        self.timed_batches += 1
        self.work_ns += work_ns
        self.collate_ns += collate_ns
        if transform_ns is not None:
            self.transform_ns = (self.transform_ns or 0) + transform_ns

    def record(self) -> Loader:
        # Parts before wholes: the program may go on meanwhile, and a part is never the larger.
        ready, queued = self.ready_batches, self.queued_batches
        transform_ns, collate_ns = self.transform_ns, self.collate_ns
        work_ns, timed = self.work_ns, self.timed_batches
        in_workers = self.workers > 0 and timed > 0
        return Loader(
            name=self.name,
            workers=self.workers,
            iterators=self.iterators,
            start_ns=self.start_ns,
            worker_starts=self.worker_starts if self.workers else None,
            wait_ns=self.wait_ns,
            batches=self.batches,
            timed_batches=timed,
            work_ns=work_ns if timed else None,
            collate_ns=collate_ns if timed else None,
            transform_ns=transform_ns,
            ready_batches=ready if in_workers else None,
            queued_batches=queued if in_workers else None,
            first_batch_ns=self.first_batch_ns if self.batches else None,
        )
