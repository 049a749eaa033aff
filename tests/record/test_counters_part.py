"""The counters of a run: what contradicts itself is refused, and 0 never stands for what was not counted."""

import json
from typing import Any

import pytest

from pyrometer.record.format import decode_run, encode_run
from tests.record.example_runs import make_counters, make_run
from tests.record.refusals import change, refusal

RUN = make_run(counters=make_counters())
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))

HARDWARE = "counters.hardware"
SIMULATED = "counters.simulated"


def test_counters_come_back_as_they_were_written() -> None:
    assert decode_run(encode_run(RUN)) == RUN


def test_an_older_run_has_none() -> None:
    assert decode_run(change(DOCUMENT, "counters", ...)).counters is None


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        (
            f"{HARDWARE}.counters.2.reason",
            ...,
            "there is neither a count nor a reason",
            "hardware.counters[2]",
        ),
        (f"{HARDWARE}.counters.0.reason", "no", "a count needs no reason", "hardware.counters[0]"),
        (
            f"{HARDWARE}.counters.0.counted_share",
            0.0,
            "there is a count, but it was never counted",
            "hardware.counters[0]",
        ),
        (f"{HARDWARE}.counters.1.name", "instructions", "an event is counted twice", "hardware.counters"),
        (
            f"{HARDWARE}.threads.1.counters.0.count",
            ...,
            "there is neither a count nor a reason",
            "hardware.threads[1].counters[0]",
        ),
        (f"{SIMULATED}.counts", ..., "there is neither a count nor a reason", "simulated"),
        (f"{SIMULATED}.reason", "none", "a count needs no reason", "simulated"),
        (f"{SIMULATED}.function_count", 1, "2 functions are more than all 1", "simulated.functions"),
        (f"{SIMULATED}.counts.3", 1_001, "i1_misses are more than instructions", "simulated.counts"),
        (f"{SIMULATED}.counts.7", 41, "ll_read_misses are more than d1_read_misses", "simulated.counts"),
        (
            f"{SIMULATED}.functions.0.2.0",
            701,
            "the functions have 1001 instructions, more than all",
            "simulated.functions",
        ),
        (
            f"{SIMULATED}.functions.1.2.4",
            51,
            "d1_read_misses are more than reads",
            "simulated.functions[1]",
        ),
    ],
)
def test_counters_that_contradict_themselves_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, changed_place, value))
    assert line == f"train.json: {problem} (at $.counters.{place})"
