"""The baseline as a page."""

import dataclasses
import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given, settings

from pyrometer.analysis.observed import observe
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report.baseline_page import render_baseline_page
from tests.report.sample_runs import simple_run
from tests.report.test_levels import section_of, table_rows
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse
from tests.report.torch_samples import phases_named, torch_run_named
from tests.torch_runs import TRAINING_STEP_NS, gpu_run, group_of, no_steps_run, training_run, warming_up


def larger_run() -> Run:
    """``training_run`` with batches of 64 that take a tenth longer, and ten of them."""
    run = training_run()
    assert run.torch is not None
    step = {name: duration_ns * 11 // 10 for name, duration_ns in TRAINING_STEP_NS.items()}
    group = group_of("training", "Adam", warming_up(step, 13), samples=64)
    program = msgspec.structs.replace(run.program, argv=("train.py", "--batch-size", "64"))
    return msgspec.structs.replace(
        run, program=program, torch=msgspec.structs.replace(run.torch, groups=(group,))
    )


def test_the_baseline_of_two_configurations_looks_as_agreed(
    check_golden: Callable[[str, str], None],
) -> None:
    check_golden("baseline-page.md", render_baseline_page([training_run(), larger_run()]))


def test_the_phases_of_each_configuration_add_up_to_the_batch() -> None:
    text = render_baseline_page([training_run(), larger_run()])
    for label in ("32 × 97", "64 × 10"):
        *phases, batch = table_rows(section_of(text, f"## Configuration {label}"), "phase | ms")
        for column in (1, 2):
            parts = [int(row[column].replace(".", "")) for row in phases]
            assert sum(parts) == int(batch[column].replace(".", ""))
        assert batch[2] == "100.0"


def test_configurations_stand_beside_each_other_with_the_figures_of_their_tables() -> None:
    text = render_baseline_page([training_run(), larger_run()])
    rows = {row[0]: row[1:] for row in table_rows(text, "figure | 32 × 97 | 64 × 10")}
    assert rows["latency, average, ms"] == ["10.000", "11.000"]
    assert rows["forward, ms (%)"] == ["3.40 (34.0)", "3.74 (34.0)"]
    # 64 samples in 11 ms against 32 in 10.
    assert "- 64 × 10 against 32 × 97: 1.10 × the latency, 1.82 × the samples a second." in text


def test_a_run_that_was_observed_makes_the_same_page_and_is_not_worked_out_again() -> None:
    observed = observe(training_run())
    assert render_baseline_page([observed]) == render_baseline_page([training_run()])
    with pytest.raises(UsageError, match="no step"):
        render_baseline_page([dataclasses.replace(observed, torch=observe(no_steps_run()).torch)])


def test_one_configuration_is_compared_with_none() -> None:
    assert "beside each other" not in render_baseline_page([training_run()])


def test_the_same_configuration_twice_can_be_told_apart() -> None:
    text = render_baseline_page([training_run(), training_run()])
    assert "## Configuration 32 × 97\n" in text
    assert "## Configuration 32 × 97 (2)\n" in text


def test_a_gpu_has_figures_and_its_absence_is_said() -> None:
    assert "| GPU memory, peak | no GPU (CPU only) | – |" in render_baseline_page([training_run()])
    assert re.search(r"\| GPU memory, peak \| [\d.]+ GiB", render_baseline_page([gpu_run()]))


def test_targets_and_checked_lists_are_there_for_each_configuration() -> None:
    text = render_baseline_page([training_run(), larger_run()])
    targets = section_of(text, "## Targets")
    assert targets.count("| +30 % |") == targets.count("| -20 % |") == targets.count("| +100 % |") == 2
    assert section_of(text, "## Exit criteria").count("at least 10 steps are measured") == 2
    assert section_of(text, "## Deliverables").count("latency of a batch") == 2


def test_it_says_how_to_measure_each_configuration_again() -> None:
    commands = section_of(render_baseline_page([training_run(), larger_run()]), "## Measure it again")
    assert commands.count("pyrometer run --baseline benchmarks/baseline.json") == 2
    assert "--batch-size 64" in commands


def test_a_run_without_steps_has_no_baseline() -> None:
    with pytest.raises(UsageError, match="no step of a PyTorch program"):
        render_baseline_page([simple_run()])
    with pytest.raises(UsageError, match="one run or more"):
        render_baseline_page([])


@given(name=NASTY_TEXT)
@example(name=" ")
@example(name="<script>")
@settings(max_examples=25)
def test_whatever_the_names_the_page_holds_no_html_and_keeps_its_shape(name: str) -> None:
    def shape(run_name: str) -> list[str]:
        run = torch_run_named(run_name, phases=phases_named(name))
        return kinds_of(parse(render_baseline_page([run])))

    assert shape(name) == shape("plain")
