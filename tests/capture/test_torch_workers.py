"""What is said of loaders with worker processes, and that the workers work as without us."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pyrometer
from pyrometer._native import KIND
from pyrometer.capture.torch_workers import FetchTimes, Timing, Timings, _Worker
from pyrometer.record.torch_run import Loader
from tests.loading import (
    COLLATE_NS,
    SAMPLE_NS,
    TRANSFORM_NS,
    AskedInWorker,
    BrokenSamples,
    Composed,
    Nested,
    Samples,
    SlowSamples,
    SlowTransform,
    Stream,
    TransformsByMethod,
    broken_transform,
    dataset_of_worker,
    loader_of,
    slow_collate,
    slow_transform,
    watched_loading,
)

pytestmark = pytest.mark.torch

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/maps").is_file(), reason="what a process holds is read from /proc"
)
needs_core = pytest.mark.skipif(
    KIND != "native", reason="the Python twin times no transforms, and its frames are seen in tracebacks"
)
START_METHODS = ["fork", "forkserver", "spawn"]


def load(dataset: Any, **options: Any) -> Loader:
    """What is said of going through a loader once."""
    options = {"num_workers": 1, "multiprocessing_context": "fork", **options}
    with watched_loading() as watched:
        list(loader_of(dataset, **options))
    return watched.record()


def batches_of(loader: Any) -> list[Any]:
    """What the loader gives from a given state of the random numbers, as plain numbers."""
    import torch

    torch.manual_seed(3)
    return [batch.tolist() for batch in loader]


def test_an_entry_is_found_by_its_index_until_another_takes_its_place() -> None:
    timings = Timings(4)
    first, second = Timing(0, 10, 30, 5, None), Timing(2, 40, 90, 6, 7)
    timings.write(1, first)
    assert (timings.read(1), timings.read(5), timings.read(0)) == (first, None, None)
    timings.write(5, second)
    assert (timings.read(1), timings.read(5)) == (None, second)
    assert [timings.count_done([1, 5], 2, at_ns) for at_ns in (89, 90)] == [0, 1]
    assert timings.count_done([5], 1, 90) == 0


def test_another_process_finds_the_same_entries_through_a_file_descriptor() -> None:
    timings = Timings(4)
    attached = Timings.attached(os.dup(timings.share()))
    attached.write(3, Timing(0, 1, 2, 3, 4))
    assert timings.read(3) == Timing(0, 1, 2, 3, 4)


def test_a_worker_writes_an_entry_for_each_batch_of_each_round_and_none_for_the_end_of_the_data() -> None:
    from torch.utils.data._utils.worker import _IterableDatasetStopIteration, _ResumeIteration

    timings, times = Timings(4), FetchTimes()
    handed_over: list[Any] = []
    queue = SimpleNamespace(put=handed_over.append)
    dataset = Samples(1)
    worker = _Worker(timings, {"dataset": dataset, "data_queue": queue})
    worker.meet(SimpleNamespace(dataset=dataset), times)
    items: list[tuple[Any, Any]] = [
        (0, "batch"),
        (_ResumeIteration(), None),
        (0, "batch"),
        (1, _IterableDatasetStopIteration(0)),
    ]
    rounds = []
    for item in items:
        times.began_ns = 1
        queue.put(item)
        entry = timings.read(0)
        rounds.append(None if entry is None else entry.round)
    assert rounds == [0, 0, 1, 1]
    assert timings.read(1) is None
    assert handed_over == items


@needs_core
@pytest.mark.parametrize("start_method", START_METHODS)
def test_a_worker_is_charged_what_it_took_however_it_was_started(start_method: str) -> None:
    dataset = SlowSamples(6, SlowTransform())
    options = {"batch_size": 2, "collate_fn": slow_collate, "num_workers": 2}
    expected = batches_of(loader_of(dataset, multiprocessing_context="fork", **options))
    with watched_loading() as watched:
        assert batches_of(loader_of(dataset, multiprocessing_context=start_method, **options)) == expected
    record = watched.record()
    assert (record.name, record.workers, record.iterators) == ("DataLoader(SlowSamples)", 2, 1)
    assert (record.batches, record.timed_batches) == (3, 3)
    assert record.work_ns is not None
    assert record.collate_ns is not None
    assert record.transform_ns is not None
    assert record.collate_ns >= 3 * COLLATE_NS
    assert record.transform_ns >= 6 * TRANSFORM_NS
    assert record.work_ns >= 6 * SAMPLE_NS + record.transform_ns + record.collate_ns
    assert record.ready_batches is not None
    assert record.queued_batches is not None
    assert record.queued_batches >= record.ready_batches
    worker_ns = [batch.worker_ns for batch in watched.fetched]
    assert sum(each or 0 for each in worker_ns) == record.work_ns


@needs_core
@pytest.mark.parametrize(
    ("transform", "is_timed"),
    [
        (SlowTransform(), True),
        (slow_transform, True),
        (lambda value: slow_transform(value), True),  # noqa: PLW0108 - a lambda is the point
        (functools.partial(slow_transform), True),
        (SlowTransform().__call__, True),
        (Composed(Composed(SlowTransform())), True),
        (None, False),
    ],
    ids=["object", "function", "lambda", "partial", "method", "composed", "none"],
)
def test_every_kind_of_transform_is_timed_once(transform: Any, is_timed: bool) -> None:
    record = load(Samples(4, transform))
    assert (record.transform_ns is not None) == is_timed
    if record.transform_ns is not None:
        assert record.work_ns is not None
        assert 4 * TRANSFORM_NS <= record.transform_ns <= record.work_ns


@needs_core
def test_a_module_a_method_and_the_transform_of_an_inner_data_set_are_timed() -> None:
    import torch
    from torch.utils.data import ConcatDataset, Subset

    class Slow(torch.nn.Module):
        def forward(self, value: Any) -> Any:
            return slow_transform(value)

    first: Any = Samples(4, slow_transform)
    second: Any = Samples(1, SlowTransform())
    inner: Any = ConcatDataset([Subset(first, range(2)), second])
    for dataset, transforms in ((Samples(2, Slow()), 2), (TransformsByMethod(2), 2), (inner, 3)):
        record = load(dataset)
        assert record.transform_ns is not None
        assert record.transform_ns >= transforms * TRANSFORM_NS


@needs_core
@pytest.mark.parametrize("transform", [SlowTransform(), slow_transform])
def test_a_transform_looks_the_same_in_the_worker_and_is_pickled_as_itself(transform: Any) -> None:
    with pyrometer.profile(), watched_loading() as watched:
        seen = list(loader_of(AskedInWorker(3, transform), num_workers=1, multiprocessing_context="fork"))
    assert [batch.tolist() for batch in seen] == [[[True] * 5]] * 3
    assert watched.record().transform_ns is not None


def set_transform(_: int) -> None:
    dataset_of_worker().transform = slow_transform


@needs_core
def test_a_transform_set_when_the_worker_starts_is_timed() -> None:
    assert load(Samples(2), worker_init_fn=set_transform).transform_ns is not None


def error_of(iterator: Any) -> str:
    """What the first error says that it raises."""
    try:
        for _ in iterator:
            pass
    except (KeyError, ValueError) as error:
        # torch's own frame holds the error and so itself: the iterator would be left to some later
        # collection of garbage, perhaps in another worker.
        error.__traceback__ = None
        return str(error)
    raise AssertionError("no error")


@needs_core
@pytest.mark.parametrize(
    "dataset", [BrokenSamples(4), Samples(4, broken_transform), Samples(4, Composed(broken_transform))]
)
def test_an_error_in_a_worker_reads_as_without_us(dataset: Any) -> None:
    without = error_of(iter(loader_of(dataset, num_workers=1, multiprocessing_context="fork")))
    with watched_loading():
        iterator = iter(loader_of(dataset, num_workers=1, multiprocessing_context="fork"))
        assert error_of(iterator) == without
    assert "_worker_loop" in without
    assert "pyrometer" not in without


def test_after_an_error_in_a_worker_the_next_batches_are_timed() -> None:
    with watched_loading() as watched:
        iterator = iter(
            loader_of(BrokenSamples(4), sampler=[0, 3, 1], num_workers=1, multiprocessing_context="fork")
        )
        next(iterator)
        assert "sample 3 is broken" in error_of(iterator)
        next(iterator)
    assert (watched.record().batches, watched.record().timed_batches) == (2, 2)


ENDS = """
import contextlib, sys
from tests.loading import LethalSamples, QuittingSamples, watched_loading
from torch.utils.data import DataLoader

dataset, watching = {dataset}(4), {watching}
with watched_loading() if watching else contextlib.nullcontext():
    try:
        list(DataLoader(dataset, num_workers=1, multiprocessing_context="fork"))
    except RuntimeError as error:
        print(type(error).__name__)
"""


@needs_core
@pytest.mark.parametrize("dataset", ["LethalSamples", "QuittingSamples"])
def test_a_worker_that_is_killed_or_quits_ends_the_loader_as_without_us(dataset: str) -> None:
    # In programs of their own: torch raises the error wherever the main thread happens to be.
    def output(*, watching: bool) -> tuple[str, str]:
        program = ENDS.format(dataset=dataset, watching=watching)
        finished = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        return finished.stdout, finished.stderr

    without = output(watching=False)
    assert without[0] == "RuntimeError\n"
    assert output(watching=True) == without


def test_workers_that_persist_are_timed_in_every_round_also_after_one_left_early() -> None:
    loader = loader_of(SlowSamples(6), num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    with watched_loading() as watched:
        for _ in range(2):
            list(loader)
            next(iter(loader))
    record = watched.record()
    assert (record.iterators, record.batches, record.timed_batches) == (4, 14, 14)
    assert record.work_ns is not None
    assert record.work_ns >= 14 * SAMPLE_NS


@pytest.mark.parametrize("in_order", [True, False])
def test_workers_with_unlike_shares_of_a_stream_are_timed(in_order: bool) -> None:
    record = load(Stream(), num_workers=2, batch_size=2, in_order=in_order)
    # The first worker has five samples, the second one.
    assert (record.batches, record.timed_batches) == (4, 4)
    assert record.work_ns is not None
    assert record.work_ns >= 6 * SAMPLE_NS


def test_a_loader_inside_a_worker_does_not_disturb_the_workers_figures() -> None:
    record = load(Nested(3))
    assert (record.name, record.batches, record.timed_batches) == ("DataLoader(Nested)", 3, 3)
    assert record.work_ns is not None
    assert record.work_ns >= 6 * SAMPLE_NS


def test_seeds_and_worker_info_are_those_without_us() -> None:
    loader = loader_of(
        Samples(16), batch_size=2, shuffle=True, num_workers=2, worker_init_fn=set_transform,
        multiprocessing_context="fork",
    )  # fmt: skip
    expected = batches_of(loader)
    with watched_loading():
        assert batches_of(loader) == expected
    assert batches_of(loader) == expected


def held() -> list[str]:
    """The open files of ours, and the pieces of memory shared with workers, that this process holds."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    maps = [line for line in lines if "/dev/zero" in line or "pyrometer" in line]
    files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    return maps + [file for file in files if "pyrometer" in file]


@needs_proc
@pytest.mark.parametrize(("start_method", "at_most"), [("fork", 1), ("forkserver", 3)])
def test_files_and_memory_are_given_back_with_each_iterator(start_method: str, at_most: int) -> None:
    before = held()
    with watched_loading():
        loader = loader_of(Samples(2), num_workers=1, multiprocessing_context=start_method)
        iterator = iter(loader)
        next(iterator)
        assert len(before) < len(held()) <= len(before) + at_most
        del iterator  # in the middle
        assert held() == before
        iterator = iter(loader)
        list(iterator)
        assert held() == before  # at the end of the data, though the iterator lives on
    assert list(Path("/dev/shm").glob("*pyrometer*")) == []  # noqa: S108 - to see that nothing is there


PROGRAM = """
import sys

if __name__ == "__main__":
    sys.path.insert(0, {root!r})
    from torch.utils.data import DataLoader
    from tests.loading import watched_loading
    from pyrometer.capture.losses import failures

    {prepare}
    with watched_loading() as watched:
        loader = DataLoader([1, 2, 3, 4], num_workers=1, multiprocessing_context="spawn")
        print(len(list(loader)), watched.record().timed_batches, sum(failures.values()))
"""


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        ("pass", "4 4 0"),
        # As under `pyrometer run` by an interpreter that does not have the package.
        ("sys.path[:] = [path for path in sys.path if path != {source!r}]", "4 0 4"),
    ],
    ids=["installed", "not installed"],
)
def test_a_spawned_worker_that_cannot_import_us_works_untimed(
    tmp_path: Path, prepare: str, expected: str
) -> None:
    source = str(Path(pyrometer.__file__).parents[1])
    program = tmp_path / "program.py"
    root = str(Path(__file__).parents[2])
    program.write_text(PROGRAM.format(root=root, prepare=prepare.format(source=source)))
    command = [sys.executable, str(program)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout.strip() == expected, finished.stderr[-3_000:]
