"""What reports say of sampled stacks."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyrometer.record.run import Run
from pyrometer.record.samples import Function, NativeFunction, Observation, StackNode, StackSamples
from pyrometer.report import render_json, render_markdown, render_terminal
from tests.findings import no_findings
from tests.record.example_runs import any_runs
from tests.report.sample_runs import empty_run, simple_run
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse
from tests.sampled_runs import STACKS, THREADS, Seen, stack_samples, with_samples
from tests.torch_runs import training_run

PHASED = tuple(
    Seen(stack=seen.stack, native=seen.native, python=seen.python, leaf=seen.leaf, call=(0, 0))
    for seen in STACKS
    if "forward" in seen.stack
)


def sampled_run() -> Run:
    return with_samples(empty_run(), stack_samples(*STACKS, threads=THREADS))


def sampled_training_run() -> Run:
    others = (seen for seen in STACKS if "forward" not in seen.stack)
    return with_samples(training_run(), stack_samples(*PHASED, *others, threads=THREADS))


RUNS: dict[str, Callable[[], Run]] = {
    "sampled": sampled_run,
    "sampled-training": sampled_training_run,
    "sampled-waiting": lambda: with_samples(empty_run(), stack_samples(Seen(stack="main:3", waiting=500))),
    "sampled-nothing": lambda: with_samples(empty_run(), stack_samples()),
}
every_sampled_run = pytest.mark.parametrize("name", RUNS)


@every_sampled_run
def test_the_report_of_samples_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"{name}.txt", render_terminal(RUNS[name](), findings=no_findings()))
    check_golden(f"{name}.md", render_markdown(RUNS[name](), findings=no_findings()))
    check_golden(f"{name}.json", render_json(RUNS[name]()))


def test_all_that_samples_say_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    text = render_terminal(sampled_run(), functions=True, findings=no_findings())
    check_golden("sampled-functions.txt", text)
    wide = render_terminal(sampled_run(), functions=True, width=120, findings=no_findings())
    check_golden("sampled-120-columns.txt", wide)


def test_a_terminal_of_few_characters_gets_plain_ascii() -> None:
    text = render_terminal(sampled_run(), functions=True, ascii_only=True)
    assert text.isascii()
    assert "train (train.py:40) -> load_batch (train.py:12)" in text


def test_a_run_with_functions_is_not_asked_for_marks() -> None:
    assert "Mark the parts that matter" in render_terminal(empty_run())
    assert "Mark the parts that matter" not in render_terminal(sampled_run())


def columns_of(text: str, heading: str) -> list[list[str]]:
    """The rows of the table below the heading, up to the one that sums them up."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if re.match(heading, line)) + 2
    end = next(index for index in range(start, len(lines)) if lines[index].startswith("all "))
    return [re.findall(r"-?\d+\.\d", line) for line in lines[start : end + 1] if not line.startswith("    ")]


@pytest.mark.parametrize("heading", ["function ", "line ", "innermost ", "native function "])
def test_shares_add_up_to_what_is_printed_below_them(heading: str) -> None:
    text = render_terminal(sampled_run(), functions=True, top=3)
    *parts, total = [int(row[0].replace(".", "")) for row in columns_of(text, heading)]
    assert sum(parts) == total == 1_000


def test_stacks_that_no_list_has_are_in_the_sum_too() -> None:
    stacks = [Seen(stack=f"main;f{index}", python=10 * (index + 1)) for index in range(30)]
    text = render_terminal(with_samples(empty_run(), stack_samples(*stacks)))
    *parts, total = [int(row[0].replace(".", "")) for row in columns_of(text, "innermost ")]
    assert sum(parts) == total == 1_000
    assert "… 28 other stacks" in text


@pytest.mark.parametrize("name", ["sampled", "sampled-training"])
def test_python_native_and_waiting_make_a_hundred(name: str) -> None:
    heading = "thread " if name == "sampled" else "phase +time "
    for row in columns_of(render_terminal(RUNS[name]()), heading):
        assert sum(int(share.replace(".", "")) for share in row[-3:]) == 1_000


def test_a_total_is_never_written_smaller_than_what_is_its_own() -> None:
    for row in columns_of(render_terminal(sampled_run(), functions=True), "function "):
        assert len(row) < 3 or float(row[0]) <= float(row[2])


def test_few_samples_are_called_few() -> None:
    few = with_samples(empty_run(), stack_samples(Seen(stack="main", python=100)))
    assert "Few samples (10 of running threads)" in render_terminal(few)
    assert "Few samples" not in render_terminal(sampled_run())


def test_top_sets_how_many_functions_are_shown() -> None:
    text = render_terminal(sampled_run(), functions=True, top=2)
    assert "… 9 other functions" in text
    report = json.loads(render_json(sampled_run(), top=2))
    assert len(report["samples"]["functions"]) == 2
    assert report["samples"]["functions_not_shown"] == 9


@given(any_runs(), st.integers(40, 160))
def test_any_samples_can_be_told_in_any_width(run: Run, width: int) -> None:
    text = render_terminal(run, width=width, functions=True)
    assert all(line.isprintable() and cell_len(line) <= width for line in text.split("\n"))
    json.loads(render_json(run))


def run_named(name: str) -> Run:
    samples = StackSamples(
        samples_per_s=100,
        samples=20,
        dropped=0,
        sampler_cpu_ns=0,
        threads=(name, name),
        functions=(Function(name, name, 3), Function(name, f"/{name}/site-packages/{name}", 4)),
        native_functions=(NativeFunction(name, name),),
        nodes=(StackNode(None, 0, 1), StackNode(0, 1, 2)),
        observations=(
            Observation(0, 0, None, None, None, 10, 0, 0, 10, 10),
            Observation(1, 1, None, None, 0, 10, 0, 10, 10, 10),
        ),
    )
    return with_samples(simple_run(), samples)


@given(name=NASTY_TEXT)
def test_whatever_the_names_markdown_keeps_its_shape(name: str) -> None:
    tokens = parse(render_markdown(run_named(name)))
    assert kinds_of(tokens) == kinds_of(parse(render_markdown(run_named("plain"))))


@given(name=NASTY_TEXT, width=st.integers(40, 160))
def test_whatever_the_names_nothing_drives_the_terminal(name: str, width: int) -> None:
    text = render_terminal(run_named(name), width=width, functions=True)
    assert all(line.isprintable() and cell_len(line) <= width for line in text.split("\n"))


def test_a_picture_is_linked_where_there_is_one() -> None:
    text = render_markdown(sampled_run(), flamegraph="my run (1).svg")
    [image] = [token for token in parse(text) if token.type == "image"]
    assert image.attrs["src"] == "my%20run%20%281%29.svg"
    assert "Flame graph" not in render_markdown(empty_run(), flamegraph="x.svg")
