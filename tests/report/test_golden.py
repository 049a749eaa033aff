import json
from collections.abc import Callable

import pytest

from pyrometer.record.run import Run
from pyrometer.report import render_json, render_markdown, render_terminal
from tests.findings import no_findings
from tests.report.sample_runs import (
    allocating_run,
    counted_run,
    empty_run,
    hostile_run,
    layered_run,
    simple_run,
    threaded_run,
    wide_run,
)

RUNS = {
    "simple": simple_run,
    "threaded": threaded_run,
    "layered": layered_run,
    "empty": empty_run,
    "hostile": hostile_run,
    "wide": wide_run,
    "counted": counted_run,
    "allocating": allocating_run,
}

every_run = pytest.mark.parametrize("name", RUNS)


def run_named(name: str) -> Run:
    return RUNS[name]()


@every_run
def test_the_terminal_report_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"{name}.txt", render_terminal(run_named(name), findings=no_findings()))


@every_run
def test_the_markdown_report_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"{name}.md", render_markdown(run_named(name), findings=no_findings()))


@every_run
def test_the_json_report_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"{name}.json", render_json(run_named(name)))


def test_a_terminal_without_box_characters_gets_plain_ascii(
    check_golden: Callable[[str, str], None],
) -> None:
    text = render_terminal(threaded_run(), ascii_only=True, findings=no_findings())
    assert text.isascii()
    check_golden("threaded-ascii.txt", text)


@pytest.mark.parametrize("name", ["threaded", "layered"])
def test_each_thread_by_itself_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(
        f"{name}-by-thread.txt", render_terminal(run_named(name), by_thread=True, findings=no_findings())
    )
    check_golden(
        f"{name}-by-thread.md", render_markdown(run_named(name), by_thread=True, findings=no_findings())
    )


def test_a_narrow_terminal_gets_fewer_columns_and_is_told_which(
    check_golden: Callable[[str, str], None],
) -> None:
    text = render_terminal(simple_run(), width=60, findings=no_findings())
    assert "Not shown for want of width: p50, min" in text
    check_golden("simple-60-columns.txt", text)


@every_run
def test_the_json_report_has_the_same_keys_for_every_run(name: str) -> None:
    report, reference = json.loads(render_json(run_named(name))), json.loads(render_json(simple_run()))
    assert report.keys() == reference.keys()
    for part in ("program", "outcome", "own_cost", "machine", "software"):
        assert report[part].keys() == reference[part].keys()
    for part in ("scopes", "tree", "threads"):
        assert all(row.keys() == reference[part][0].keys() for row in report[part])
    for thread in report["threads"]:
        assert all(row.keys() == reference["tree"][0].keys() for row in thread["tree"])
