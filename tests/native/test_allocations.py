"""What torch allocates for CPU tensors, by scope, to the byte."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from pyrometer._native import uncounted
from tests.recorders import CORE, TWIN, Path, available_recorders, load, seen, seen_in_strand

NOT_COUNTED = (-1, -1)


def allocated(recorder: Any) -> dict[Path, tuple[int, int]]:
    """Bytes and calls by path in the first strand."""
    return {path: (node.allocated_bytes, node.allocations) for path, node in seen(recorder).items()}


def test_without_the_core_the_answer_is_why_and_scopes_have_no_figures() -> None:
    assert uncounted.count_allocations() == "needs the compiled core"
    assert uncounted.allocation_totals() is None
    recorder = load(TWIN).Recorder()
    recorder.start()
    with recorder.scope("a"):
        pass
    uncounted.stop_counting_allocations()
    assert allocated(recorder) == {("a",): NOT_COUNTED}
    recorder.stop()


@pytest.mark.skipif(CORE not in available_recorders(), reason="the C core is not built: nothing is counted")
def test_before_torch_is_loaded_there_are_no_tensors_to_count() -> None:
    program = """
from pyrometer._native import core
core.count_allocations()
print(core.why_tensors_are_uncounted())
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout in {"torch is not loaded\n", "needs Linux on x86-64 or aarch64\n"}


@pytest.fixture(scope="module")
def core() -> ModuleType:
    """The C core, once torch is loaded and has allocated for the first time."""
    if CORE not in available_recorders():
        pytest.skip("the C core is not built: nothing is counted without it")
    if sys.platform != "linux":
        pytest.skip("allocations are counted on Linux only")
    import torch

    torch.empty(1)
    return load(CORE)


@pytest.fixture
def recorder(core: ModuleType) -> Iterator[Any]:
    """A recorder that is on, while allocations are counted."""
    recorder = core.Recorder()
    recorder.start()
    assert core.count_allocations() is None
    assert core.why_tensors_are_uncounted() is None
    yield recorder
    core.stop_counting_allocations()
    recorder.stop()


@pytest.mark.torch
def test_a_tensor_counts_with_its_bytes_in_every_scope_around_it(recorder: Any) -> None:
    import torch

    torch.empty(7)
    with recorder.scope("outer"):
        torch.empty(1_000_000)
        with recorder.scope("inner"):
            torch.empty(10)
            torch.empty(20)
        with recorder.scope("idle"):
            pass
    assert allocated(recorder) == {
        ("outer",): (4_000_120, 3),
        ("outer", "inner"): (120, 2),
        ("outer", "idle"): (0, 0),
    }


@pytest.mark.torch
@pytest.mark.parametrize(
    ("dtype", "element_bytes"),
    [("bool", 1), ("int8", 1), ("bfloat16", 2), ("float32", 4), ("int64", 8), ("complex128", 16)],
)
def test_an_element_counts_as_large_as_its_type(recorder: Any, dtype: str, element_bytes: int) -> None:
    import torch

    with recorder.scope("a"):
        torch.empty(10, 30, dtype=getattr(torch, dtype))
    assert allocated(recorder) == {("a",): (300 * element_bytes, 1)}


@pytest.mark.torch
def test_views_and_empty_tensors_and_what_failed_are_no_allocations(recorder: Any) -> None:
    import torch

    tensor = torch.zeros(6, 4)
    with recorder.scope("a"):
        tensor.view(24)[3:].t().detach()
        torch.empty(0)
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            torch.empty(2**60, dtype=torch.uint8)
    assert allocated(recorder) == {("a",): (0, 0)}


@pytest.mark.torch
def test_the_scope_of_a_suspended_generator_counts_only_while_it_runs(recorder: Any) -> None:
    import torch

    def batches() -> Iterator[None]:
        with recorder.scope("make"):
            for _ in range(3):
                torch.empty(100)
                yield

    with recorder.scope("epoch"):
        for _ in batches():
            with recorder.scope("use"):
                torch.empty(1)
            torch.empty(10)
    assert allocated(recorder) == {
        ("epoch",): (1_332, 9),
        ("epoch", "make"): (1_200, 3),
        ("epoch", "use"): (12, 3),
    }


@pytest.mark.torch
def test_a_scope_still_open_shows_what_it_has_allocated_so_far(recorder: Any) -> None:
    import torch

    with recorder.scope("a"), recorder.scope("b"):
        torch.empty(5)
        assert allocated(recorder) == {("a",): (20, 1), ("a", "b"): (20, 1)}
        torch.empty(5)
    assert allocated(recorder) == {("a",): (40, 2), ("a", "b"): (40, 2)}


@pytest.mark.torch
def test_each_thread_counts_its_own(recorder: Any) -> None:
    import torch

    def work(elements: int) -> None:
        with recorder.scope("work"):
            torch.empty(elements)

    threads = [threading.Thread(target=work, args=(elements,)) for elements in (100, 1_000)]
    with recorder.scope("main"):
        for thread in threads:
            thread.start()
            thread.join()
        torch.empty(1)
    strands = [seen_in_strand(strand) for strand in recorder.snapshot()["strands"]]
    assert strands[0]["main",].allocated_bytes == 4
    workers = [strand["work",] for strand in strands[1:]]
    assert sum(node.allocated_bytes for node in workers) == 4_400
    assert sum(node.allocations for node in workers) == 2


@pytest.mark.torch
def test_a_snapshot_taken_by_another_thread_never_shows_more_in_a_part_than_in_the_whole(
    recorder: Any,
) -> None:
    import torch

    seen_by_other: list[dict[Path, tuple[int, int]]] = []

    def look() -> None:
        seen_by_other.append(allocated(recorder))

    with recorder.scope("outer"):
        with recorder.scope("inner"):
            torch.empty(10)
        torch.empty(1_000)
        watcher = threading.Thread(target=look)
        watcher.start()
        watcher.join()
    assert seen_by_other == [{("outer",): (40, 1), ("outer", "inner"): (40, 1)}]
    assert allocated(recorder)["outer",] == (4_040, 2)


@pytest.mark.torch
def test_threads_folded_together_add_up(recorder: Any) -> None:
    import torch

    def work() -> None:
        with recorder.scope("work"), recorder.scope("part"):
            torch.empty(10)

    with recorder.scope("main"):
        for _ in range(200):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    strands = [seen_in_strand(strand) for strand in recorder.snapshot()["strands"][1:]]
    for path in (("work",), ("work", "part")):
        assert sum(strand[path].allocated_bytes for strand in strands) == 8_000
        assert sum(strand[path].allocations for strand in strands) == 200


@pytest.mark.torch
def test_a_backward_pass_counts_in_the_thread_that_called_it(recorder: Any) -> None:
    import torch

    weight = torch.ones(1_000, requires_grad=True)
    loss = (weight * 2).sum()
    with recorder.scope("backward"):
        loss.backward()
    ((allocated_bytes, allocations),) = allocated(recorder).values()
    assert weight.grad is not None
    assert allocated_bytes >= weight.grad.nbytes == 4_000
    assert allocations >= 1


@pytest.mark.torch
def test_what_was_counted_while_the_recorder_was_on_stays_after_the_end(core: ModuleType) -> None:
    import torch

    recorder = core.Recorder()
    recorder.start()
    with recorder.scope("before"):
        torch.empty(10)
    assert allocated(recorder) == {("before",): NOT_COUNTED}
    core.count_allocations()
    with recorder.scope("while"):
        torch.empty(10)
    core.stop_counting_allocations()
    with recorder.scope("after"):
        torch.empty(10)
    recorder.stop()
    assert allocated(recorder) == {("before",): (0, 0), ("while",): (40, 1), ("after",): (0, 0)}
    recorder.reset()
    recorder.start()
    with recorder.scope("again"):
        torch.empty(10)
    recorder.stop()
    assert allocated(recorder) == {("again",): NOT_COUNTED}


@pytest.mark.torch
def test_counting_ends_with_as_many_stops_as_starts(core: ModuleType) -> None:
    import torch

    assert core.allocation_totals() is None
    core.count_allocations()
    core.count_allocations()
    before = core.allocation_totals()[0]
    core.stop_counting_allocations()
    torch.empty(25)
    bytes_so_far, calls = core.allocation_totals()[0]
    assert (bytes_so_far - before[0], calls - before[1]) == (100, 1)
    core.stop_counting_allocations()
    assert core.allocation_totals() is None
    torch.empty(25)
    core.stop_counting_allocations()
    core.count_allocations()
    assert core.allocation_totals()[0] == (bytes_so_far, calls)
    core.stop_counting_allocations()


@pytest.mark.torch
def test_counting_can_begin_and_end_any_number_of_times(core: ModuleType) -> None:
    import torch

    core.count_allocations()
    before = core.allocation_totals()[0]
    core.stop_counting_allocations()
    for _ in range(1_000):
        assert core.count_allocations() is None
        torch.empty(2)
        core.stop_counting_allocations()
        torch.empty(3)
    core.count_allocations()
    bytes_so_far, calls = core.allocation_totals()[0]
    core.stop_counting_allocations()
    assert (bytes_so_far - before[0], calls - before[1]) == (8_000, 1_000)


@pytest.mark.torch
def test_a_forked_child_goes_on_counting_by_itself(core: ModuleType, recorder: Any) -> None:
    import torch

    with recorder.scope("parent"):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            before = core.allocation_totals()[0][0]
            torch.empty(1_000)
            os.write(writer, str(core.allocation_totals()[0][0] - before).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == b"4000"
        os.close(reader)
        os.close(writer)
    assert allocated(recorder) == {("parent",): (0, 0)}
