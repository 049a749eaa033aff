"""The allocations of a run: what contradicts itself is refused, and what was not counted is not there."""

import json
from typing import Any

import pytest

from pyrometer.record.format import decode_run, encode_run
from tests.record.example_runs import make_allocations, make_node, make_run, make_strand
from tests.record.refusals import change, refusal

RUN = make_run(make_strand(make_node("a", 10)), allocations=make_allocations())
MAPS = "mapped_bytes, maps, mapped_shared_bytes, shared_maps, unmapped_bytes and unmaps"
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))


def test_allocations_come_back_as_they_were_written() -> None:
    assert decode_run(encode_run(RUN)) == RUN


def test_a_run_without_them_says_that_they_were_not_counted() -> None:
    assert decode_run(change(DOCUMENT, "allocations", ...)).allocations is None


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("tensor_bytes", None, "tensor_bytes and tensor_allocations must be there both or neither", ""),
        ("python_allocations", ..., "python_bytes and python_allocations must be there both or neither", ""),
        (
            "maps",
            None,
            f"{MAPS} must be there all or none",
            "",
        ),
        (
            "phases.0.tensor_bytes",
            None,
            "tensor_bytes and tensor_allocations must be there both or neither",
            ".phases[0]",
        ),
        (
            "sites.nodes.1.0",
            1,
            "node 1 cannot call node 1: a parent comes earlier in the list",
            ".sites.nodes[1]",
        ),
        ("sites.nodes.2.1", 3, "there is no function 3, only 3", ".sites.nodes[2]"),
        ("sites.sites.0.0", 3, "there is no node 3, only 3", ".sites.sites[0]"),
    ],
)
def test_allocations_that_contradict_themselves_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"allocations.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.allocations{place})"


def test_the_figures_of_a_scope_are_there_all_or_none() -> None:
    line = refusal(change(DOCUMENT, "strands.0.nodes.0.heap_bytes", 5))
    together = "heap_bytes, heap_allocations, freed_bytes and kept_bytes"
    assert line == f"train.json: {together} must be there all or none (at $.strands[0].nodes[0])"


def test_a_peak_is_of_what_was_kept() -> None:
    line = refusal(change(DOCUMENT, "strands.0.nodes.0.peak_bytes", 5))
    assert line == "train.json: peak_bytes cannot be there without kept_bytes (at $.strands[0].nodes[0])"
