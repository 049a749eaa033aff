"""Markdown at each level: what it looks like, that it adds up, and that nothing in it is more than text."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import observe
from pyrometer.analysis.targets import judge_targets, parse_target
from pyrometer.record.run import Run
from pyrometer.report import render_markdown
from pyrometer.report.levels import FILE_NAMES, Level
from tests.documents import read_document
from tests.findings import findings_named, no_findings, training_findings
from tests.report.level_runs import LEVEL_RUNS, full_run
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse, run_with_name
from tests.report.torch_samples import large_torch_run, phases_named, torch_run_named
from tests.torch_runs import TORCH_RUNS

every_run = pytest.mark.parametrize("name", LEVEL_RUNS)
every_level = pytest.mark.parametrize("level", Level)


def findings_of(name: str) -> Findings:
    return training_findings() if name == "full" else no_findings()


def render(name: str, level: Level) -> str:
    return render_markdown(
        LEVEL_RUNS[name](),
        level=level,
        findings=findings_of(name),
        flamegraph="run.flamegraph.svg" if name == "full" else None,
        roofline_file="roofline.svg" if name == "full" else None,
    )


def section_of(text: str, title: str) -> str:
    """What stands below the title, up to the next of the same rank."""
    marks = title.partition(" ")[0]
    after = text[text.index(f"\n{title}\n") + len(title) + 2 :]
    return re.split(rf"\n{marks} ", after)[0]


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose heading begins so, without stars."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {heading}"))
    end = next((at for at in range(start, len(lines)) if not lines[at].startswith("|")), len(lines))
    return [
        [cell.strip().strip("*") for cell in line.strip("|").split(" | ")] for line in lines[start + 2 : end]
    ]


@every_run
@every_level
def test_a_level_looks_as_agreed(name: str, level: Level, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"level-{level}-{name}.md", render(name, level))


@every_run
def test_the_brief_report_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    text = render_markdown(LEVEL_RUNS[name](), brief=True, findings=findings_of(name))
    check_golden(f"brief-{name}.md", text)


@pytest.mark.parametrize(
    "run",
    [*(make() for make in LEVEL_RUNS.values()), *(make() for make in TORCH_RUNS.values()), large_torch_run()],
)
def test_the_brief_report_has_fewer_than_60_lines(run: Run) -> None:
    text = render_markdown(run, brief=True, findings=training_findings())
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize("name", LEVEL_RUNS)
def test_the_standard_report_is_one_screen(name: str) -> None:
    assert len(render(name, Level.STANDARD).splitlines()) <= 95


@every_level
def test_the_phases_of_each_level_add_up_to_the_step(level: Level) -> None:
    *phases, step = table_rows(render("full", level), "phase | ms a step")
    for column in (1, 2):
        tenths = [int(row[column].replace(".", "")) for row in phases]
        assert sum(tenths) == int(step[column].replace(".", ""))
    assert step[2] == "100.0"


def test_the_phases_of_the_brief_report_add_up_to_the_step() -> None:
    text = render_markdown(full_run(), brief=True, findings=no_findings())
    *phases, step = table_rows(text, "phase | ms a step")
    for column in (1, 2):
        assert sum(int(row[column].replace(".", "")) for row in phases) == int(step[column].replace(".", ""))


@pytest.mark.parametrize("level", [Level.DEEP, Level.COMPREHENSIVE])
def test_in_the_call_tree_self_and_what_is_called_make_the_total(level: Level) -> None:
    lines = next(
        block
        for block in re.findall(r"```text\n(.*?)```", render("full", level), re.DOTALL)
        if block.startswith("function")
    ).splitlines()[2:]
    rows = []
    for line in lines:
        guide = re.match(r"[│├└─ ]*", line)
        figures = re.findall(r"(?<= )\d+\.\d(?= |$)", line)
        assert guide is not None
        rows.append((len(guide[0]) // 3, [round(10 * float(figure)) for figure in figures]))
    assert sum(figures[0] for depth, figures in rows if depth == 0) == 1_000
    for index, (depth, figures) in enumerate(rows):
        below = []
        for inner, inside in rows[index + 1 :]:
            if inner <= depth:
                break
            if inner == depth + 1:
                below.append(inside[0])
        # A row of several has only a total.
        assert figures[0] == sum(below) + (figures[1] if len(figures) > 1 else figures[0])


def test_totals_of_the_plan_lie_between_the_largest_bound_and_all_of_the_time() -> None:
    plan = section_of(render("full", Level.DEEP), "## Plan")
    totals = re.findall(r"at most ([\d.]+) % \(.*?\) conservatively, ([\d.]+) %", plan)
    assert len(totals) == 5
    for conservative, optimistic in totals:
        assert float(conservative) <= float(optimistic) < 100


def test_every_finding_is_in_exactly_one_horizon_of_the_plan() -> None:
    plan = section_of(render("full", Level.COMPREHENSIVE), "## Plan")
    assert sorted(re.findall(r"^\| (\d)\\\.", plan, re.MULTILINE)) == ["1", "2", "3", "4", "5"]


def test_every_link_of_the_contents_leads_to_a_section(tmp_path: Path) -> None:
    page = tmp_path / FILE_NAMES[Level.COMPREHENSIVE]
    page.write_text(render("full", Level.COMPREHENSIVE), encoding="utf-8")
    document = read_document(page)
    anchors = {link.removeprefix("#") for link in document.links() if link.startswith("#")}
    assert len(anchors) == 13
    assert anchors <= document.anchors()


def test_what_the_run_cannot_know_says_which_option_records_it() -> None:
    text = render("generating", Level.DEEP)
    for told in (
        "cache miss rate | – (not counted: pyrometer run --counters, or --cachegrind)",
        "functions profiled | – (stacks were not sampled: pyrometer run --sample-hz 100)",
        "Allocations were not counted: pyrometer run --memory.",
        "The limits of the machine were not known when the run began: pyrometer limits",
    ):
        assert told in text


def test_the_standard_report_of_a_generating_run_tells_what_a_token_takes() -> None:
    line = section_of(render("generating", Level.STANDARD), "## In short").splitlines()[1]
    assert re.match(r"Generation, gpt: [\d.,]+ tokens/s, [\d.,]+ ms and [\d.,]+ MB a token", line)


def test_inference_is_told_by_the_size_of_the_batch() -> None:
    (row,) = table_rows(render("inferring", Level.DEEP), "steps | batch size")
    run = LEVEL_RUNS["inferring"]()
    assert run.torch is not None
    assert row[1] == str(run.torch.groups[0].first[0].samples)


def test_targets_that_were_judged_have_a_section_at_the_deeper_levels() -> None:
    run = full_run()
    results = judge_targets(observe(run), [parse_target("step_latency", "-20%", where="a test")])
    for level in (Level.DEEP, Level.COMPREHENSIVE):
        text = render_markdown(run, level=level, findings=no_findings(), targets=results)
        assert "step latency" in section_of(text, "## Targets")


def test_each_level_has_a_file_name_of_its_own() -> None:
    assert len({*FILE_NAMES.values()}) == len(Level)


@every_level
@given(name=NASTY_TEXT)
@example(name=" ")
@example(name="    - indented")
@example(name="<script>alert(1)</script>")
@example(name="](#) [x](javascript:0)")
@settings(max_examples=25)
def test_whatever_the_names_a_level_holds_no_html_and_keeps_its_shape(level: Level, name: str) -> None:
    def shape(run_name: str) -> list[str]:
        run = torch_run_named(run_name, phases=phases_named(name))
        return kinds_of(parse(render_markdown(run, level=level, findings=findings_named(run_name))))

    assert shape(name) == shape("plain")


@given(name=NASTY_TEXT, torch=st.booleans())
@example(name="<details>", torch=True)
@settings(max_examples=40)
def test_whatever_the_names_the_brief_report_keeps_its_shape(name: str, torch: bool) -> None:
    def shape(run_name: str) -> list[str]:
        run = torch_run_named(run_name, phases=phases_named(name)) if torch else run_with_name(run_name)
        return kinds_of(parse(render_markdown(run, brief=True, findings=findings_named(run_name))))

    assert shape(name) == shape("plain")
