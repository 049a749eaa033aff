"""The HTML page as a file: whole, safe whatever the names, and with the figures of the other reports."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from pyrometer.analysis.findings.drafting import See
from pyrometer.analysis.findings.find import find
from pyrometer.analysis.frame_tree import with_children
from pyrometer.analysis.observed import observe
from pyrometer.record.format import decode_run
from pyrometer.record.run import Run
from pyrometer.report import render_terminal
from pyrometer.report.html_page import render_html
from pyrometer.report.page_shell import as_script_data
from pyrometer.report.page_views.blocks import left_out
from pyrometer.report.page_views.findings import view_of_section
from tests.findings import findings_named, no_findings, training_findings
from tests.record.example_runs import any_runs
from tests.report.page_runs import full_run
from tests.report.sample_runs import HOSTILE_NAMES, empty_run, simple_run
from tests.report.test_safety import NASTY_TEXT
from tests.report.torch_samples import phases_named, torch_run_named
from tests.torch_runs import TORCH_RUNS, training_run

HOSTILE_TEXTS = (
    *HOSTILE_NAMES,
    "<script>window.hacked=1</script>",
    "</script><img src=x onerror=window.hacked=1>",
    "<!--<script>",
    "]]>",
    "{{data}}",
    "\udcff",
    "x" * 100_000,
)
MOST_WITHOUT_DATA = 1_000_000


def part_of(html: str, element: str) -> str:
    found = re.search(rf'<script type="[\w/]+" id="{element}">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return found[1]


def views_of(html: str) -> dict[str, dict[str, Any]]:
    """Each view as the list of them has it, with its blocks."""
    views = [view for group in json.loads(part_of(html, "contents"))["groups"] for view in group["views"]]
    return {
        view["key"]: view | {"blocks": json.loads(part_of(html, f"data-{view['key']}"))} for view in views
    }


def blocks_of(html: str, view: str, kind: str) -> list[dict[str, Any]]:
    return [block for block in views_of(html)[view]["blocks"] if block["type"] == kind]


def grid_of(html: str, key: str) -> dict[str, Any]:
    grids = (block for view in views_of(html).values() for block in view["blocks"] if block["type"] == "grid")
    return next(block for block in grids if block["key"] == key)


def number(text: str) -> Decimal:
    return Decimal(text.split(maxsplit=1)[0].replace(",", ""))


def columns_of(html: str, key: str) -> dict[str, list[Any]]:
    return {column["heading"]: column["values"] for column in grid_of(html, key)["columns"]}


# It adds up.


@pytest.mark.parametrize("view", ["overview", "phases"])
def test_phases_add_up_to_the_step_as_they_are_written(view: str) -> None:
    for bar in blocks_of(render_html(full_run()), view, "shares"):
        for figure in ("time", "percent"):
            parts = sum(number(part[figure]) for part in bar["parts"])
            assert parts == number(bar["total"][figure])
        assert number(bar["total"]["percent"]) == 100


def test_phases_of_each_step_are_the_step() -> None:
    charts = blocks_of(render_html(full_run()), "steps", "steps")
    groups = [group for chart in charts for group in chart["groups"]]
    assert len(groups) == 2
    for group in groups:
        assert [step[1] for step in group["steps"]] == [sum(step[2:]) for step in group["steps"]]


def test_scopes_and_what_is_outside_make_the_profiled_time() -> None:
    html = render_html(simple_run())
    grid = grid_of(html, "scopes-tree")
    columns = columns_of(html, "scopes-tree")
    roots = sum(
        total for total, parent in zip(columns["total"], grid["parents"], strict=True) if parent == -1
    )
    assert roots == 1_900_000_000
    assert grid["total"] == {"name": "(outside any scope)", "cells": ["5.0", "100 ms", "", "", "", ""]}


def test_what_was_met_in_the_flame_graph_adds_up_to_the_samples() -> None:
    run = full_run()
    samples = observe(run).samples
    assert samples is not None
    [flame] = blocks_of(render_html(run), "flamegraph", "flame")
    met = [flame["met"][at : at + 7] for at in range(0, len(flame["met"]), 7)]
    own = [0] * len(flame["parents"])
    for node, _, _, _, _, cpu_ns, _ in met:
        own[node] += cpu_ns
    assert own == list(samples.tree.cpu_ns)
    assert sum(entry[4] for entry in met) == samples.samples
    assert sum(entry[6] for entry in met) == samples.overall.parts.wall_ns
    assert max(with_children(flame["parents"], own)) <= samples.overall.parts.cpu_ns


def test_the_flame_graph_splits_by_thread_phase_and_module_as_the_tables_do() -> None:
    run = full_run()
    samples = observe(run).samples
    assert samples is not None
    [flame] = blocks_of(render_html(run), "flamegraph", "flame")
    for place, (kind, splits) in enumerate(
        (("thread", samples.threads), ("phase", samples.phases), ("module", samples.modules)), start=1
    ):
        summed: dict[str, int] = {}
        for at in range(0, len(flame["met"]), 7):
            name = flame["groups"][kind][flame["met"][at + place]]
            summed[name] = summed.get(name, 0) + flame["met"][at + 5]
        assert summed == {split.name: split.parts.cpu_ns for split in splits}


def test_origins_of_an_operator_add_up_to_it() -> None:
    html = render_html(full_run())
    grid, columns = grid_of(html, "operators-1"), columns_of(html, "operators-1")
    below: dict[int, float] = {}
    for name, parent, own in zip(grid["names"], grid["parents"], columns["self"], strict=True):
        if name.startswith("for "):
            below[parent] = below.get(parent, 0) + own
    assert below
    assert below == {parent: pytest.approx(columns["self"][parent]) for parent in below}


def test_figures_are_those_of_the_terminal_report() -> None:
    run = training_run()
    text = render_terminal(run, findings=no_findings())
    [bar] = blocks_of(render_html(run), "overview", "shares")
    for part in bar["parts"]:
        [line] = [
            line for line in text.splitlines() if re.match(rf"\W*{part['name']}\s+[\d.]+\s+[\d.]+", line)
        ]
        assert str(number(part["time"])) in line
        assert str(number(part["percent"])) in line


# What it says.


def test_every_view_is_there_whatever_was_recorded() -> None:
    expected = [
        "overview", "findings", "steps", "phases", "loading", "generation", "modules", "operators",
        "roofline", "functions", "flamegraph", "scopes", "memory", "counters", "machine", "cost", "download",
    ]  # fmt: skip
    assert list(views_of(render_html(empty_run()))) == expected
    assert list(views_of(render_html(full_run()))) == expected


@pytest.mark.parametrize(
    ("view", "command"),
    [
        ("functions", "pyrometer run --sample-hz 100 PROGRAM.py"),
        ("flamegraph", "pyrometer run --sample-hz 100 PROGRAM.py"),
        ("memory", "pyrometer run --memory PROGRAM.py"),
        ("counters", "pyrometer run --counters PROGRAM.py"),
    ],
)
def test_a_view_without_data_says_what_would_record_it(view: str, command: str) -> None:
    missing = blocks_of(render_html(empty_run()), view, "missing")
    assert command in [block["command"] for block in missing]


def test_a_run_without_limits_says_how_to_have_a_roofline() -> None:
    html = render_html(training_run())
    assert [block["command"] for block in blocks_of(html, "roofline", "missing")] == ["pyrometer limits"]
    assert '<template id="roofline-picture"></template>' in html
    assert blocks_of(render_html(full_run()), "roofline", "roofline")


@pytest.mark.parametrize(
    "view", ["overview", "steps", "phases", "modules", "operators", "roofline", "loading", "generation"]
)
def test_without_torch_no_command_is_named_that_would_find_nothing_again(view: str) -> None:
    [missing] = blocks_of(render_html(empty_run()), view, "missing")
    assert "PyTorch" in missing["text"]
    assert missing["command"] is None


def test_nothing_is_missing_from_a_run_that_has_everything() -> None:
    html = render_html(full_run())
    lacking = {
        key for key, view in views_of(html).items() if any(b["type"] == "missing" for b in view["blocks"])
    }
    assert lacking == set()


def test_slow_steps_are_the_steady_ones_far_above_the_median() -> None:
    [chart] = blocks_of(render_html(training_run()), "steps", "steps")
    [group] = chart["groups"]
    durations = [step[1] for step in group["steps"]]
    assert group["warmup"] > 0
    expected = [
        at for at, ns in enumerate(durations) if at >= group["warmup"] and ns > 1.5 * group["medianNs"]
    ]
    assert group["slow"] == expected


def test_not_all_steps_are_said_to_be_drawn_where_some_were_looked_at_closely() -> None:
    for name, steps, drawn in (
        (
            "operators",
            "100 steps (and 5 looked at closely)",
            "100 steps are drawn; 5 looked at closely are not.",
        ),
        ("training", "100 steps", "All 100 steps are drawn."),
    ):
        html = render_html(TORCH_RUNS[name]())
        [chart] = blocks_of(html, "steps", "steps")
        assert chart["groups"][0]["summary"].endswith(f". {drawn}")
        [cards] = blocks_of(html, "overview", "cards")
        assert [card["note"] for card in cards["cards"] if card["label"] == "Profiled"] == [steps]


def test_findings_have_all_there_is_to_say() -> None:
    [block] = blocks_of(render_html(training_run(), findings=training_findings()), "findings", "findings")
    first = block["found"][0]
    assert first["what"] == "The backward pass is made of many operators that do next to nothing"
    assert first["priority"] == "CRITICAL"
    assert first["gain"] == "at most 35 % of a step's time, 1.54 × as fast"
    assert first["basis"] == "if that took no time at all"
    assert first["evidence"] == [
        {"text": "212 operators a step, 16.5 µs each on average", "see": "Operators", "view": "operators"}
    ]
    assert first["remedies"][0]["snippet"] == "model = torch.compile(model)"
    assert first["measure"] == (
        "Run it both ways to measure what it gains; pyrometer tune --only compile will, in a version to come."
    )
    assert block["verdict"].startswith("Overhead-bound")
    assert block["notShown"] == 2
    assert len(block["clear"]) == 3
    assert block["notLookedFor"][0]["reason"] == "caches were not simulated: --cachegrind"
    assert block["found"][4]["gain"] is None


def test_findings_are_found_where_none_are_given() -> None:
    run = training_run()
    assert render_html(run) == render_html(run, findings=find(observe(run)))
    assert render_html(run) != render_html(run, findings=no_findings())


@pytest.mark.parametrize(
    ("title", "view"),
    [
        ("Phases: training, Adam", "phases"),
        ("First step against steady", "phases"),
        ("Data loading, per batch", "loading"),
        ("Operators, by time of their own in 5 steps", "operators"),
        ("Lines that allocate", "memory"),
        ("Lines, by CPU time of their own", "functions"),
        ("Roofline: how much of the machine is used", "roofline"),
        ("something else", None),
    ],
)
def test_evidence_leads_to_the_view_that_shows_it(title: str, view: str | None) -> None:
    assert view_of_section(title) == view
    assert view is None or view in views_of(render_html(empty_run()))


def test_every_section_that_findings_point_to_has_a_view() -> None:
    assert [section.value for section in See if view_of_section(section.value) is None] == []


# It is safe, and whole.


def elements_of(html: str) -> list[str]:
    """Its elements in their order, less what the data is made of."""
    return re.findall(r"</?[a-z][a-z0-9]*", re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL))


@pytest.mark.parametrize("name", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_nothing_in_a_name_becomes_an_element(name: str) -> None:
    html = render_html(torch_run_named(name), findings=findings_named(name))
    plain = render_html(torch_run_named("plain"), findings=findings_named("plain"))
    assert elements_of(html) == elements_of(plain)
    assert list(views_of(html)) == list(views_of(plain))


@settings(deadline=None, max_examples=25)
@given(NASTY_TEXT)
def test_whatever_the_names_the_data_can_be_read(name: str) -> None:
    html = render_html(torch_run_named(name, phases=phases_named(name)), findings=findings_named(name))
    assert html.count("<!--") == 0
    assert list(views_of(html)) == list(views_of(render_html(empty_run())))


@settings(deadline=None, max_examples=25)
@given(any_runs())
def test_any_run_has_a_page(run: Run) -> None:
    assert len(views_of(render_html(run))) == 17


def test_data_in_a_script_has_no_character_that_could_end_it() -> None:
    text = as_script_data({"</script>": "<!-- & -->"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & -->"}


def test_invisible_and_turning_characters_are_written_out() -> None:
    html = render_html(torch_run_named("\u202egnp.exe"))
    assert "\u202e" not in html
    assert r"\\u202egnp.exe" in part_of(html, "data-modules")


def inline(html: str, element: str) -> Iterator[str]:
    for text in re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL):
        yield f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    html = render_html(full_run())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    [script], [style] = inline(html, "script"), inline(html, "style")
    assert rules == {
        "default-src": "'none'",
        "script-src": script,
        "style-src": style,
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_it_names_no_address_but_that_of_svg() -> None:
    assert set(re.findall(r"https?://[\w./-]+", render_html(full_run()))) == {"http://www.w3.org/2000/svg"}


def test_no_text_is_ever_taken_for_markup() -> None:
    script = render_html(empty_run()).rpartition("<script>")[2]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert way not in script


def test_without_its_data_it_is_small() -> None:
    html = render_html(full_run())
    without = re.sub(r'(<script type="[\w/]+" id="[\w-]+">).*?(</script>)', r"\1\2", html)
    assert 50_000 < len(without.encode()) < min(len(html), MOST_WITHOUT_DATA)


def test_the_run_can_be_taken_out_of_it_again() -> None:
    run = full_run()
    packed = base64.b64decode(part_of(render_html(run), "run-data"))
    assert decode_run(gzip.decompress(packed)) == run


@pytest.mark.parametrize("make", [empty_run, full_run])
def test_the_same_run_gives_the_same_page(make: Callable[[], Run]) -> None:
    assert render_html(make()) == render_html(make())


def test_one_row_left_out_is_told_of_as_one() -> None:
    assert left_out(1) == ["1 more, with less time, is in the tree above."]
    assert left_out(2) == ["2 more, with less time, are in the tree above."]
    assert left_out(0) == []
