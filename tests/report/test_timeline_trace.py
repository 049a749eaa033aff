"""The line of time as a trace: events nest, stand where the record has them and add up."""

import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.observed import observe
from pyrometer.record.garbage import GarbageCollections, GarbageGeneration, GarbagePause
from pyrometer.record.run import Run
from pyrometer.record.torch_run import Step
from pyrometer.report.timeline_trace import END_TO_END, render_timeline, timeline_parts
from tests.record.example_runs import any_runs
from tests.report.sample_runs import HOSTILE_NAMES, empty_run, hostile_run
from tests.report.torch_samples import large_torch_run, torch_run_named
from tests.torch_runs import MB, MS, TORCH_RUNS, evaluation_run, long_run, training_run

Event = dict[str, Any]


def collecting_run() -> Run:
    """``evaluation_run`` with two collections of garbage."""
    garbage = GarbageCollections(
        generations=(
            GarbageGeneration(collections=1, total_ns=MS, max_ns=MS),
            GarbageGeneration(),
            GarbageGeneration(collections=1, total_ns=3 * MS, max_ns=3 * MS),
        ),
        longest=(GarbagePause(5 * MS, MS, 0), GarbagePause(9 * MS, 3 * MS, 2)),
        interval_pause_ns=(4 * MS,),
    )
    return msgspec.structs.replace(evaluation_run(), garbage=garbage)


def trace_of(run: Run) -> dict[str, Any]:
    text = render_timeline(observe(run))
    assert text.isascii()
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return trace


def events_of(run: Run) -> list[Event]:
    events: list[Event] = trace_of(run)["traceEvents"]
    return events


def of_kind(events: list[Event], phase: str, category: str = "") -> list[Event]:
    return [
        event
        for event in events
        if event["ph"] == phase and (not category or category in event.get("cat", "").split(","))
    ]


def ns(event: Event) -> tuple[int, int]:
    """When it begins and ends, as a reader of the trace's microseconds sees it."""
    start, length = (1_000 * Decimal(event[key]) for key in ("ts", "dur"))
    assert start == int(start)
    assert length == int(length)
    return int(start), int(start + length)


def parents_of(events: list[Event]) -> dict[int, int | None]:
    """By the stack of open events on each track, as a viewer draws them; crossing ones fail."""
    parents: dict[int, int | None] = {}
    tracks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, event in enumerate(events):
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(index)
    for indices in tracks.values():
        opened: list[int] = []
        for index in sorted(indices, key=lambda index: (ns(events[index])[0], -ns(events[index])[1])):
            start, end = ns(events[index])
            while opened and ns(events[opened[-1]])[1] <= start:
                opened.pop()
            assert not opened or end <= ns(events[opened[-1]])[1], "two events cross"
            parents[index] = opened[-1] if opened else None
            opened.append(index)
    return parents


def test_a_step_is_an_event_where_it_was_and_as_long_as_it_was() -> None:
    steps = of_kind(events_of(training_run()), "X", "step")
    assert len(steps) == 100
    assert ns(steps[0]) == (0, 40 * MS)
    assert ns(steps[1]) == (40 * MS, 52 * MS)
    assert steps[4]["args"]["samples"] == 32
    assert "worker_ns" not in steps[4]["args"]


def test_the_warm_up_is_marked() -> None:
    steps = of_kind(events_of(training_run()), "X", "step")
    warmup = [step for step in steps if step["args"]["warm_up"]]
    assert [step["name"] for step in warmup] == ["step 0 (warm-up)", "step 1 (warm-up)", "step 2 (warm-up)"]
    assert of_kind(steps, "X", "warm-up") == warmup


def test_it_is_said_that_phases_have_no_moments() -> None:
    trace = trace_of(training_run())
    assert trace["otherData"]["phases"] == END_TO_END
    assert all(step["args"]["phases"] == END_TO_END for step in of_kind(trace["traceEvents"], "X", "step"))


@pytest.mark.parametrize("make", TORCH_RUNS.values(), ids=list(TORCH_RUNS))
def test_phases_lie_in_their_step_end_to_end_and_add_up_to_the_record(make: object) -> None:
    assert callable(make)
    run: Run = make()
    check_adds_up(run)


@given(any_runs())
def test_of_any_run_phases_add_up_to_the_record(run: Run) -> None:
    check_sums(run, events_of(run))


def check_adds_up(run: Run) -> None:
    events = events_of(run)
    parents = parents_of(events)
    inside: dict[int, list[int]] = defaultdict(list)
    for index, parent in parents.items():
        if "phase" in events[index]["cat"].split(","):
            assert parent is not None
            inside[parent].append(index)
    for parent, children in inside.items():
        at = ns(events[parent])[0]
        for child in children:
            start, end = ns(events[child])
            assert start == at
            at = end
        assert at == ns(events[parent])[1]
    check_sums(run, events)


def check_sums(run: Run, events: list[Event]) -> None:
    """By phase and by step, against the steps of the record, which are kept one by one."""
    groups = [group for group in (() if run.torch is None else run.torch.groups) if group.first]
    for track, group in enumerate(groups, start=101):
        kept = (*group.first, *group.sampled)
        own = [event for event in events if event["tid"] == track]
        steps = of_kind(own, "X", "step")
        assert sum(end - start for start, end in map(ns, steps)) == sum(step.duration_ns for step in kept)
        assert sorted(step["args"]["step"] for step in steps) == sorted(step.index for step in kept)
        phases = of_kind(own, "X", "phase")
        assert sum(end - start for start, end in map(ns, phases)) == sum(step.duration_ns for step in kept)
        # As whole nanoseconds the same stands beside it.
        assert all(
            ns(event)[1] - ns(event)[0] == event["args"]["duration_ns"] for event in own if "dur" in event
        )


def test_times_are_exact_however_long_the_run() -> None:
    run = training_run()
    assert run.torch is not None
    [group] = run.torch.groups
    late = tuple(
        Step(step.index, step.started_ns + 2**61 + 1, step.duration_ns, step.phase_ns) for step in group.first
    )
    groups = (msgspec.structs.replace(group, first=late),)
    run = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, groups=groups))
    check_adds_up(run)
    assert ns(of_kind(events_of(run), "X", "step")[0]) == (2**61 + 1, 2**61 + 1 + 40 * MS)


def test_each_kind_of_steps_has_a_track_with_its_name() -> None:
    events = of_kind(events_of(evaluation_run()), "M")
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert named == {101: "steps: training, Adam", 102: "steps: evaluation, model"}
    [process] = [event for event in events if event["name"] == "process_name"]
    assert process["args"]["name"] == "train.py"


def test_memory_and_throughput_are_counters() -> None:
    counters = of_kind(events_of(training_run()), "C")
    memory = [event for event in counters if event["name"] == "resident memory"]
    assert [event["args"]["bytes"] for event in memory][:2] == [400 * MB, 500 * MB]
    assert memory[1]["ts"] == 100_000
    rates = [event for event in counters if event["name"] == "throughput: Adam"]
    assert (rates[0]["args"], rates[-1]["args"]) == ({"samples/s": 800}, {"samples/s": 3_200})


def test_the_longest_pauses_of_the_garbage_collector_have_a_track() -> None:
    events = events_of(collecting_run())
    pauses = of_kind(events, "X", "garbage")
    assert [ns(pause) for pause in pauses] == [(5 * MS, 6 * MS), (9 * MS, 12 * MS)]
    assert [pause["name"] for pause in pauses] == ["collection of generation 0", "collection of generation 2"]
    parents_of(events)


def test_a_run_without_steps_is_a_trace_all_the_same() -> None:
    [process] = events_of(empty_run())
    assert process["name"] == "process_name"
    assert events_of(hostile_run())


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "\ud800", "x" * 100_000])
def test_a_name_is_never_more_than_text(name: str) -> None:
    run = torch_run_named(name)
    for event in events_of(run):
        assert event["name"].isprintable()
        assert len(event["name"]) < 150
    assert len(render_timeline(observe(run))) < 100_000


@given(st.text(max_size=30))
def test_whatever_the_name_the_trace_can_be_read(name: str) -> None:
    assert len(events_of(torch_run_named(name))) == len(events_of(torch_run_named("plain")))


def test_a_long_run_makes_no_larger_trace_than_one_as_long_as_is_kept() -> None:
    events = events_of(long_run())
    assert len(of_kind(events, "X", "step")) == 768
    assert len(render_timeline(observe(large_torch_run()))) < 5_000_000


def test_the_parts_are_the_text() -> None:
    observed = observe(training_run())
    assert "".join(timeline_parts(observed)) == render_timeline(observed)
