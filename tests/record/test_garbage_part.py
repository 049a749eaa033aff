"""The collections of garbage in a run: what contradicts itself is refused."""

import json
from typing import Any

import pytest

from pyrometer.record.format import decode_run, encode_run
from tests.record.example_runs import make_garbage, make_run
from tests.record.refusals import change, refusal

RUN = make_run(garbage=make_garbage())
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))


def test_collections_come_back_as_they_were_written() -> None:
    assert decode_run(encode_run(RUN)) == RUN


def test_an_older_run_has_none() -> None:
    assert decode_run(change(DOCUMENT, "garbage", ...)).garbage is None


def test_all_generations_together_are_their_sums() -> None:
    garbage = make_garbage()
    assert (garbage.collections, garbage.timed_collections, garbage.total_ns) == (4, 3, 75)


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        (
            "generations.0.timed_collections",
            4,
            "4 are more than the 3 of collections",
            "generations[0].timed_collections",
        ),
        (
            "generations.0.total_ns",
            21,
            "2 collections of at most 10 ns cannot take 21 ns",
            "generations[0].total_ns",
        ),
        (
            "generations.0.max_ns",
            16,
            "2 collections of at most 16 ns cannot take 15 ns",
            "generations[0].total_ns",
        ),
        ("generations.1.collected", 1, "no collection, but objects that one has found", "generations[1]"),
        ("longest.0.1", 11, "a collection took 11 ns, but none more than 10", "generations[0]"),
        ("longest.0.2", 1, "1 of its collections took 10 ns, all 0 took 0", "generations[1]"),
        (
            "longest",
            [[0, 8, 0], [1, 8, 0]],
            "2 of its collections took 16 ns, all 2 took 15",
            "generations[0]",
        ),
        ("longest.0.0", 1_021, "the pauses are not in order of time", "longest"),
        (
            "interval_pause_ns",
            [15, 61],
            "the intervals have 76 ns, the generations 75",
            "interval_pause_ns",
        ),
    ],
)
def test_collections_that_contradict_themselves_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"garbage.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.garbage.{place})"


@pytest.mark.parametrize(
    ("changed_place", "value"),
    [
        ("generations", []),
        ("generations", [{}] * 4),
        ("longest.0.2", 3),
        ("longest.0.2", -1),
        ("longest", [[0, 0, 0]] * 65),
        ("interval_ns", 0),
        ("interval_pause_ns", [0] * 513),
        ("generations.0.collected", -1),
    ],
)
def test_values_out_of_bounds_are_refused(changed_place: str, value: Any) -> None:
    assert "(at $.garbage." in refusal(change(DOCUMENT, f"garbage.{changed_place}", value))
