"""The list of baselines, and one of them, as they are read."""

import json
from collections.abc import Sequence

import msgspec
import pytest

from pyrometer.analysis.saved_baseline import SavedBaseline, save_runs
from pyrometer.errors import UsageError
from pyrometer.record.run import GitState, Run
from pyrometer.report.baseline_listing import (
    render_baseline_list,
    render_baseline_list_json,
    render_baseline_terminal,
)
from pyrometer.report.screen import Screen
from tests.report.sample_runs import simple_run
from tests.torch_runs import hostile_torch_run, training_run

replace = msgspec.structs.replace


def saved(*runs: Run) -> SavedBaseline:
    return save_runs(None, runs, name="main", saved_at="2026-03-01T10:00:00+01:00")


def committed(run: Run, *arguments: str) -> Run:
    git = GitState(commit="0123456789abcdef" + "0" * 24, dirty=True)
    return replace(run, program=replace(run.program, argv=("train.py", *arguments), git=git))


def listed(
    baselines: Sequence[tuple[str, SavedBaseline | Exception]], *, width: int = 80, ascii_only: bool = False
) -> str:
    screen = Screen(width=width, ascii_only=ascii_only)
    return render_baseline_list(baselines, folder="/home/ada/benchmarks", screen=screen)


def test_each_configuration_has_a_row_with_its_figures() -> None:
    baseline = saved(committed(training_run(), "--fast"), committed(simple_run()))
    lines = listed([("main", baseline)]).splitlines()
    assert lines[0] == "Baselines in /home/ada/benchmarks"
    headings = ["name", "program", "commit", "steps", "a", "step", "samples/s", "peak", "runs", "saved"]
    assert lines[2].split() == headings
    assert lines[4].split()[:6] == ["main", "train.py", "012345678+", "97", "10.0", "ms"]
    assert lines[4].split()[6] == "3,200"
    assert lines[4].split()[-2:] == ["1", "2026-03-01"]
    assert lines[5].strip() == "--fast"
    # Nothing was measured of it, and nothing is 0.
    assert lines[6].split() == ["main", "train.py", "012345678+", "–", "–", "–", "–", "1", "2026-03-01"]


def test_without_a_baseline_it_says_how_to_save_one() -> None:
    assert "pyrometer baseline save NAME RUN" in " ".join(listed([]).split())


def test_a_file_that_cannot_be_read_is_named_below_the_others() -> None:
    text = listed([("main", saved(training_run())), ("old", UsageError("old.json cannot be read"))])
    assert text.splitlines()[-2:] == ["Cannot be read", "- old.json cannot be read"]


def test_the_list_for_programs_has_null_for_what_was_not_measured() -> None:
    [main, old] = json.loads(
        render_baseline_list_json(
            [("main", saved(training_run(), committed(simple_run()))), ("old", UsageError("damaged"))]
        )
    )
    assert [one["ms_per_step"] for one in main["configurations"]] == [10.0, None]
    assert (main["name"], main["saved_at"], main["problem"]) == ("main", "2026-03-01T10:00:00+01:00", None)
    assert (old["problem"], old["configurations"]) == ("damaged", [])


def shown(baseline: SavedBaseline, *, width: int = 80) -> str:
    return render_baseline_terminal(
        baseline, name="main", place="/home/ada/benchmarks/main.json", screen=Screen(width=width)
    )


def test_a_baseline_is_shown_with_figures_facts_and_commands() -> None:
    run = committed(training_run(), "--fast")
    flags = replace(run.machine, cpu_flags=("avx", "avx2"))
    text = shown(saved(replace(run, machine=flags)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "Baseline main, saved 2026-03-01 10:00:00+01:00",
        "train.py --fast",
        "a step 10.0 ms on average",
        "steps 97, after the warm-up",
        "throughput 3,200 samples/s",
        "runs 1",
        "commit 0123456789abcdef000000000000000000000000",
        "uncommitted changes yes",
        "arguments --fast",
        "Python CPython 3.11.9",
        "BLAS not recorded",
        "CPU flags 2, listed by --json",
        "pyrometer run --no-report -o run.json train.py --fast",
        "pyrometer baseline save main run.json",
    ):
        assert line in lines
    assert "proves nothing about a later one" in " ".join(lines)


def test_what_a_program_without_steps_has_not_is_called_not_measured() -> None:
    assert "a step            not measured" in shown(saved(simple_run()))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_than_asked_for_or_acts_on_the_terminal(width: int) -> None:
    hostile = replace(
        hostile_torch_run(),
        program=replace(
            hostile_torch_run().program,
            name="\x1b[31mred\n",
            argv=("\x1b[31mred\n", "\x1b]0;title\x07", "a\nb", "\u202e", "x" * 300),
        ),
    )
    for text in (shown(saved(hostile), width=width), listed([("main", saved(hostile))], width=width)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert max(map(len, text.splitlines())) <= width


def test_a_terminal_without_such_characters_gets_others() -> None:
    assert listed([("main", saved(simple_run()))], ascii_only=True).isascii()
