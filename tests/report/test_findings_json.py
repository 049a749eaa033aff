import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import observe
from pyrometer.record.run import Run
from pyrometer.report.findings_json import render_findings_json, schema_text
from tests.findings import findings_named, make_finding, make_findings, no_findings, training_findings
from tests.report.sample_runs import HOSTILE_NAMES, hostile_run
from tests.report.torch_samples import torch_run_named
from tests.targets import judged
from tests.torch_runs import TORCH_RUNS, training_run

PUBLISHED = Path(__file__).parents[2] / "docs" / "findings.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


def content_of(run: Run, findings: Findings) -> dict[str, Any]:
    """The file as a program reads it, once it fits the schema."""
    text = render_findings_json(observe(run), findings)
    assert text.isascii()
    content: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(content)
    return content


def test_the_file_says_what_it_is_and_of_which_run() -> None:
    content = content_of(training_run(), training_findings())
    assert list(content)[:2] == ["format", "version"]
    assert (content["format"], content["version"]) == ("pyrometer-findings", 1)
    assert content["program"]["argv"] == ["train.py", "--epochs", "3"]
    assert content["run"]["started_at"] == "2026-01-02T03:04:05+00:00"
    assert content["run"]["pyrometer_version"] == "0.1.0"
    assert content["verdict"].startswith("Overhead-bound")


def test_a_finding_has_its_bound_its_class_and_its_priority() -> None:
    first, *_, last = content_of(training_run(), training_findings())["findings"]
    assert first["kind"] == "tiny-operators"
    assert (first["priority"], first["gain_class"]) == ("CRITICAL", "> 10 %")
    assert first["gain"]["share"] == 0.35
    assert first["gain"]["speedup"] == pytest.approx(1 / 0.65)
    assert first["place"]["module"] == "model.fc1"
    assert first["remedies"] == [
        {
            "text": "compile the model, which makes few operators of many",
            "snippet": "model = torch.compile(model)",
            "language": "python",
        }
    ]
    assert (last["gain"], last["priority"]) == (None, "LOW")


def test_what_was_looked_for_in_vain_and_what_could_not_be_looked_for_are_there() -> None:
    content = content_of(training_run(), training_findings())
    assert content["findings_not_shown"] == 2
    assert content["clear"] == ["double-precision", "too-many-threads", "long-tail"]
    assert [missed["kind"] for missed in content["not_looked_for"]] == [
        "strided-access",
        "copies-and-casts",
        "synchronising-calls",
    ]
    [strength] = content["strengths"]
    assert strength["text"] == "hardly any time goes by outside the phases: 1.0 % of a step"
    assert content["targets"] == []


def test_targets_stand_beside_the_findings() -> None:
    targets = [judged(training_run(), "throughput", "+30%"), judged(training_run(), "tokens_per_s", 20)]
    content = json.loads(render_findings_json(observe(training_run()), no_findings(), targets))
    VALIDATOR.validate(content)
    throughput, tokens = content["targets"]
    assert throughput["low"] == pytest.approx(4_160)
    assert (throughput["unit"], throughput["met"], throughput["relative_to"]) == (
        "samples/s",
        False,
        "this run",
    )
    assert (tokens["current"], tokens["met"], tokens["reason"]) == (
        None,
        None,
        "nothing was made token by token",
    )


@pytest.mark.parametrize("make", TORCH_RUNS.values(), ids=list(TORCH_RUNS))
def test_whatever_is_found_in_a_run_fits_the_schema(make: object) -> None:
    assert callable(make)
    content_of(make(), find(observe(make())))


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "\ud800"])
def test_names_are_kept_as_they_are(name: str) -> None:
    content = content_of(torch_run_named(name), findings_named(name))
    assert content["findings"][0]["place"]["module"] == name
    assert content["program"]["name"] == name
    content_of(hostile_run(), findings_named(name))


@given(st.text(max_size=30))
def test_whatever_the_name_the_file_can_be_read(name: str) -> None:
    assert content_of(training_run(), findings_named(name))["findings"][0]["what"] == name


def test_the_published_schema_is_current() -> None:
    command = [sys.executable, "-m", "pyrometer.report.findings_json"]
    current = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert PUBLISHED.read_text(encoding="utf-8") == current, (
        f"write it anew: python -m pyrometer.report.findings_json > {PUBLISHED}"
    )


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize(
    ("key", "value"), [("version", 2), ("format", "other"), ("findings", None), ("clear", ["nonsense"])]
)
def test_a_key_that_cannot_be_does_not_fit_the_schema(key: str, value: object) -> None:
    content = {**content_of(training_run(), training_findings()), key: value}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(content)


def test_a_finding_without_evidence_does_not_fit_the_schema() -> None:
    content = content_of(training_run(), make_findings(make_finding()))
    content["findings"][0]["evidence"] = []
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(content)
