"""The text of the summary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrometer.integrations.pytest_summary import Brought, summary_lines


def brought(
    test: str, call: list[Any] | None = None, measured: list[Any] | None = None, worker: str | None = None
) -> Brought:
    return test, {"call": call, "measured": measured or [], "compared": []}, worker


def lines_of(
    *tests: Brought,
    is_profiled: bool = True,
    path: Path | None = None,
    worker_runs: Sequence[str] = (),
    width: int = 80,
) -> list[str]:
    return summary_lines(
        tests, run=None, path=path, worker_runs=worker_runs, is_profiled=is_profiled, width=width
    )


def test_the_slowest_come_first_with_what_they_allocated() -> None:
    lines = lines_of(
        brought("test_a.py::test_quick", [2_000_000, 0, 0, 0]),
        brought("test_a.py::test_slow", [3_000_000_000, 5_242_880, 12, 1_048_576]),
    )
    assert lines[:4] == [
        "2 tests, 3.00 s in their calls",
        "slowest tests            time  allocated  allocs     peak",
        "test_a.py::test_slow    3.00s    5.00MiB      12  1.00MiB",
        "test_a.py::test_quick  2.00ms         0B       0       0B",
    ]


def test_what_was_not_counted_is_a_dash_and_a_small_peak_a_bound() -> None:
    lines = lines_of(brought("a", [1_000, None, None, None]), brought("b", [900, 5_000, 5, 0]))
    assert lines[2].split() == ["a", "1.00µs", "–", "–", "–"]
    assert lines[3].split() == ["b", "900ns", "4.88KiB", "5", "<64.0KiB"]


def test_ten_tests_are_shown_and_the_others_counted() -> None:
    lines = lines_of(*(brought(f"test_{number}", [number, 0, 0, 0]) for number in range(12)))
    assert len([line for line in lines if line.startswith("test_")]) == 10
    assert "and 2 tests more" in lines


@pytest.mark.parametrize("width", [20, 80, 200])
def test_lines_fit_the_terminal_and_names_cannot_drive_it(width: int) -> None:
    name = "\x1b[31mred\n" + "very/" * 60 + "test.py::test_it"
    lines = lines_of(brought(name, [1_000, 1, 1, 1], [[name, 1_000, 1, 1, 1]]), width=width)
    assert not any("\x1b" in line or "\n" in line for line in lines)
    assert max(map(len, lines)) <= max(60, min(width, 120))
    assert any(line.startswith("\\x1b[31m") for line in lines)


def test_without_the_option_only_what_the_fixture_measured_is_told() -> None:
    lines = lines_of(brought("test_a", [5, 1, 1, 1], [["load", 1_000_000, 0, 0, 0]]), is_profiled=False)
    assert [line.split() for line in lines] == [
        ["measured", "in", "tests", "time", "allocated", "allocs", "peak"],
        ["test_a", "load", "1.00ms", "0B", "0", "0B"],
    ]


def test_workers_are_said_to_record_themselves() -> None:
    tests = [brought("a", [1, 0, 0, 0], worker="gw1"), brought("b", [1, 0, 0, 0], worker="gw0")]
    written = ["out/run-gw1.json", "out/run-gw0.json"]
    assert lines_of(*tests, path=Path("out/run.json"), worker_runs=written)[-3:] == [
        "each worker of xdist recorded itself; runs written to:",
        "  out/run-gw0.json",
        "  out/run-gw1.json",
    ]
    assert lines_of(*tests, path=Path("out/run.json"))[-1] == (
        "each worker of xdist recorded itself; no run was written"
    )
    assert lines_of(*tests)[-1] == (
        "each worker of xdist recorded itself; to see its scopes, have each write its run: "
        "--pyrometer-output run.json"
    )


def test_no_test_at_all_is_said() -> None:
    assert lines_of()[0] == "no test was called"
