"""Memory, allocations and the PyTorch part of a run: what contradicts itself is refused."""

import json
from typing import Any

import pytest

from pyrometer.record.format import decode_run, encode_run
from tests.record.example_runs import make_memory, make_node, make_run, make_strand, make_torch_run
from tests.record.refusals import change, refusal

RUN = make_run(
    make_strand(
        make_node("step", 900, allocated=(1_000, 10)),
        make_node("forward", 500, parent=0, allocated=(600, 6)),
        make_node("backward", 300, parent=0, allocated=(400, 4)),
    ),
    memory=make_memory(),
    torch=make_torch_run(),
)
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))

FORWARD = "strands.0.nodes.1"
GROUP = "torch.groups.0"
NODE_PLACE = "$.strands[0].nodes[0]"
GROUP_PLACE = "$.torch.groups[0]"
BOTH_OR_NEITHER = "must be there both or neither"


def test_a_run_with_everything_in_it_comes_back_as_it_was_written() -> None:
    assert decode_run(encode_run(RUN)) == RUN


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        (f"{FORWARD}.allocations", ..., f"allocated_bytes and allocations {BOTH_OR_NEITHER}", "[1]"),
        (f"{FORWARD}.allocated_bytes", ..., f"allocated_bytes and allocations {BOTH_OR_NEITHER}", "[1]"),
        (
            f"{FORWARD}.allocated_bytes",
            601,
            "the children's 1001 bytes are more than the node's own 1000 bytes",
            "[0].allocated_bytes",
        ),
        (
            f"{FORWARD}.allocations",
            7,
            "the children's 11 allocations are more than the node's own 10 allocations",
            "[0].allocations",
        ),
    ],
)
def test_allocations_that_do_not_add_up_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, changed_place, value))
    assert line == f"train.json: {problem} (at $.strands[0].nodes{place})"


def test_a_scope_that_was_not_counted_cannot_hold_one_that_was() -> None:
    document = json.loads(change(DOCUMENT, "strands.0.nodes.0.allocations", ...))
    line = refusal(change(document, "strands.0.nodes.0.allocated_bytes", ...))
    assert "the children's 1000 bytes are more than the node's own 0 bytes" in line


def test_memory_that_is_not_in_order_of_time_is_refused() -> None:
    line = refusal(change(DOCUMENT, "memory.series", [[0, 100], [500, 100], [499, 100]]))
    assert line == "train.json: the samples are not in order of time (at $.memory.series)"


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("kind", "resting", "'resting' is none of training, forward, generation, marked", "kind"),
        ("phases", ["data", "forward"], 'the phases must differ, and the last be "other"', "phases"),
        ("phases", ["data", "data", "other"], 'the phases must differ, and the last be "other"', "phases"),
        ("phases", [], 'the phases must differ, and the last be "other"', "phases"),
        ("phase_ns", [30, 60], "2 figures for 3 phases", "phase_ns"),
        ("phase_ns", [30, 54, 7], "the phases take 91 ns in all, total_ns is 90", "phase_ns"),
        ("phase_bytes", [300], "1 figures for 3 phases", "phase_bytes"),
        ("phase_allocations", [1, 2, 3, 4], "4 figures for 3 phases", "phase_allocations"),
        ("max_ns", 29, "3 steps of 20 to 29 ns cannot take 90 ns", "total_ns"),
        ("min_ns", 31, "3 steps of 31 to 40 ns cannot take 90 ns", "total_ns"),
        ("steps", 4, "the buckets count 3 steps, the group 4", "buckets"),
        (
            "buckets",
            [[30, 2], [20, 1]],
            "the buckets are not in ascending order, each one once",
            "buckets",
        ),
        ("grad_forward_calls", 4, "4 are more than the 3 of forward_calls", "grad_forward_calls"),
        ("first.1.0", 0, "the steps are not in order, each one once", ""),
        ("sampled.0.0", 1, "the steps are not in order, each one once", ""),
        ("first.0.3", [5, 13], "2 figures for 3 phases", "first[0].phase_ns"),
        (
            "sampled.0.3",
            [15, 23, 3],
            "the phases take 41 ns in all, duration_ns is 40",
            "sampled[0].phase_ns",
        ),
        ("min_ns", 21, "20 ns are not from 21 to 40", "first[0].duration_ns"),
        ("max_ns", 39, "40 ns are not from 20 to 39", "sampled[0].duration_ns"),
    ],
)
def test_steps_that_contradict_themselves_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"{GROUP}.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.torch.groups[0]{place and '.'}{place})"


@pytest.mark.parametrize("field", ["phase_bytes", "phase_allocations"])
def test_bytes_by_phase_without_their_calls_are_refused(field: str) -> None:
    line = refusal(change(DOCUMENT, f"{GROUP}.{field}", ...))
    assert line == f"train.json: phase_bytes and phase_allocations {BOTH_OR_NEITHER} (at $.torch.groups[0])"


def test_more_steps_kept_than_there_were_are_refused() -> None:
    document = json.loads(change(DOCUMENT, f"{GROUP}.steps", 2))
    document = json.loads(change(document, f"{GROUP}.buckets", [[40, 2]]))
    document = json.loads(change(document, f"{GROUP}.max_ns", 45))
    assert refusal(change(document, f"{GROUP}.max_ns", 45)) == (
        "train.json: 3 are more than the 2 of steps (at $.torch.groups[0])"
    )


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("window", [3, 3], "the window [3, 3] holds no step", "window"),
        ("timed_backward_passes", 4, "4 are more than the 3 of backward_passes", "timed_backward_passes"),
        ("gpu.utilisation_percent", 100.5, "100.5 is not from 0 to 100", "gpu.utilisation_percent"),
        (
            "calls.0.nodes.2.total_ns",
            51,
            "the children's 51 ns are more than the node's own 50 ns",
            "calls[0].nodes[1].total_ns",
        ),
        (
            "calls.0.nodes.2.parent",
            2,
            "node 2 cannot enclose node 2: a parent comes earlier in the list",
            "calls[0].nodes[2].parent",
        ),
        (
            "optimizers.0.implementation",
            "magic",
            "'magic' is none of fused, foreach, for-loop",
            "optimizers[0].implementation",
        ),
        (
            "generations.0.cached_passes",
            6,
            "6 are more than the 5 of passes",
            "generations[0].cached_passes",
        ),
        (
            "generations.0.positions.0.0",
            7,
            "the bins must follow each other, each from low to high",
            "generations[0].positions",
        ),
        (
            "generations.0.positions.1.0",
            6,
            "the bins must follow each other, each from low to high",
            "generations[0].positions",
        ),
        ("generations.0.tokens", 9, "10 are more than the 9 of tokens", "generations[0].positions"),
        ("generations.0.total_ns", 49, "50 are more than the 49 of total_ns", "generations[0].positions"),
    ],
)
def test_a_torch_part_that_contradicts_itself_is_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"torch.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.torch.{place})"


def test_more_optimizers_than_are_kept_apart_are_refused() -> None:
    many = [{"name": "SGD", "kind": "SGD"}] * 17
    assert refusal(change(DOCUMENT, "torch.optimizers", many)).endswith("(at $.torch.optimizers)")


def test_an_older_run_says_nothing_of_types_and_optimizers() -> None:
    document = json.loads(change(DOCUMENT, "torch.optimizers", ...))
    for field in ("dtype", "input_dtype"):
        document = json.loads(change(document, f"torch.modules.0.{field}", ...))
    torch = decode_run(json.dumps(document).encode()).torch
    assert torch is not None
    assert torch.optimizers == ()
    assert (torch.modules[0].dtype, torch.modules[0].input_dtype) == (None, None)


def test_more_nodes_of_torch_than_a_run_may_have_are_refused() -> None:
    nodes = [{"name": "x"}] * 20_001
    strand = {"thread_id": 1, "thread_name": "main", "nodes": nodes}
    assert "40002 nodes are more than the 40000" in refusal(change(DOCUMENT, "torch.calls", [strand] * 2))


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("kind", "resting", "'resting' is none of training, forward, generation, marked", ".kind"),
        ("steps", 0, "a window holds at least one step", ".steps"),
        ("covered_ns", 121, "the operators take 120 ns in all, covered_ns is 121", ".operators"),
        (
            "thread_covered_ns",
            121,
            "121 ns are more than were covered in all, or than the steps took",
            ".thread_covered_ns",
        ),
        ("events", 7, "the operators were called 6 times, events is 7", ".operators"),
        ("operators.0.total_ns", 89, "90 ns are more than its total of 89", ".operators[0].self_ns"),
        ("operators.0.shaped_calls", 1, "2 calls are more than the 1 looked at", ".operators[0].shapes"),
        (
            "origins.0.0",
            "magic",
            "'magic' is none of call, backward, accumulation",
            ".origins[0].kind",
        ),
        ("uses.0.0", 2, "there is no operator 2, or no origin 0", ".uses[0]"),
        ("uses.1.1", 3, "there is no operator 0, or no origin 3", ".uses[1]"),
        ("uses.1.2", 2, "its uses are 5 calls of 90 ns, not 4 of 90", ".operators[0]"),
        ("uses.2.3", 29, "its uses are 2 calls of 29 ns, not 2 of 30", ".operators[1]"),
    ],
)
def test_operators_that_do_not_add_up_are_refused(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    line = refusal(change(DOCUMENT, f"torch.operators.windows.0.{changed_place}", value))
    assert line == f"train.json: {problem} (at $.torch.operators.windows[0]{place})"
