"""Times how batches are made: in the worker processes of a ``DataLoader``, and in the program's own.

A worker's timings go back through memory shared with the program; torch's queues carry what they
always carry. All timing hangs on calls that C makes for us before torch's own, so that no frame
of ours stands in the program's tracebacks.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import inspect
import mmap
import operator
import os
import pickle
import sys
import time
import weakref
from multiprocessing import context, reduction, spawn
from types import FunctionType
from typing import Any, NamedTuple, Self

import pyrometer
from pyrometer._native import KIND, Recorder
from pyrometer.capture import recording
from pyrometer.capture.losses import note_failure
from pyrometer.capture.threads import call_before

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ATTRIBUTE = "_pyrometer_loading"
"""Under which torch's own loader objects, fetchers and iterators, carry what we know of them."""

WORKER_MODULE = "torch.utils.data._utils.worker"
_FETCH_MODULE = "torch.utils.data._utils.fetch"
FETCHERS = ("_MapDatasetFetcher", "_IterableDatasetFetcher")

_now_ns = time.monotonic_ns
"""The one clock that all processes of a machine share."""


COLLECTOR = "data loading"


class noting_failure:  # noqa: N801 - used as a word, like `contextlib.suppress`
    """Turns an error of ours inside into a loss."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, Exception):
            note_failure(COLLECTOR, self._doing, error)
        return isinstance(error, Exception)


class Timing(NamedTuple):
    """How one batch was made, on the clock that the processes share."""

    round: int
    """How often the worker had been told to begin anew."""
    began_ns: int
    done_ns: int
    collate_ns: int
    transform_ns: int | None


class Timings:
    """A ring of timings by batch index, in memory that the program and its workers share.

    A worker writes a batch's entry before it hands the batch over, its stamp last: whoever has
    received a batch finds the entry whole, or one with another stamp.
    """

    _FIGURES = 5
    _BYTES = 8 * _FIGURES
    _ROUND = 1 << 40

    def __init__(self, entries: int) -> None:
        self._map(mmap.mmap(-1, entries * self._BYTES))
        self._fd: int | None = None

    @classmethod
    def attached(cls, fd: int) -> Self:
        """The same memory in another process; takes the file descriptor over."""
        timings = cls.__new__(cls)
        try:
            timings._map(mmap.mmap(fd, 0))  # noqa: SLF001
        finally:
            os.close(fd)
        return timings

    def share(self) -> int:
        """A file descriptor for workers that inherit no memory; to be asked before any worker writes."""
        if self._fd is None:
            fd = os.memfd_create("pyrometer-loading", os.MFD_CLOEXEC)
            weakref.finalize(self, os.close, fd).atexit = False
            os.ftruncate(fd, self._entries * self._BYTES)
            self._map(mmap.mmap(fd, 0))
            self._fd = fd
        return self._fd

    def write(self, index: int, timing: Timing) -> None:
        """Enter the timing of one batch."""
        at = index % self._entries * self._FIGURES
        numbers = self._numbers
        numbers[at] = 0
        numbers[at + 1] = timing.began_ns
        numbers[at + 2] = timing.done_ns
        numbers[at + 3] = timing.collate_ns
        numbers[at + 4] = -1 if timing.transform_ns is None else timing.transform_ns
        numbers[at] = timing.round * self._ROUND + index + 1

    def read(self, index: int) -> Timing | None:
        """The timing of the batch, if there is one."""
        at = index % self._entries * self._FIGURES
        stamp, began_ns, done_ns, collate_ns, transform_ns = self._numbers[at : at + self._FIGURES]
        if stamp % self._ROUND != index + 1:
            return None
        return Timing(
            stamp // self._ROUND, began_ns, done_ns, collate_ns, None if transform_ns < 0 else transform_ns
        )

    def count_done(self, indices: Iterable[int], made_in: int, at_ns: int) -> int:
        """How many of these batches, of that round, were finished at that time."""
        numbers, entries, done = self._numbers, self._entries, 0
        first_stamp = made_in * self._ROUND + 1
        for index in indices:
            at = index % entries * 5
            done += numbers[at] == first_stamp + index and numbers[at + 2] <= at_ns
        return done

    def _map(self, memory: mmap.mmap) -> None:
        self._numbers = memoryview(memory).cast("q")
        self._entries = len(memory) // self._BYTES


class FetchTimes:
    """When the fetcher began its latest batch, and to put its samples together; 0: it did not."""

    __slots__ = ("began_ns", "collate_began_ns")

    def __init__(self) -> None:
        self.began_ns = 0
        self.collate_began_ns = 0

    def collate_begins(self, *_: object) -> None:
        """Called before the loader's ``collate_fn``."""
        self.collate_began_ns = _now_ns()

    def take(self, done_ns: int) -> tuple[int, int] | None:
        """(when the batch was begun, what collating took) of a batch done now; each is given once."""
        began_ns, collate_began_ns = self.began_ns, self.collate_began_ns
        if began_ns == 0:
            return None
        self.began_ns = 0
        return began_ns, (done_ns - collate_began_ns if collate_began_ns else 0)


def fetch_begins(fetcher: Any, *_: object) -> None:
    """Called before the ``fetch`` of torch's fetchers, in every process."""
    times = fetcher.__dict__.get(ATTRIBUTE)
    if times is None:
        times = FetchTimes()
        fetcher.__dict__[ATTRIBUTE] = times
        with noting_failure("batches are not timed"):
            fetcher.collate_fn = call_before(times.collate_begins, fetcher.collate_fn, sparing=True)
            if _worker is not None:
                _worker.meet(fetcher, times)
    times.collate_began_ns = 0
    times.began_ns = _now_ns()


_worker: _Worker | None = None
"""What this process is, if it is a worker."""


class _Worker:
    """Watches one worker: when its fetcher is called and when it hands a batch over."""

    def __init__(self, timings: Timings, arguments: dict[str, Any]) -> None:
        self._timings = timings
        self._dataset = arguments["dataset"]
        self._round = 0
        self._times: FetchTimes | None = None
        self._transforms: _TransformTimer | None = None
        self._end_of_data = sys.modules[WORKER_MODULE]._IterableDatasetStopIteration  # noqa: SLF001
        queue = arguments["data_queue"]
        queue.put = call_before(self._hands_over, queue.put)

    def meet(self, fetcher: Any, times: FetchTimes) -> None:
        """A fetcher's first call: the worker's own, or one of a loader that the dataset uses."""
        if fetcher.dataset is not self._dataset:
            return
        self._times = times
        # As late as this, because the program's `worker_init_fn` may set a transform.
        if self._transforms is None:
            self._transforms = _TransformTimer(self._dataset)

    def _hands_over(self, item: tuple[Any, Any], *_: object) -> None:
        done_ns = _now_ns()
        with noting_failure("a batch is not timed"):
            self._note_done(*item, done_ns)

    def _note_done(self, index: object, data: object, done_ns: int) -> None:
        if not isinstance(index, int):
            self._round += 1  # the answer to being told to begin anew
            return
        taken = None if self._times is None else self._times.take(done_ns)
        # Also without a batch at the end of the data, which never reaches the program as one.
        if taken is None or isinstance(data, self._end_of_data):
            return
        transform_ns = None if self._transforms is None else self._transforms.take_ns()
        began_ns, collate_ns = taken
        self._timings.write(index, Timing(self._round, began_ns, done_ns, collate_ns, transform_ns))


class WorkerLoop(functools.partial[None]):
    """torch's worker loop, prepared for timing first: the target of a worker's process.

    A call passes through C only. Pickled, it becomes the same in a worker that was spawned, or
    torch's own plain loop where that could not be.
    """

    find_timings: Callable[[], Timings | None]

    def __reduce__(self) -> tuple[Any, ...]:
        with noting_failure("a worker is not timed"):
            timings = self.find_timings()
            if timings is not None and context.get_spawning_popen() is not None and _child_can_import_us():
                # The way that multiprocessing's own connections take into a new process.
                return spawned_worker_loop, (reduction.DupFd(timings.share()),)
        return pickle.loads, (f"c{WORKER_MODULE}\n_worker_loop\n.".encode(),)


def timed_worker_loop(loop: Callable[..., None], find_timings: Callable[[], Timings | None]) -> WorkerLoop:
    """The loop, which in the worker asks for the memory and writes the timings there."""

    def prepare(*arguments: Any) -> None:
        global _worker
        with noting_failure("a worker is not timed"):
            while recording.recorder.enabled:
                recording.stop()
            timings = find_timings()
            if timings is not None:
                _watch_fetchers()
                _worker = _Worker(timings, inspect.signature(loop).bind(*arguments).arguments)

    target = WorkerLoop(call_before(prepare, loop))
    target.find_timings = find_timings
    return target


def spawned_worker_loop(duplicate: Any) -> Callable[..., None]:
    """What a ``WorkerLoop`` becomes in a worker that inherits nothing."""
    loop: Callable[..., None] = importlib.import_module(WORKER_MODULE)._worker_loop  # noqa: SLF001
    try:
        timings = Timings.attached(duplicate.detach())
    except Exception:  # noqa: BLE001 - the worker works untimed, and the program counts such batches
        return loop
    return timed_worker_loop(loop, lambda: timings)


def _child_can_import_us() -> bool:
    """Whether ``import pyrometer`` in a new process finds this very package.

    Under ``pyrometer run`` the program's interpreter need not have it installed.
    """
    if os.fsdecode(spawn.get_executable()) != sys.executable:
        return False
    for finder in sys.meta_path:
        found = finder.find_spec(pyrometer.__name__, None)
        if found is not None:
            return found.origin == pyrometer.__file__
    return False


def _watch_fetchers() -> None:
    """In a worker that inherited no hooks of ours."""
    module = importlib.import_module(_FETCH_MODULE)
    for name in FETCHERS:
        fetcher = getattr(module, name)
        if getattr(fetcher.fetch, "hook", None) is not fetch_begins:
            fetcher.fetch = call_before(fetch_begins, vars(fetcher)["fetch"])


class _TransformTimer:
    """Times the transforms of a worker's copy of the dataset, and of datasets that it wraps.

    A transform stays the object it is and its class is timed, except for functions. Those are
    replaced by a stand-in with their class and attributes, which is pickled as what it stands for.
    """

    _NAMES = ("transform", "transforms", "target_transform")
    _MOST_DATASETS = 32

    def __init__(self, dataset: object) -> None:
        self._recorder = Recorder(max_nodes=64, suspends=False)
        self._found = False
        self._given_ns = 0
        # The Python twin would put its frames into the program's tracebacks.
        if KIND != "native":
            return
        for each in self._datasets(dataset):
            for name in self._NAMES:
                self._watch(each, name)
        if self._found:
            self._recorder.start()

    def take_ns(self) -> int | None:
        """The time spent in transforms since it was last asked; None without any."""
        if not self._found:
            return None
        # Only what is at the top: a transform may be made of others.
        strands = self._recorder.snapshot()["strands"]
        total_ns = sum(node[4] for strand in strands for node in strand[4] if node[0] < 0)
        taken_ns = total_ns - self._given_ns
        self._given_ns = total_ns
        return int(taken_ns)

    def _datasets(self, dataset: object) -> Iterator[object]:
        waiting, met = [dataset], 0
        while waiting and met < self._MOST_DATASETS:
            each = waiting.pop(0)
            met += 1
            if not hasattr(each, "__dict__"):
                continue
            yield each
            # As torch's Subset and ConcatDataset name what they are made of.
            waiting += [vars(each)["dataset"]] if "dataset" in vars(each) else []
            inner = vars(each).get("datasets")
            waiting += inner if isinstance(inner, (list, tuple)) else []

    def _watch(self, dataset: object, name: str) -> None:
        value = vars(dataset).get(name)
        if value is None:
            for kind in type(dataset).__mro__:
                if name in vars(kind):
                    self._watch_function(kind, name)
                    return
        elif callable(value) and not self._watch_function(type(value), "__call__"):
            stand_in: Any = self._recorder.profiled(value, name)
            vars(dataset)[name] = stand_in
            _stood_for[id(stand_in)] = (stand_in, value)
            copyreg.pickle(type(stand_in), _reduce_stand_in)
            self._found = True

    def _watch_function(self, kind: type, name: str) -> bool:
        """Whether the class has a Python function by that name, which is now timed."""
        function = inspect.getattr_static(kind, name, None)
        if not isinstance(function, FunctionType):
            return False
        if getattr(function, ATTRIBUTE, None) is None:
            timed: Any = self._recorder.profiled(function, name)
            setattr(timed, ATTRIBUTE, self)
            setattr(kind, name, timed)
        self._found = True
        return True


_stood_for: dict[int, tuple[Any, Any]] = {}
"""Our stand-ins, kept as long as the worker lives, and what they stand for."""


def _reduce_stand_in(stand_in: Any) -> Any:
    if id(stand_in) not in _stood_for:
        return stand_in.__reduce__()
    return operator.getitem, (_stood_for[id(stand_in)][1:], 0)
