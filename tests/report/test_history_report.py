"""What ``pyrometer history`` prints."""

import json
import random
from collections.abc import Callable

import pytest

from pyrometer.analysis.history import Change, Metric, PastRun, ProgramHistory, build_histories, find_changes
from pyrometer.report.history_report import render_history_json, render_program, render_programs
from pyrometer.report.screen import Screen
from tests.past_runs import MS, past_run, past_steps
from tests.report.sample_runs import HOSTILE_NAMES

SLOWER = [10 * MS + step * 10_000 for step in range(8)] + [11 * MS + step * 10_000 for step in range(8)]


def one_program(
    runs: list[PastRun], metric: Metric | None = None
) -> tuple[ProgramHistory, tuple[Change, ...]]:
    (history,) = build_histories(runs, last=30, metric=metric)
    return history, find_changes(history, shuffle=random.Random(0).shuffle)


def a_program_that_got_slower() -> list[PastRun]:
    runs = past_steps(SLOWER, torch_version="2.12.0")
    later = past_steps(SLOWER, torch_version="2.13.0", commit="fedcba9876543210", dirty=True)
    failed = past_run(started_at="2026-11-17T08:00:00.000+00:00", outcome="exception", detail="ValueError")
    return [*runs[:8], *later[8:], failed]


def test_the_history_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    runs = a_program_that_got_slower()
    check_golden("history-program.txt", render_program(*one_program(runs)))
    bare = past_run(program="prepare.py", step_p50_ns=None, samples_per_s=None, folder="data")
    programs = build_histories([*runs, bare, past_run(project="/home/ada/other")], last=30)
    check_golden("history-programs.txt", render_programs(programs, remarks=["A remark."]))


def test_json_has_the_same_figures() -> None:
    history, changes = one_program(a_program_that_got_slower())
    text = render_history_json([history], {0: changes}, unreadable=2, path="/state/history.sqlite")
    content = json.loads(text)
    assert (content["format"], content["version"], content["advisory_only"]) == ("pyrometer-history", 1, True)
    assert (content["path"], content["unreadable_rows"]) == ("/state/history.sqlite", 2)
    (program,) = content["programs"]
    assert (program["program"], program["metric"], program["kept_runs"]) == (
        "train.py --batch-size 64", "step", 17,
    )  # fmt: skip
    assert [run["step_p50_ns"] for run in program["runs"]][:16] == SLOWER
    assert program["runs"][0]["tokens_per_s"] is None
    (change,) = program["changes"]
    assert (change["from"], change["before"], change["after"]) == (
        "2026-11-09T08:00:00.000+00:00", 10_035_000, 11_035_000,
    )  # fmt: skip
    assert change["circumstances"] == ["torch 2.12.0 → 2.13.0"]


def test_changes_that_were_not_looked_for_are_null_in_json() -> None:
    history, _ = one_program(a_program_that_got_slower())
    content = json.loads(render_history_json([history], {}, unreadable=0, path=None))
    assert content["programs"][0]["changes"] is None


def test_too_few_runs_cannot_tell() -> None:
    text = render_program(*one_program(past_steps([10 * MS] * 9)))
    assert "Cannot tell: it takes 10 finished runs with the figure, and there are 9." in text


def test_no_change_is_said() -> None:
    text = render_program(*one_program(past_steps([10 * MS] * 12)))
    assert "None of 1 % or more that chance would not make as well, in 12 finished runs." in text


def test_a_figure_that_was_never_measured_is_no_zero() -> None:
    text = render_program(*one_program(past_steps([10 * MS] * 12), Metric.TOKENS))
    assert "Cannot tell: it takes 10 finished runs with the figure, and there are 0." in text
    assert "tokens/s 0" not in text


def test_every_report_says_that_it_is_advisory_only() -> None:
    history, changes = one_program(past_steps([10 * MS]))
    for text in (render_program(history, changes), render_programs([history], remarks=())):
        assert "Advisory only" in text
        assert "pyrometer compare --measure" in text.replace("\n  ", " ")


def test_older_runs_and_other_ranks_are_told() -> None:
    runs = [past_run(rank=rank) for _ in range(3) for rank in (0, 1)]
    (history,) = build_histories(runs, last=2)
    text = render_program(history, ())
    assert "1 older run is not shown: --last N shows more." in text
    assert "3 runs of other ranks are kept and not shown" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_names_are_harmless(width: int) -> None:
    screen = Screen(width=width)
    for name in HOSTILE_NAMES:
        runs = [
            past_run(
                program=name, name=name, folder=name, project=name, commit=name, detail=name, outcome=name,
                started_at=name, torch_version=f"{name}{number}", cpu_model=name, step_p50_ns=step_ns,
            )
            for number, step_ns in enumerate(SLOWER)
        ]  # fmt: skip
        history, changes = one_program([*runs, *past_steps(SLOWER, project=name, program=name, folder=name)])
        for text in (
            render_program(history, changes, screen=screen),
            render_programs([history], remarks=(), screen=screen),
        ):
            assert max(map(len, text.splitlines())) <= width
            assert not any(letter != "\n" and not letter.isprintable() for letter in text)


def test_without_unicode_it_is_drawn_in_ascii() -> None:
    history, changes = one_program(a_program_that_got_slower())
    for text in (
        render_program(history, changes, screen=Screen(ascii_only=True)),
        render_programs([history], remarks=(), screen=Screen(ascii_only=True)),
    ):
        assert text.isascii()
        assert "#######" in text


def test_runs_on_another_machine_or_version_are_marked() -> None:
    machines = ["Old CPU", "Old CPU", "New CPU", "New CPU"]
    runs = [past_run(cpu_model=cpu_model) for cpu_model in machines]
    # What a run that failed did not come to know is no other machine.
    runs.insert(
        1, past_run(outcome="exception", detail="ImportError", cpu_model="Old CPU", torch_version=None)
    )
    text = render_program(*one_program(runs))
    assert text.count("from here on: ") == 1
    assert (
        "ImportError\n2026-11-01 08:00  0123456  10.0ms  12.0ms       6400  300MiB  2.00s  finished\n" in text
    )
    assert "finished\n    from here on: processor Old CPU → New CPU\n" in text


def test_the_drawing_goes_from_the_least_to_the_most_and_is_blank_without_a_figure() -> None:
    runs = past_steps([80, 10, 45])
    runs.insert(1, past_run(outcome="signal", detail="SIGTERM"))
    assert "\n█ ▁▅  10 ns to 80 ns\n" in render_program(*one_program(runs))
