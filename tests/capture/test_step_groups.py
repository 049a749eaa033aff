"""Finished steps added up: what comes in while others are added or told is neither lost nor mixed in."""

import pytest

from pyrometer.capture import step_groups
from pyrometer.capture.step_groups import StepGroups, Stretch, Taken
from pyrometer.stats.buckets import bucket_of


def _step(kind: str, label: str) -> Stretch:
    step = Stretch()
    step.kind, step.label = kind, label
    return step


def _taken(ns: int) -> Taken:
    return ns, (ns, 2 * ns), (0, ns), (0, 1)


def test_a_step_that_ends_while_another_is_added_is_added_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = StepGroups(phases=["other", "forward"], counts_bytes=True, origin_ns=0)
    inner = [_taken(100)]

    def interrupted(duration_ns: int) -> int:
        while inner:  # as a __del__ of the program's may, that calls a model
            groups.add(_step("forward", "model"), [inner.pop()], began_ns=0, keep=True)
        return bucket_of(duration_ns)

    monkeypatch.setattr(step_groups, "bucket_of", interrupted)
    groups.add(_step("training", "SGD"), [_taken(10)], began_ns=0, keep=True)
    training, forward = groups.records()
    assert (training.steps, training.total_ns, training.phase_ns) == (1, 30, (20, 10))
    assert (forward.steps, forward.total_ns, forward.phase_ns) == (1, 300, (200, 100))
    assert [step.index for group in (training, forward) for step in group.first] == [0, 1]


def test_a_step_that_ends_while_a_record_is_made_is_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = StepGroups(phases=["other", "forward"], counts_bytes=True, origin_ns=0)
    groups.add(_step("training", "SGD"), [_taken(10)], began_ns=0, keep=True)
    make_record = step_groups._Group.record
    inner = [_taken(100)]

    def interrupted(*given: object, **named: object) -> object:
        while inner:
            groups.add(_step("forward", "model"), [inner.pop()], began_ns=0, keep=True)
        return make_record(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(step_groups._Group, "record", interrupted)
    assert [group.label for group in groups.records()] == ["SGD"]
    assert [group.label for group in groups.records()] == ["SGD", "model"]
