"""What is said of the program's data loaders, and that they work as without us."""

import gc
import time
import traceback
import weakref
from collections import UserDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pyrometer._native import KIND
from pyrometer.capture.losses import failures
from pyrometer.capture.torch_batches import batch_size
from pyrometer.capture.torch_loading import LoaderWatch
from pyrometer.capture.torch_workers import ATTRIBUTE, Timing, Timings
from pyrometer.record.torch_run import MAX_LOADERS
from tests.loading import (
    COLLATE_NS,
    SAMPLE_NS,
    Nested,
    Samples,
    SlowSamples,
    SlowTransform,
    broken_collate,
    loader_of,
    slow_collate,
    watched_loading,
)

pytestmark = pytest.mark.torch

A_SECOND_NS = 1_000_000_000


@dataclass
class Inputs:
    name: str
    values: Any


Pair = namedtuple("Pair", ["values", "labels"])  # noqa: PYI024 - a batch as programs have them


def batches() -> dict[str, tuple[Any, tuple[int | None, int | None]]]:
    import numpy as np
    import torch

    values, labels = torch.zeros(8, 3, 5), torch.zeros(8, dtype=torch.int64)
    ids, one_id = torch.zeros(4, 7, dtype=torch.int64), torch.zeros(4, 1, dtype=torch.int32)
    return {
        "tensor": (values, (8, None)),
        "pair": ([values, labels], (8, None)),
        "labels": (labels, (8, None)),
        "token ids": ((ids, labels), (4, 28)),
        "one column of integers": (one_id, (4, None)),
        "small integers": (ids.to(torch.int8), (4, None)),
        "three dimensions of integers": (ids[None], (1, None)),
        "named ids": ({"labels": labels, "input_ids": ids}, (4, 28)),
        "one id each": ({"input_ids": one_id}, (4, 4)),
        "ids in a tuple": (({"input_ids": ids},), (4, 28)),
        "encoding": (UserDict({"mask": values, "input_ids": ids}), (4, 28)),
        "ids not in a tensor": ({"input_ids": [[1, 2]], "labels": labels}, (8, None)),
        "mapping": ({"name": "first", "values": values}, (8, None)),
        "dataclass": (Inputs("first", values), (8, None)),
        "named tuple": (Pair(values, labels), (8, None)),
        "inputs and targets": ([{"values": values}, {"labels": ids}], (8, None)),
        "a tensor beside a pair": (((ids, ids), labels), (8, None)),
        "a number before": ([torch.tensor(0.5), values], (8, None)),
        "array": ([np.zeros((6, 2)), np.zeros(6)], (6, None)),
        "array of ids": (np.zeros((6, 2), dtype=np.int32), (6, 12)),
        "parameter": (torch.nn.Parameter(values), (8, None)),
        "packed": (
            torch.nn.utils.rnn.pack_padded_sequence(
                values, torch.tensor([3, 1, 2, 3, 1, 1, 2, 3]), batch_first=True, enforce_sorted=False
            ),
            (8, None),
        ),
        "single images": ([(values[0], 1), (values[1], 2)], (None, None)),
        "images and boxes": (((values[0], values[1]), ({"box": ids}, {"box": ids})), (None, None)),
        "single samples": ([{"values": values[0]}, {"values": values[1]}], (None, None)),
        "number": (torch.tensor(1), (None, None)),
        "texts": (["one", "two"], (None, None)),
        "nothing": ([], (None, None)),
        "none": (None, (None, None)),
    }


def test_the_size_of_a_batch_is_told_or_not_but_never_guessed() -> None:
    known = batches()
    assert {name: batch_size(batch) for name, (batch, _) in known.items()} == {
        name: size for name, (_, size) in known.items()
    }


def test_a_batch_that_holds_itself_and_one_without_end_are_given_up() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert batch_size(endless) == (None, None)
    assert batch_size([["text"] * 1_000_000]) == (None, None)


def test_asking_for_a_size_is_seen_by_no_class_and_no_mode_of_the_program() -> None:
    import torch
    from torch.overrides import TorchFunctionMode

    seen = []

    class Ours(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            seen.append(args)
            return super().__torch_function__(*args, **kwargs)  # type: ignore[no-untyped-call]

    class Mode(TorchFunctionMode):
        def __torch_function__(self, *args: Any, **_: Any) -> Any:
            seen.append(args)

    values, weight = (
        torch.zeros(8, 3, dtype=torch.int64).as_subclass(Ours),
        torch.nn.Parameter(torch.zeros(5)),
    )
    seen.clear()
    assert batch_size(values) == (8, 24)
    with Mode():
        assert batch_size([weight]) == (5, None)
    assert seen == []


def test_a_container_that_raises_is_a_loss_and_no_error() -> None:
    class Broken(UserDict[str, Any]):
        @property
        def data(self) -> Any:  # type: ignore[override]
            raise RuntimeError("not loaded")

    failures.clear()
    assert batch_size(Broken.__new__(Broken)) == (None, None)
    assert failures.total() == 1
    failures.clear()


def test_samples_and_collating_in_the_programs_process_are_charged_what_they_took() -> None:
    with watched_loading() as watched:
        for _ in loader_of(SlowSamples(6, SlowTransform()), batch_size=2, collate_fn=slow_collate):
            pass
    record = watched.record()
    assert (record.name, record.workers, record.iterators) == ("DataLoader(SlowSamples)", 0, 1)
    assert (record.batches, record.timed_batches) == (3, 3)
    assert record.collate_ns is not None
    assert record.work_ns is not None
    assert record.collate_ns >= 3 * COLLATE_NS
    assert record.work_ns - record.collate_ns >= 6 * SAMPLE_NS
    assert record.wait_ns >= record.work_ns
    assert record.first_batch_ns is not None
    assert record.first_batch_ns >= 2 * SAMPLE_NS + COLLATE_NS
    assert record.start_ns > 0
    assert (record.transform_ns, record.ready_batches, record.queued_batches) == (None, None, None)
    assert [(batch.samples, batch.worker_ns) for batch in watched.fetched] == [(2, None)] * 3


def test_an_iterable_and_a_loader_without_batches_are_timed_in_the_programs_process() -> None:
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter([SlowSamples(1)[0] for _ in range(4)])

    with watched_loading() as watched:
        list(loader_of(Stream(), batch_size=3))
        list(loader_of(SlowSamples(2), batch_size=None))
    streamed, single = watched.watch.records()
    assert (streamed.batches, streamed.timed_batches) == (2, 2)
    assert (single.batches, single.timed_batches) == (2, 2)
    assert single.work_ns is not None
    assert single.work_ns >= 2 * SAMPLE_NS


def test_loaders_used_side_by_side_and_inside_each_other_are_told_apart() -> None:
    with watched_loading() as watched:
        for _ in zip(loader_of(Samples(4)), loader_of(SlowSamples(4)), strict=True):
            pass
        list(loader_of(Nested(2)))
    by_name = {record.name: record for record in watched.watch.records()}
    plain, slow, nested = (by_name[f"DataLoader({name})"] for name in ("Samples", "SlowSamples", "Nested"))
    assert (plain.batches, plain.timed_batches) == (4, 4)
    # Four beside the plain one, and two inside each sample of the nested one.
    assert (slow.batches, slow.timed_batches, slow.iterators) == (8, 8, 3)
    assert slow.work_ns is not None
    assert slow.work_ns >= 8 * SAMPLE_NS
    assert nested.work_ns is not None
    assert nested.work_ns >= 4 * SAMPLE_NS


def test_a_loop_that_is_left_early_counts_what_it_got() -> None:
    loader = loader_of(Samples(10))
    with watched_loading() as watched:
        for _ in range(3):
            for _ in loader:
                break
    assert (watched.record().iterators, watched.record().batches) == (3, 3)


@pytest.mark.skipif(KIND != "native", reason="the Python twin's frames are seen in tracebacks")
def test_an_error_in_the_programs_process_has_the_traceback_it_has_without_us() -> None:
    def frames() -> list[tuple[str, str]]:
        with pytest.raises(ValueError, match="cannot collate 2 samples") as caught:
            next(iter(loader_of(Samples(2), batch_size=2, collate_fn=broken_collate)))
        lines = traceback.extract_tb(caught.value.__traceback__)
        return [(frame.filename, frame.name) for frame in lines if frame.name != "timed_next"]

    without = frames()
    with watched_loading():
        assert frames() == without


def test_the_hundredth_loader_takes_no_more_room_than_the_sixteenth() -> None:
    with watched_loading() as watched:
        for number in range(40):
            dataset = type(f"Samples{number}", (Samples,), {})(2)
            list(loader_of(dataset))
    records = watched.watch.records()
    assert len(records) == MAX_LOADERS
    assert records[-1].name == "(other)"
    assert sum(record.batches for record in records) == 80
    assert records[-1].batches == 80 - 2 * (MAX_LOADERS - 1)


def test_what_was_seen_is_forgotten_on_reset_also_in_the_middle_of_an_iteration() -> None:
    with watched_loading() as watched:
        iterator = iter(loader_of(Samples(5)))
        next(iterator)
        watched.watch.reset()
        assert watched.watch.records() == ()
        list(iterator)
    assert (watched.record().batches, watched.record().iterators) == (4, 0)


def test_an_iteration_begun_before_a_reset_counts_from_its_first_batch_on() -> None:
    with watched_loading() as watched:
        iterator = iter(loader_of(Samples(5)))
        watched.watch.reset()
        list(iterator)
    assert (watched.record().batches, watched.record().iterators) == (5, 1)


def test_an_iterator_made_before_we_came_is_seen_from_then_on() -> None:
    iterator = iter(loader_of(SlowSamples(3)))
    with watched_loading() as watched:
        list(iterator)
    assert (watched.record().batches, watched.record().timed_batches) == (3, 3)


def test_the_programs_objects_live_no_longer_than_without_us() -> None:
    dataset = Samples(3)
    with watched_loading():
        iterator = iter(loader_of(dataset))
        next(iterator)
        gone = [weakref.ref(iterator), weakref.ref(dataset)]
        gc.disable()
        try:
            del iterator, dataset
            assert [reference() for reference in gone] == [None, None]
        finally:
            gc.enable()


def fake_iterator(**attributes: Any) -> Any:
    """An iterator with two workers that has received one batch; three more are under way."""
    under_way = {1: (1,), 2: (0,), 3: (1,)}
    return SimpleNamespace(
        _dataset=Samples(1), _num_workers=2, _rcvd_idx=1, _send_idx=4, _task_info=under_way, **attributes
    )


def with_timings(watch: LoaderWatch, iterator: Any) -> Timings:
    watch.started(iterator, 0)
    timings = Timings(8)
    getattr(iterator, ATTRIBUTE).timings = timings
    return timings


@pytest.mark.parametrize(
    ("done_ns_ago", "ready", "queued"),
    [
        ([20, 20, 20, None], 1, 3),
        ([5, 20, 20, None], 0, 2),
        ([20, 5, 5, 5], 1, 1),
        ([5, None, None, None], 0, 0),
    ],
)
def test_a_batch_is_ready_if_it_was_finished_when_asked_for(
    done_ns_ago: list[int | None], ready: int, queued: int
) -> None:
    # Asked for ten seconds ago: how long this test takes makes no difference.
    watch, iterator = LoaderWatch(), fake_iterator()
    timings = with_timings(watch, iterator)
    now_ns = time.monotonic_ns()
    for index, ago in enumerate(done_ns_ago):
        if ago is not None:
            done_ns = now_ns - ago * A_SECOND_NS
            timings.write(index, Timing(0, done_ns - 700, done_ns, 300, None))
    fetched = watch.fetched(iterator, [], 10 * A_SECOND_NS)
    (record,) = watch.records()
    assert (record.ready_batches, record.queued_batches) == (ready, queued)
    assert (fetched.worker_ns, record.work_ns, record.collate_ns) == (700, 700, 300)


def test_what_was_finished_in_an_earlier_round_does_not_lie_waiting_now() -> None:
    watch, iterator = LoaderWatch(), fake_iterator()
    timings = with_timings(watch, iterator)
    for index, made_in in enumerate([2, 1, 2]):
        timings.write(index, Timing(made_in, 1, 2, 0, 0))
    watch.fetched(iterator, [], 0)
    (record,) = watch.records()
    assert (record.ready_batches, record.queued_batches) == (1, 2)


def test_out_of_order_the_batch_is_the_one_that_is_no_more_under_way() -> None:
    watch, iterator = LoaderWatch(), fake_iterator(_in_order=False)
    iterator._task_info = {0: (0,), 1: (1,), 3: (1,)}
    timings = with_timings(watch, iterator)
    timings.write(2, Timing(0, 100, 142, 0, None))
    assert watch.fetched(iterator, [], 0).worker_ns == 42
    iterator._task_info = {1: (1,), 3: (1,), 4: (0,)}
    iterator._send_idx = 5
    timings.write(0, Timing(0, 100, 117, 0, None))
    assert watch.fetched(iterator, [], 0).worker_ns == 17


def test_a_batch_of_a_worker_that_could_not_be_timed_is_a_loss() -> None:
    failures.clear()
    watch, iterator = LoaderWatch(), fake_iterator()
    assert watch.fetched(iterator, [], 5).worker_ns is None
    (record,) = watch.records()
    assert (record.batches, record.timed_batches, record.work_ns, record.ready_batches) == (1, 0, None, None)
    assert failures == {("data loading", "batches whose making in a worker process was not timed"): 1}
    failures.clear()
