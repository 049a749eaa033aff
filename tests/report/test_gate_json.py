import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import jsonschema
import msgspec
import pytest

from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import value_of
from pyrometer.record.trials import ProcessTurns, Trials
from pyrometer.report.gate_json import render_gate_json, schema_text
from tests.report.sample_runs import HOSTILE_NAMES
from tests.report.test_gate_report import GATES, SECOND, judged_lane, named, net
from tests.trial_pairs import pairs_of

PUBLISHED = Path(__file__).parents[2] / "docs" / "gate.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


def content_of(lanes: Sequence[GatedLane]) -> dict[str, Any]:
    """The file as a program reads it, once it fits the schema."""
    text = render_gate_json(lanes)
    assert text.isascii()
    content: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(content)
    return content


@pytest.mark.parametrize("name", GATES)
def test_every_gate_fits_the_schema(name: str) -> None:
    content = content_of(GATES[name]())
    assert list(content)[:2] == ["format", "version"]
    assert (content["format"], content["version"]) == ("pyrometer-gate", 1)
    assert content["verdict"] == name.partition("-")[0].upper()


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text()
    printed = subprocess.run(
        [sys.executable, "-m", "pyrometer.report.gate_json"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == schema_text()


def test_a_file_of_another_version_or_format_does_not_fit() -> None:
    content = content_of(GATES["pass"]())
    assert not VALIDATOR.is_valid(content | {"version": 2})
    assert not VALIDATOR.is_valid(content | {"format": "pyrometer-run"})


def test_parts_and_the_rest_are_the_whole() -> None:
    (lane,) = content_of(GATES["fail"]())["lanes"]
    assert [table["kind"] for table in lane["tables"]] == ["modules", "scopes"]
    for table in lane["tables"]:
        for side in ("before", "after"):
            parts = sum(row["own"][side] for row in table["rows"])
            assert parts + table["rest"][side] == pytest.approx(table["whole"][side])
        assert table["explained"] + table["unexplained"] == pytest.approx(table["whole"]["absolute"])


def test_programs_find_the_verdict_its_reason_and_the_place() -> None:
    (lane,) = content_of(GATES["fail"]())["lanes"]
    assert (lane["metric"], lane["verdict"], lane["reason"]) == ("latency", "FAIL", "slower than allowed")
    low, high = lane["interval"]
    assert low < lane["change"] < high
    assert lane["after"] == pytest.approx(lane["before"] * (1 + lane["change"]))
    (place,) = lane["places"]
    assert (place["path"][-1], place["verdict"]) == ("model.first", "slower")
    assert place["after_ns"] - place["before_ns"] == pytest.approx(80_000, rel=0.01)


def test_figures_of_a_benchmark_are_those_of_a_call() -> None:
    lanes = GATES["fail-benchmarks"]()
    for lane, told in zip(lanes, content_of(lanes)["lanes"], strict=True):
        steps = [value_of(pair.baseline, lane.metric) or 0 for pair in lane.trials.pairs]
        assert told["before"] == pytest.approx(median(steps) / lane.trials.plan.calls_per_step)
        assert told["before"] < 1_000_000 / 100


def test_a_place_that_is_called_otherwise_or_new_says_so() -> None:
    (lane,) = content_of(GATES["fail-by-calls"]())["lanes"]
    place = lane["places"][0]
    assert (place["path"][-1], place["verdict"]) == ("model.second", "called otherwise")
    assert (place["calls_before"], place["calls_after"]) == (1, 2)

    def without_second(process: ProcessTurns) -> ProcessTurns:
        kept = tuple(node for node in process.nodes if node.path != SECOND)
        return msgspec.structs.replace(process, nodes=kept)

    pairs = [
        msgspec.structs.replace(pair, baseline=without_second(pair.baseline))
        for pair in pairs_of(10, net(second_calls=2), baseline=net())
    ]
    (new,) = content_of([judged_lane(pairs)])["lanes"]
    assert [(place["path"][-1], place["verdict"]) for place in new["places"]] == [("model.second", "new")]


def test_a_void_gate_has_no_places_and_no_verdict_in_its_tables() -> None:
    (lane,) = content_of(GATES["inconclusive-control"]())["lanes"]
    assert lane["places"] == []
    owns = [row["own"] for table in lane["tables"] for row in table["rows"]]
    assert {own["verdict"] for own in owns} == {"cannot tell"}
    assert {table["whole"]["doubt"] for table in lane["tables"]} == {"control"}


def test_benchmarks_of_one_side_and_what_was_not_checked_are_listed() -> None:
    content = content_of(GATES["fail-benchmarks-of-one-side"]())
    assert content["new"] == ["bench_parse[size=10]", "bench_parse[size=100]"]
    assert content["gone"] == ["bench_scan"]
    assert content["lanes"][1]["unchecked"] == ["whether bench_tokenize returns the same: it returns None"]
    content = content_of(GATES["fail"]())
    assert (content["new"], content["gone"], content["lanes"][0]["unchecked"]) == ([], [], [])


def test_what_was_not_measured_is_null() -> None:
    for lane in content_of(GATES["inconclusive-not-measured"]())["lanes"]:
        assert (lane["before"], lane["after"], lane["change"], lane["interval"]) == (None, None, None, None)
    (few,) = content_of(GATES["inconclusive-few"]())["lanes"]
    assert few["interval"] is None
    assert few["change"] is not None


def test_every_value_that_was_measured_can_be_read_back() -> None:
    (lane,) = GATES["fail"]()
    (told,) = content_of([lane])["lanes"]
    assert msgspec.convert(told["trials"], Trials) == lane.trials


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "\udcff.py"])
def test_a_name_is_kept_as_it_is(name: str) -> None:
    content = content_of(named(name))
    assert [lane["subject"] for lane in content["lanes"]] == [name] * 2
    assert content["lanes"][0]["trials"]["program"] == name
