"""Every run ever stored here stays readable: add files, never change or remove one."""

import json
from pathlib import Path

import jsonschema
import pytest

from pyrometer.analysis.results import build_results
from pyrometer.record.format import encode_run
from pyrometer.record.run import Run
from pyrometer.record.schema import schema_text
from pyrometer.store.run_files import read_run

RUNS_FOLDER = Path(__file__).parents[1] / "runs"
STORED_RUNS = sorted(path.relative_to(RUNS_FOLDER).as_posix() for path in RUNS_FOLDER.glob("*/*"))
stored_runs = pytest.mark.parametrize("name", STORED_RUNS)


def stored(name: str) -> Run:
    return read_run(RUNS_FOLDER / name)


def test_there_are_stored_runs_of_the_first_version() -> None:
    assert [name for name in STORED_RUNS if name.startswith("v1/")] == [
        "v1/allocations.json",
        "v1/classifier.json",
        "v1/counters.json",
        "v1/limits-of-the-machine.json",
        "v1/open-and-suspended.json",
        "v1/operators.json",
        "v1/recursion-and-overflow.json.gz",
        "v1/sampled.json",
        "v1/terminated-server.json",
        "v1/threads.json",
    ]


@stored_runs
def test_a_stored_run_is_readable_and_adds_up(name: str) -> None:
    results = build_results(stored(name))
    tops_ns = sum(root.total_ns for thread in results.threads for root in thread.tree.roots)
    assert sum(summary.self_ns for summary in results.scopes) == tops_ns > 0


@stored_runs
def test_a_stored_run_written_anew_fits_the_published_schema(name: str) -> None:
    jsonschema.validate(json.loads(encode_run(stored(name))), json.loads(schema_text()))


def test_the_stored_run_with_threads_shows_them_under_the_scope_that_started_them() -> None:
    results = build_results(stored("v1/threads.json"))
    workers = [thread for thread in results.threads if thread.thread_name.startswith("worker")]
    assert {thread.parent_path for thread in workers} == {
        ("train_epoch", "Batch_Processing", "Parallel_Training")
    }
    step = results["train_step"]
    assert (step.calls, step.parallel) == (480, True)
    assert step.wall_ns is not None
    assert step.wall_ns < step.total_ns
    assert step.wall_ns <= results["Parallel_Training"].total_ns


def test_the_stored_checkpoint_shows_what_was_open_and_what_was_suspended() -> None:
    run = stored("v1/open-and-suspended.json")
    results = build_results(run)
    assert run.outcome.status == "running"
    assert (results["drain"].calls, results["drain"].open_calls) == (0, 1)
    assert results["request"].suspended_ns > results["request"].total_ns
    assert run.losses[0].count == 2


def test_the_stored_run_with_recursion_counts_its_calls_all_and_its_time_once() -> None:
    results = build_results(stored("v1/recursion-and-overflow.json.gz"))
    assert results["fib"].calls == 109
    assert results["fib"].total_ns <= results["warm_up"].total_ns
    assert results["(other)"].calls == results.losses[0].count


def test_the_stored_run_with_operators_says_what_each_took_and_for_whom() -> None:
    torch = build_results(stored("v1/operators.json")).torch
    assert torch is not None
    assert torch.operators is not None
    (window,) = torch.operators.windows
    assert [row.name for row in window.rows[:2]] == ["aten::addmm", "aten::mm"]
    assert sum(row.share for row in window.rows) + window.outside_share == pytest.approx(1)
    assert [origin.module for origin in window.rows[0].origins] == ["model.layers.0", "model.layers.2"]


def test_the_stored_run_with_limits_can_be_placed_below_them() -> None:
    results = build_results(stored("v1/limits-of-the-machine.json"))
    assert results.torch is not None
    assert results.torch.roofline is not None
    assert {one.work.name: one.bound.value for one in results.torch.roofline.modules} == {
        "net.conv": "compute-bound",
        "net.norm": "memory-bound",
        "net.head": "below both",
        "net.act": "overhead-bound",
        "net.own": "not placed",
    }


def test_the_stored_run_with_samples_shows_its_functions_and_threads() -> None:
    results = build_results(stored("v1/sampled.json")).samples
    assert results is not None
    assert (results.samples, results.profiler.samples) == (141, 1)
    assert len(results.threads) == 2
    names = [function.name for function in results.functions]
    assert names[:3] == ["work", "JSONEncoder.iterencode", "JSONDecoder.raw_decode"]
    # Below itself many times, and counted once.
    count = next(function for function in results.functions if function.name == "count")
    assert count.own.cpu_ns == count.total_cpu_ns
