import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from pyrometer.errors import RunFileError
from pyrometer.record import format as run_format
from pyrometer.record.format import decode_run, encode_part, encode_run
from pyrometer.record.run import Memory, OwnCost, Run
from tests.record.example_runs import any_runs, make_node, make_run, make_strand
from tests.record.refusals import change, refusal

RUN = make_run(
    make_strand(
        make_node("train", 900),
        make_node("step", 800, parent=0, durations_ns=[300, 500]),
        make_node("save", 50, parent=0),
    ),
    make_strand(make_node("load", 600, wall_ns=600), parent=(0, 0), thread_id=2),
)
DOCUMENT: dict[str, Any] = json.loads(encode_run(RUN))


def changed(place: str, value: Any) -> bytes:
    return change(DOCUMENT, place, value)


@given(any_runs())
def test_a_run_comes_back_as_it_was_written(run: Run) -> None:
    data = encode_run(run)
    assert decode_run(data) == run
    assert data.count(b"\n") == 1


@given(any_runs())
def test_parts_encoded_before_the_rest_are_written_as_they_would_be(run: Run) -> None:
    parts = {name: encode_part(getattr(run, name)) for name in ("torch", "samples", "allocations")}
    assert decode_run(encode_run(msgspec.structs.replace(run, **parts))) == run


def test_a_run_is_plain_json_that_says_what_it_is() -> None:
    assert (DOCUMENT["format"], DOCUMENT["version"]) == ("pyrometer-run", 1)
    assert DOCUMENT["strands"][0]["nodes"][2] == {
        "name": "save",
        "parent": 0,
        "calls": 1,
        "total_ns": 50,
        "min_ns": 50,
        "max_ns": 50,
        "buckets": [[50, 1]],
    }


def test_fields_of_later_versions_are_passed_over() -> None:
    assert decode_run(changed("weather", {"wind": [1, 2, {"from": "north"}]})) == RUN


def test_names_that_are_not_utf_8_are_written_with_question_marks() -> None:
    undecodable = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    run = decode_run(encode_run(make_run(make_strand(make_node(undecodable, 5)))))
    assert run.strands[0].nodes[0].name == "caf?.py"


def test_names_that_are_not_utf_8_may_stand_beside_parts_encoded_before() -> None:
    before = make_run(make_strand(make_node("\udcff", 5)))
    memory = Memory(peak_bytes=7, series=((0, 7),))
    run = decode_run(encode_run(msgspec.structs.replace(before, memory=encode_part(memory))))
    assert (run.strands[0].nodes[0].name, run.memory) == ("?", memory)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "train.json: the file is empty"),
        (b" \n", "train.json: the file is empty"),
        (b"import torch\n", "train.json: not JSON: invalid character (at byte 0)"),
        (b'{"format": NaN}', "train.json: not JSON: invalid character (at byte 11)"),
        (b"[1, 2]", "train.json: not a Pyrometer run: expected object, got array (at $)"),
        (b"3", "train.json: not a Pyrometer run: expected object, got int (at $)"),
        (b"{}", 'train.json: not a Pyrometer run: there is no "format": "pyrometer-run"'),
        (b'{"format":"other"}', "train.json: not a Pyrometer run: its format is 'other' (at $.format)"),
        (b'{"format":7}', "train.json: not a Pyrometer run: expected str | null, got int (at $.format)"),
        (b'{"format":"pyrometer-run"}', "train.json: the version of the format is missing (at $.version)"),
        (changed("version", 0), "train.json: there is no format version 0 (at $.version)"),
        (
            changed("version", 2),
            "train.json: written by a newer Pyrometer (format version 2, this one reads up to 1); upgrade",
        ),
        (
            b'{"format":"pyrometer-run","version":1,"recorder":"\xff"}',
            "train.json: not UTF-8: invalid start byte (at byte 50)",
        ),
        (
            encode_run(RUN).replace(b'"train"', b'"\\ud800\\ud800"'),
            "train.json: not JSON: invalid utf-16 surrogate pair (at byte 544)",
        ),
        (b'{"a":' + b"[" * 100_000, "train.json: lists or objects are nested too deeply for a run"),
    ],
)
def test_what_is_not_a_run_is_refused_by_name_and_place(data: bytes, line: str) -> None:
    assert refusal(data).startswith(line)


@pytest.mark.parametrize("length", [1, 30, 200, len(encode_run(RUN)) - 3])
def test_a_file_cut_off_says_where_it_ends(length: int) -> None:
    assert refusal(encode_run(RUN)[:length]) == (
        f"train.json: the file ends too early; it was cut off (at byte {length})"
    )


STEP = "strands.0.nodes.1"
BOTH_OR_NONE = "min_ns and max_ns must be there exactly when calls is not 0"
NOT_ASCENDING = "the buckets are not in ascending order, each one once"


@pytest.mark.parametrize(
    ("changed_place", "value", "problem", "place"),
    [
        ("recorder", 1, "expected str, got int", "$.recorder"),
        ("profiled_ns", -1, "expected int >= 0", "$.profiled_ns"),
        ("profiled_ns", 2**63, f"expected int <= {2**63 - 1}", "$.profiled_ns"),
        ("profiled_ns", 1.5, "expected int, got float", "$.profiled_ns"),
        ("profiled_ns", ..., "object missing required field profiled_ns", "$"),
        ("cost.scope_ns", 1e300, "expected float <= 1000000000000.0", "$.cost.scope_ns"),
        ("strands.0.threads", 0, "expected int >= 1", "$.strands[0].threads"),
        (f"{STEP}.name", None, "expected str, got null", "$.strands[0].nodes[1].name"),
        (f"{STEP}.parent", -1, "expected int >= 0", "$.strands[0].nodes[1].parent"),
        (
            f"{STEP}.parent",
            1,
            "node 1 cannot enclose node 1: a parent comes earlier in the list",
            "$.strands[0].nodes[1].parent",
        ),
        (
            f"{STEP}.total_ns",
            851,
            "the children's 901 ns are more than the node's own 900 ns",
            "$.strands[0].nodes[0].total_ns",
        ),
        (f"{STEP}.calls", 3, "the buckets count 2 calls, the node 3", "$.strands[0].nodes[1].buckets"),
        (f"{STEP}.min_ns", 501, "min_ns 501 is more than max_ns 500", "$.strands[0].nodes[1].min_ns"),
        (f"{STEP}.min_ns", ..., BOTH_OR_NONE, "$.strands[0].nodes[1]"),
        (f"{STEP}.max_ns", ..., BOTH_OR_NONE, "$.strands[0].nodes[1]"),
        (f"{STEP}.buckets", [[9, 1], [8, 1]], NOT_ASCENDING, "$.strands[0].nodes[1].buckets"),
        (f"{STEP}.buckets", [[9, 1], [9, 1]], NOT_ASCENDING, "$.strands[0].nodes[1].buckets"),
        (f"{STEP}.buckets", [[2_048, 2]], "expected int <= 2047", "$.strands[0].nodes[1].buckets[0][0]"),
        (f"{STEP}.buckets", [[9, 0]], "expected int >= 1", "$.strands[0].nodes[1].buckets[0][1]"),
        (f"{STEP}.buckets", [[9]], "expected array of length 2", "$.strands[0].nodes[1].buckets[0]"),
        (
            "strands.1.parent.strand",
            1,
            "strand 1 cannot start strand 1: a parent comes earlier in the list",
            "$.strands[1].parent.strand",
        ),
        ("strands.1.parent.node", 3, "strand 0 has no node 3", "$.strands[1].parent.node"),
    ],
)
def test_a_run_that_contradicts_itself_is_refused_with_the_place(
    changed_place: str, value: Any, problem: str, place: str
) -> None:
    assert refusal(changed(changed_place, value)) == f"train.json: {problem} (at {place})"


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2025-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "2025-02-03T00:00:00", "2025-02-03", ""],
)
def test_a_start_that_is_no_time_with_an_offset_is_refused(text: str) -> None:
    assert refusal(changed("started_at", text)) == (
        f"train.json: {text!r} is not an ISO 8601 time with its offset to UTC (at $.started_at)"
    )


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    data = encode_run(RUN).replace(b'"profiled_ns":1000', b'"profiled_ns":' + b"9" * 6_000)
    assert refusal(data) == "train.json: integer value out of range (at $.profiled_ns)"


def test_a_scope_without_finished_calls_has_no_shortest_call() -> None:
    node = {"name": "open", "open_calls": 1, "total_ns": 5, "min_ns": 5, "max_ns": 5}
    assert "exactly when calls is not 0" in refusal(changed("strands.1.nodes", [node]))


def test_more_nodes_than_a_run_may_have_are_refused() -> None:
    strand = make_strand(*[make_node("x", 0)] * 20_001)
    assert decode_run(encode_run(make_run(strand))) == make_run(strand)
    assert "40002 nodes are more than the 40000 a run may have" in refusal(
        encode_run(make_run(strand, strand))
    )


def test_more_values_than_a_run_may_have_are_refused_before_they_take_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_format, "MAX_VALUES", 100)
    assert "holds more than 100 values" in refusal(changed("program.argv", [""] * 200))


def test_the_cost_of_all_scopes_is_a_number_in_every_run_that_is_read() -> None:
    largest = OwnCost(scope_ns=1e12, scope_entries=2**63 - 1)
    assert largest.scopes_ns == pytest.approx(2**63 * 1e12)


def test_an_error_without_a_file_speaks_of_the_run() -> None:
    with pytest.raises(RunFileError, match=r"^run: the file is empty$"):
        decode_run(b"")
