import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from pyrometer.analysis.baseline import measure
from pyrometer.analysis.saved_baseline import SavedBaseline, add_figures, save_runs
from pyrometer.record.format import encode_run
from pyrometer.record.run import Run
from pyrometer.report.baseline_file import render_baseline, schema_text
from tests.report.sample_runs import simple_run
from tests.torch_runs import gpu_run, hostile_torch_run, inference_run, long_run, training_run

PUBLISHED = Path(__file__).parents[2] / "docs" / "baseline.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


def baseline_of(run: Run) -> SavedBaseline:
    return add_figures(None, [(run.program, measure(run, file_name="baseline.json"))])


def test_the_file_has_the_keys_of_the_document_at_its_top() -> None:
    content = json.loads(render_baseline(baseline_of(training_run())))
    assert {
        "version", "timestamp", "configuration", "system", "batch_latency_ms",
        "data_throughput_samples_per_s", "gpu_util_avg_percent", "peak_gpu_memory_gb",
        "peak_host_memory_gb", "per_batch", "aggregates",
    } <= content.keys()  # fmt: skip
    assert list(content)[:2] == ["format", "version"]
    assert content["batch_latency_ms"] == {"min": 10.0, "avg": 10.0, "p50": 10.0, "p95": 10.0, "max": 10.0}
    assert content["gpu_util_avg_percent"] is None
    [(key, configuration)] = content["configurations"].items()
    assert key == "train.py --epochs 3"
    assert configuration == {
        name: value for name, value in content.items() if name not in {"format", "version", "configurations"}
    }


@pytest.mark.parametrize("run", [training_run(), inference_run(), gpu_run(), long_run(), hostile_torch_run()])
def test_every_baseline_fits_the_schema_and_is_plain_ascii(run: Run) -> None:
    text = render_baseline(baseline_of(run))
    VALIDATOR.validate(json.loads(text))
    assert text.isascii()


def test_the_published_schema_is_current() -> None:
    command = [sys.executable, "-m", "pyrometer.report.baseline_file"]
    current = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert PUBLISHED.read_text(encoding="utf-8") == current, (
        f"write it anew: python -m pyrometer.report.baseline_file > {PUBLISHED}"
    )


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", 2), ("format", "other"), ("batch_latency_ms", None), ("peak_host_memory_gb", -1)],
)
def test_a_field_that_cannot_be_does_not_fit_the_schema(field: str, value: object) -> None:
    content = {**json.loads(render_baseline(baseline_of(training_run()))), field: value}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(content)


def saved_baseline(*runs: Run) -> SavedBaseline:
    return save_runs(None, runs, name="main", saved_at="2026-03-01T10:00:00+01:00")


@pytest.mark.parametrize(
    "runs", [(training_run(),), (simple_run(),), (simple_run(), gpu_run()), (hostile_torch_run(),)]
)
def test_a_saved_baseline_fits_the_schema_with_or_without_steps(runs: tuple[Run, ...]) -> None:
    named = [
        msgspec.structs.replace(run, program=msgspec.structs.replace(run.program, argv=("train.py", str(i))))
        for i, run in enumerate(runs)
    ]
    text = render_baseline(saved_baseline(*named))
    VALIDATOR.validate(json.loads(text))
    assert text.isascii()
    assert (json.loads(text)["name"], json.loads(text)["saved_at"]) == ("main", "2026-03-01T10:00:00+01:00")


def test_a_baseline_without_steps_still_has_the_keys_of_the_document() -> None:
    content = json.loads(render_baseline(saved_baseline(simple_run())))
    for key in (
        "batch_latency_ms", "data_throughput_samples_per_s", "gpu_util_avg_percent", "peak_gpu_memory_gb",
        "peak_host_memory_gb", "aggregates",
    ):  # fmt: skip
        assert content[key] is None
    assert content["per_batch"] == []
    assert content["configurations"] == {}


def test_a_saved_baseline_says_what_it_was_a_run_of() -> None:
    identity = json.loads(render_baseline(saved_baseline(training_run())))["identity"]
    assert identity["program"] == "train.py"
    assert identity["inputs"] == "--epochs 3"
    assert identity["cpu_flags"] is None  # not in runs made by hand


def test_each_run_stands_on_one_line() -> None:
    text = render_baseline(saved_baseline(training_run()))
    [line] = [line for line in text.splitlines() if '"format":"pyrometer-run"' in line]
    assert json.loads(line) == json.loads(encode_run(training_run()))
