import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

from pyrometer.record.format import encode_run
from pyrometer.record.run import Run
from pyrometer.record.schema import schema_text
from tests.record.example_runs import any_runs, make_run

PUBLISHED = Path(__file__).parents[2] / "docs" / "run.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


def test_the_published_schema_is_current() -> None:
    command = [sys.executable, "-m", "pyrometer.record.schema"]
    current = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert PUBLISHED.read_text(encoding="utf-8") == current, (
        f"write it anew: python -m pyrometer.record.schema > {PUBLISHED}"
    )


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


@given(any_runs())
def test_every_run_fits_the_schema(run: Run) -> None:
    VALIDATOR.validate(json.loads(encode_run(run)))


@pytest.mark.parametrize(
    ("field", "value"), [("version", 2), ("format", "other"), ("profiled_ns", -1), ("program", None)]
)
def test_a_field_that_cannot_be_does_not_fit_the_schema(field: str, value: object) -> None:
    document = {**json.loads(encode_run(make_run())), field: value}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
