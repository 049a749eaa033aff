"""What was allocated by operation and by line, from figures written out by hand."""

import math

import pytest
from msgspec.structs import replace

from pyrometer.analysis.allocations import AllocationResults, build_allocations
from pyrometer.record.run import Run
from tests.record.example_runs import make_allocations, make_node, make_run, make_strand, make_torch_run
from tests.report.sample_runs import allocating_run

SAMPLE = 524_288


def results_of(run: Run) -> AllocationResults:
    results = build_allocations(run)
    assert results is not None
    return results


def test_without_counting_there_are_no_results() -> None:
    assert build_allocations(make_run()) is None


def test_an_operation_has_what_its_own_code_allocated_and_no_more() -> None:
    spots = {spot.name: spot for spot in results_of(allocating_run()).spots}
    assert (spots["epoch"].bytes, spots["batch"].bytes) == (50_000_000, 40_000_000)
    assert (spots["epoch"].tensor_bytes, spots["epoch"].allocations) == (10_000_000, 100)
    assert spots["batch"].share == 40_000_000 / 160_000_000
    assert spots["batch"].bytes_per_allocation == 40_000_000 / 1_500
    assert {spot.kind for spot in spots.values()} == {"scope"}
    assert spots["batch"].allocations_per_step is None


def test_phases_and_modules_are_told_apart_and_counted_by_the_step() -> None:
    calls = make_strand(
        make_node("forward", 50, allocated=(900, 9)), make_node("model.0", 40, parent=0, allocated=(600, 6))
    )
    torch = replace(make_torch_run(), calls=(calls,))
    results = results_of(make_run(torch=torch, allocations=make_allocations()))
    assert [(spot.kind, spot.name, spot.bytes) for spot in results.spots] == [
        ("module", "model.0", 600),
        ("phase", "forward", 300),
    ]
    assert results.steps == sum(group.steps for group in torch.groups)
    assert results.spots[0].allocations_per_step == pytest.approx(6 / results.steps)


def test_an_operation_has_what_was_kept_and_held_inside_it_too() -> None:
    held = {each.name: each for each in results_of(allocating_run()).held}
    epoch, batch = held["epoch"], held["batch"]
    assert (epoch.bytes, epoch.tensor_bytes, epoch.allocations) == (90_000_000, 50_000_000, 1_600)
    assert (epoch.calls, epoch.freed_bytes, epoch.kept_bytes) == (10, 80_000_000, 10_000_000)
    assert (batch.bytes, batch.peak_bytes) == (40_000_000, 5_000_000)
    assert epoch.peak_bytes is None


def test_a_call_inside_one_of_its_name_is_not_held_twice_and_one_beside_it_is() -> None:
    memory = {"heap_allocations": 1, "freed_bytes": 0}
    outer, inner, beside = (
        replace(
            make_node("walk", 10, parent=parent), heap_bytes=size, kept_bytes=size, peak_bytes=size, **memory
        )
        for parent, size in ((None, 700), (0, 500), (None, 40))
    )
    between = replace(make_node("step", 10, parent=0), heap_bytes=0, kept_bytes=0, **memory)
    run = make_run(make_strand(outer, inner, beside, between), allocations=make_allocations())
    walk = next(each for each in results_of(run).held if each.name == "walk")
    assert (walk.calls, walk.bytes, walk.kept_bytes, walk.peak_bytes) == (2, 740, 740, 700)


def test_a_line_of_the_program_has_what_libraries_allocated_for_it() -> None:
    first, second = results_of(allocating_run()).lines
    assert (first.function, first.line, first.samples) == ("train", 14, 160)
    assert first.bytes == 160 * SAMPLE
    assert first.error_bytes == round(SAMPLE * math.sqrt(160))
    assert first.mostly_in == "Linear.forward"
    assert (second.function, second.line) == ("load", None)
    assert (second.bytes, second.large_allocations) == (4 * SAMPLE + 64_000_000, 8)
    assert second.mostly_in is None
    assert first.share + second.share == pytest.approx(1)


def test_what_has_no_line_is_told_apart() -> None:
    results = results_of(allocating_run())
    assert (results.bytes_without_python, results.bytes_missed) == (9 * SAMPLE, 2_000_000)
    assert (results.bytes, results.allocations) == (160_000_000, 45_000)
