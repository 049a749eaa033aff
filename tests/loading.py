"""Data sets whose costs are known, and a watch on loaders as the profiler sets it up."""

import os
import pickle
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyrometer.capture import recording
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_loading import Fetched, LoaderWatch
from pyrometer.record.torch_run import Loader

SAMPLE_NS = 4_000_000
TRANSFORM_NS = 3_000_000
COLLATE_NS = 5_000_000


def sleep_ns(duration_ns: int) -> None:
    time.sleep(duration_ns / 1e9)


def slow_transform(value: Any) -> Any:
    sleep_ns(TRANSFORM_NS)
    return value * 2


class SlowTransform:
    """Doubles its input."""

    def __init__(self) -> None:
        self.factor = 2

    def __call__(self, value: Any) -> Any:
        sleep_ns(TRANSFORM_NS)
        return value * self.factor


class Composed:
    """One transform after the other."""

    def __init__(self, *transforms: Callable[[Any], Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


def broken_transform(value: Any) -> Any:
    raise ValueError(f"cannot transform {value[0]}")


def slow_collate(samples: list[Any]) -> Any:
    import torch

    sleep_ns(COLLATE_NS)
    return torch.stack(samples)


def broken_collate(samples: list[Any]) -> Any:
    raise ValueError(f"cannot collate {len(samples)} samples")


class Samples:
    """A map-style data set of vectors, each with random numbers of the process that makes it."""

    def __init__(self, length: int, transform: Callable[[Any], Any] | None = None) -> None:
        self.length = length
        self.transform = transform

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        import torch

        value = torch.tensor([float(index), torch.rand(()).item(), random.random()])
        return value if self.transform is None else self.transform(value)


class SlowSamples(Samples):
    def __getitem__(self, index: int) -> Any:
        sleep_ns(SAMPLE_NS)
        return super().__getitem__(index)


class BrokenSamples(Samples):
    """Cannot give its second half."""

    def __getitem__(self, index: int) -> Any:
        if index >= self.length // 2:
            raise KeyError(f"sample {index} is broken")
        return super().__getitem__(index)


class LethalSamples(Samples):
    """Kills the process that makes one."""

    def __getitem__(self, index: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class QuittingSamples(Samples):
    """Ends the worker that makes one, with a traceback on its stderr."""

    def __getitem__(self, index: int) -> Any:
        raise GeneratorExit


class TransformsByMethod(Samples):
    """Its transform is a method."""

    def __getitem__(self, index: int) -> Any:
        return self.augment(super().__getitem__(index))

    def augment(self, value: Any) -> Any:
        return self.transforms(value)

    def transforms(self, value: Any) -> Any:
        sleep_ns(TRANSFORM_NS)
        return value * 2


def dataset_of_worker() -> Any:
    """What the program can reach from inside a worker."""
    from torch.utils.data import get_worker_info

    worker = get_worker_info()
    return None if worker is None else worker.dataset


class AskedInWorker(Samples):
    """Gives what the worker's program can see of the transform: 1 where it looks as without us."""

    def __getitem__(self, index: int) -> Any:
        import torch

        dataset = dataset_of_worker()
        transform = dataset.transform
        copied = pickle.loads(pickle.dumps(dataset)).transform  # noqa: S301
        as_without = [
            dataset is self,
            isinstance(transform, type(slow_transform)) != hasattr(transform, "factor"),
            transform.__class__ is copied.__class__ and type(copied) in {type(slow_transform), SlowTransform},
            bool((copied(torch.ones(1)) == transform(torch.ones(1))).all()),
            not recording.recorder.enabled,
        ]
        return torch.tensor(as_without)


class Nested(Samples):
    """Makes each sample with a loader of its own."""

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.cat(list(loader_of(SlowSamples(2), batch_size=1)))


def Stream() -> Any:  # noqa: N802 - stands for a class that needs torch to be defined
    """An iterable data set: five samples in the first worker, one in the second."""
    from torch.utils.data import IterableDataset, get_worker_info

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            worker = get_worker_info()
            assert worker is not None
            yield from (SlowSamples(5)[index] for index in range(1 if worker.id else 5))

    return Stream()


def loader_of(dataset: Any, **options: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, **options)


class Watched:
    """A watch, and what it said of each batch."""

    def __init__(self, watch: LoaderWatch) -> None:
        self.watch = watch
        self.fetched: list[Fetched] = []

    def record(self) -> Loader:
        """Of the only loader there was."""
        (record,) = self.watch.records()
        return record


@contextmanager
def watched_loading() -> Iterator[Watched]:
    """Watches all loaders meanwhile."""
    from torch.utils.data import DataLoader, dataloader

    patches = Patches()
    watched = Watched(LoaderWatch())
    watch = watched.watch
    base = dataloader._BaseDataLoaderIter
    fetch_next, make_iterator = base.__next__, DataLoader.__iter__

    def timed_next(iterator: Any) -> Any:
        began_ns = time.perf_counter_ns()
        try:
            batch = fetch_next(iterator)
        except BaseException:
            watch.exhausted(iterator)
            raise
        watched.fetched.append(watch.fetched(iterator, batch, time.perf_counter_ns() - began_ns))
        return batch

    def timed_iter(loader: Any) -> Any:
        began_ns = time.perf_counter_ns()
        iterator = make_iterator(loader)
        watch.started(iterator, time.perf_counter_ns() - began_ns)
        return iterator

    watch.install(patches)
    patches.replace(base, "__next__", timed_next)
    patches.replace(DataLoader, "__iter__", timed_iter)
    try:
        yield watched
    finally:
        patches.remove()
