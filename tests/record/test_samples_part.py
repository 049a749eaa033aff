"""The stack samples of a run: what contradicts itself is refused."""

import json
from typing import Any

import pytest
from hypothesis import given

from pyrometer.record.format import decode_run, encode_run
from pyrometer.record.samples import StackSamples
from tests.record.example_runs import (
    make_node,
    make_run,
    make_strand,
    make_torch_run,
)
from tests.record.example_samples import any_samples, make_samples
from tests.record.refusals import change, refusal

RUN = make_run(make_strand(make_node("step", 900)), torch=make_torch_run(), samples=make_samples())
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))
ORDER = "a parent comes earlier in the list"


def test_a_run_with_samples_comes_back_as_it_was_written() -> None:
    assert decode_run(encode_run(RUN)) == RUN


@given(any_samples())
def test_any_samples_come_back_as_they_were_written(samples: StackSamples) -> None:
    assert decode_run(encode_run(make_run(samples=samples))).samples == samples


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("nodes.1.0", 1, f"node 1 cannot call node 1: {ORDER}", "nodes[1]"),
        ("nodes.1.0", 3, f"node 3 cannot call node 1: {ORDER}", "nodes[1]"),
        ("nodes.0.1", 4, "there is no function 4, only 4", "nodes[0]"),
        ("observations.0.0", 4, "there is no node 4, only 4", "observations[0]"),
        ("observations.0.1", 2, "there is no thread 2, only 2", "observations[0]"),
        ("observations.1.2", [1, 0], "there is no strand 1, only 1", "observations[1].scope"),
        ("observations.1.2", [0, 1], "there is no node 1 in strand 0, only 1", "observations[1].scope"),
        ("observations.1.3", [1, 0], "there is no strand 1, only 1", "observations[1].call"),
        ("observations.1.3", [0, 3], "there is no node 3 in strand 0, only 3", "observations[1].call"),
        ("observations.1.4", 2, "there is no native function 2, only 2", "observations[1]"),
        ("observations.2.7", 1, "5 waiting and 1 native samples are more than all 5", "observations[2]"),
        ("observations.1.9", 3_001, "a thread cannot run 3001 of 3000 ns", "observations[1]"),
        ("samples", 11, "the observations count 10 samples, not 11", "samples"),
    ],
)
def test_samples_that_contradict_themselves_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"samples.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.samples.{place})"


@pytest.mark.parametrize(
    ("changed_place", "value"),
    [
        ("samples_per_s", 0),
        ("samples_per_s", 1e7),
        ("samples", -1),
        ("observations.0.5", 2**63),
        ("nodes.0", [None]),
        ("functions.0.2", None),
        ("threads", ["x"] * 8_193),
    ],
)
def test_values_that_cannot_be_are_refused(changed_place: str, value: Any) -> None:
    assert "$.samples" in refusal(change(DOCUMENT, f"samples.{changed_place}", value))


def test_samples_in_calls_of_torch_need_a_torch_part() -> None:
    document = json.loads(change(DOCUMENT, "torch", None))
    assert "there is no strand 0, only 0" in refusal(change(document, "program.name", "x"))
