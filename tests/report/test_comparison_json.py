import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.analysis.comparison.model import Comparison
from pyrometer.report.comparison_json import render_comparison_json, schema_text
from tests.compared_runs import compare
from tests.report.sample_runs import HOSTILE_NAMES, main_strand, node, run_of
from tests.report.test_comparison_report import COMPARISONS, comparison_of

PUBLISHED = Path(__file__).parents[2] / "docs" / "comparison.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


def content_of(comparison: Comparison) -> dict[str, Any]:
    """The file as a program reads it, once it fits the schema."""
    text = render_comparison_json(comparison)
    assert text.isascii()
    content: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(content)
    return content


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_fits_the_schema(name: str) -> None:
    content = content_of(COMPARISONS[name]())
    assert list(content)[:2] == ["format", "version"]
    assert (content["format"], content["version"]) == ("pyrometer-comparison", 1)


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text()
    printed = subprocess.run(
        [sys.executable, "-m", "pyrometer.report.comparison_json"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == schema_text()


def test_programs_find_the_verdict_its_doubt_and_all_rows() -> None:
    content = content_of(COMPARISONS["one-run"]())
    assert (content["level"], content["verdict"], content["doubt"]) == (
        "comparable",
        "cannot tell",
        "few runs",
    )
    [modules] = [table for table in content["tables"] if table["kind"] == "modules"]
    rows = {row["name"]: row for row in modules["rows"]}
    first = rows["net.first"]
    assert modules["rows"][first["parent"]]["name"] == "net"
    assert first["calls"]["verdict"] == "more"
    assert first["calls"]["relative"] == 1.0
    assert modules["explained"] + modules["unexplained"] == pytest.approx(
        modules["whole"]["after"] - modules["whole"]["before"]
    )


def test_a_judged_change_has_its_interval() -> None:
    content = content_of(COMPARISONS["many-runs"]())
    assert (content["verdict"], content["doubt"]) == ("slower", None)
    low, high = content["metrics"][0]["change"]["interval"]
    assert low <= content["metrics"][0]["change"]["relative"] <= high


def test_a_refused_comparison_names_the_facts_and_has_no_figures() -> None:
    content = content_of(COMPARISONS["refused"]())
    assert content["level"] == "refused"
    assert [one["name"] for one in content["differences"]] == ["code", "inputs"]
    assert (content["metrics"], content["tables"], content["functions"]) == ([], [], [])


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_is_kept_as_it_is(name: str) -> None:
    content = content_of(comparison_of(name))
    assert content["after"]["program"] == name


def test_a_tree_thousands_of_scopes_deep_is_no_trouble() -> None:
    deep = run_of(
        main_strand(
            *(node("down", None if depth == 0 else depth - 1, [10_000 - depth]) for depth in range(5_000))
        ),
        profiled_ns=20_000,
    )
    content = content_of(compare(deep, deep))
    assert len(content["tables"][0]["rows"]) == 5_000
