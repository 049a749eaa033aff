"""The HTML page in a browser: views, tables, trees, charts and the flame graph."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer.report.html_page import render_html
from tests.report.browsing import Opened, column, focused, needs_chromium, opened
from tests.report.sample_runs import simple_run

pytestmark = needs_chromium
pytest_plugins = ("tests.report.page_fixtures",)


# Views.


def test_every_view_opens_by_its_tab_and_shows_something(full: Opened) -> None:
    for key in full.views():
        full.page.click(f"#tab-{key}")
        assert full.page.is_visible(f"#view-{key} h2")
        assert len(full.text(f"#view-{key}")) > 40
        assert full.page.evaluate("() => location.hash") == f"#{key}"
        visible = full.page.query_selector_all(".view:not([hidden])")
        assert len(visible) == 1


def test_a_view_has_an_address(browser: Browser, full_page: str, tmp_path: Path) -> None:
    with opened(browser, full_page, tmp_path, at="#modules") as page:
        assert page.page.is_visible("#view-modules")
        assert page.page.get_attribute("#tab-modules", "aria-selected") == "true"


@pytest.mark.parametrize("address", ["#nothing-of-the-kind", "#%", "#findings/99"])
def test_an_address_that_leads_nowhere_shows_a_view_all_the_same(
    browser: Browser, full_page: str, tmp_path: Path, address: str
) -> None:
    with opened(browser, full_page, tmp_path, at=address) as page:
        assert len(page.page.query_selector_all(".view:not([hidden])")) == 1


def test_evidence_and_top_findings_lead_to_what_they_name(full: Opened) -> None:
    full.page.click("#view-overview .top-finding >> nth=1")
    assert full.page.evaluate("() => document.activeElement.id") == "finding-2"
    full.page.click("#finding-2 a >> text=Data loading")
    assert full.page.is_visible("#view-loading")


def test_a_snippet_is_copied(full: Opened) -> None:
    full.view("findings")
    full.page.click("#finding-1 .copy >> nth=0")
    full.page.wait_for_selector("#finding-1 .copy >> text=Copied")


def test_a_command_that_is_yet_to_come_is_told_of_and_not_to_be_copied(full: Opened) -> None:
    full.view("findings")
    text = full.text("#finding-1")
    assert "pyrometer tune --only compile will, in a version to come." in text
    assert len(full.page.query_selector_all("#finding-1 .copy")) == 1
    assert "tune" not in full.text("#finding-1 pre")


# Tables and trees.


SORT_EACH_TWICE = """key => [...document.querySelectorAll(`#view-${key} button.sort`)].map((button) => {
    const cell = button.closest("th");
    button.click();
    const first = cell.getAttribute("aria-sort");
    button.click();
    return [first, cell.getAttribute("aria-sort")].sort().join(" ");
})"""


def test_every_column_of_every_table_sorts_both_ways(full: Opened) -> None:
    orders: list[str] = []
    for key in full.views():
        full.view(key)
        orders += full.page.evaluate(SORT_EACH_TWICE, key)
    assert len(orders) > 100
    assert set(orders) == {"ascending descending"}


def test_figures_sort_by_size_and_not_as_text(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(simple_run()), tmp_path, at="#scopes") as page:
        page.page.click("#view-scopes .grid:not([role=treegrid]) button.sort >> text=self")
        names = column(page, "#view-scopes .grid:not([role=treegrid])", 1)
        assert names[:3] == ["Backward_Pass", "Attention", "load_batch"]
        assert names[-1] == "count_tokens"
        page.page.click("#view-scopes .grid:not([role=treegrid]) button.sort >> text=self")
        assert column(page, "#view-scopes .grid:not([role=treegrid])", 1)[0] == "count_tokens"


def test_a_table_is_searched(full: Opened) -> None:
    full.view("functions")
    full.page.fill("#view-functions input >> nth=0", "LOAD_b")
    assert column(full, "#view-functions .grid-holder:nth-of-type(1)", 1) == ["load_batch"]
    full.page.fill("#view-functions input >> nth=0", "no such function")
    assert "Nothing found" in full.text("#view-functions .grid >> nth=0")


def test_a_tree_is_opened_closed_and_walked_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(simple_run()), tmp_path, at="#scopes") as page:
        tree = "#view-scopes .grid[role=treegrid]"
        page.page.click("#view-scopes >> text=Collapse all")
        assert column(page, tree, 1) == ["train_epoch"]
        page.page.focus(f"{tree} tbody tr")
        page.page.keyboard.press("ArrowRight")
        assert "Forward_Pass" in column(page, tree, 1)
        assert "MLP" not in column(page, tree, 1)
        page.page.keyboard.press("ArrowDown")
        assert focused(page).startswith("Forward_Pass")
        page.page.keyboard.press("Enter")
        assert "MLP" in column(page, tree, 1)
        page.page.keyboard.press("ArrowRight")
        assert focused(page).startswith("Attention")
        page.page.keyboard.press("ArrowLeft")
        assert focused(page).startswith("Forward_Pass")
        page.page.keyboard.press("ArrowLeft")
        assert "MLP" not in column(page, tree, 1)
        page.page.keyboard.press("End")
        assert focused(page).startswith("count_tokens")


def test_a_tree_shows_what_is_found_with_all_above_it(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(simple_run()), tmp_path, at="#scopes") as page:
        page.page.click("#view-scopes >> text=Collapse all")
        page.page.fill("#view-scopes input >> nth=0", "mlp")
        assert column(page, "#view-scopes .grid[role=treegrid]", 1) == ["train_epoch", "Forward_Pass", "MLP"]
        assert "1 found" in page.text("#view-scopes .status >> nth=0")


def test_whom_an_operator_worked_for_opens_below_it(full: Opened) -> None:
    full.view("operators")
    before = column(full, "#view-operators .grid", 1)
    full.page.click("#view-operators .grid tbody tr >> nth=0")
    opened_rows = column(full, "#view-operators .grid", 1)
    assert len(opened_rows) > len(before)
    assert opened_rows[1].startswith("for ")


# Charts.


def test_hovering_over_steps_names_the_step_and_its_phases(full: Opened) -> None:
    full.view("steps")
    full.page.wait_for_selector("#view-steps .chart svg path")
    full.page.hover("#view-steps .chart", position={"x": 70, "y": 150})
    tip = full.text("#view-steps .tip")
    assert re.match(r"Step 0, warm-up: 40.0 ms", tip)
    assert "backward" in tip


def test_steps_are_gone_over_by_keyboard(full: Opened) -> None:
    full.view("steps")
    full.page.focus("#view-steps .chart")
    full.page.keyboard.press("End")
    assert full.text("#view-steps .tip").startswith("Step 99: 10.0 ms")
    full.page.keyboard.press("ArrowLeft")
    assert full.text("#view-steps .tip").startswith("Step 98")


def test_steps_of_another_kind_are_drawn_when_chosen(full: Opened) -> None:
    full.view("steps")
    full.page.click("#view-steps .segment >> nth=1")
    full.page.focus("#view-steps .chart")
    full.page.keyboard.press("Home")
    assert "4.00 ms" in full.text("#view-steps .tip")


@pytest.mark.parametrize("view", ["memory", "generation"])
def test_other_charts_name_what_is_pointed_at(full: Opened, view: str) -> None:
    full.view(view)
    full.page.focus(f"#view-{view} .chart")
    full.page.keyboard.press("Home")
    assert re.search(r"\d (MiB|ms)", full.text(f"#view-{view} .tip"))


def test_every_chart_has_a_summary_in_words(full: Opened) -> None:
    for view in ("overview", "steps", "memory", "generation"):
        full.view(view)
        label = full.page.get_attribute(f"#view-{view} .chart", "aria-label") or ""
        assert len(label) > 40


def test_the_roofline_is_drawn_in_the_page(full: Opened) -> None:
    full.view("roofline")
    assert full.page.query_selector_all("#view-roofline svg circle.dot, #view-roofline svg rect.dot")


# The flame graph.

CANVAS = "#view-flamegraph canvas"


def test_the_flame_graph_is_zoomed_by_click_and_reset(full: Opened) -> None:
    full.view("flamegraph")
    full.page.click(CANVAS, position={"x": 60, "y": 30})
    assert full.page.get_attribute(CANVAS, "data-zoom") == "<module> train"
    full.page.click("#view-flamegraph >> text=Reset zoom")
    assert full.page.get_attribute(CANVAS, "data-zoom") == "all"


def test_the_flame_graph_is_walked_by_keyboard(full: Opened) -> None:
    full.view("flamegraph")
    full.page.focus(CANVAS)
    full.page.keyboard.press("ArrowDown")
    assert full.text("#view-flamegraph .flame-details").startswith("<module> train")
    full.page.keyboard.press("ArrowDown")
    full.page.keyboard.press("Enter")
    assert full.page.get_attribute(CANVAS, "data-zoom") == "train"
    full.page.keyboard.press("ArrowUp")
    assert full.text("#view-flamegraph .flame-details").startswith("<module> train")
    full.page.keyboard.press("Escape")
    assert full.page.get_attribute(CANVAS, "data-zoom") == "all"


def test_a_search_of_the_flame_graph_tells_the_share_that_matches_once(full: Opened) -> None:
    full.view("flamegraph")
    full.page.focus(CANVAS)
    full.page.keyboard.press("/")
    full.page.keyboard.type("fib")
    # 900 of 7,690 ms, in two frames of which one calls itself.
    assert "matched 11.7 %" in full.text("#view-flamegraph .status")
    full.page.fill("#view-flamegraph input", "load_batch")
    assert "matched 12.2 %, 1 frames" in full.text("#view-flamegraph .status")


@pytest.mark.parametrize(
    ("mode", "outermost"), [("thread", "MainThread"), ("phase", "forward"), ("module", "model")]
)
def test_the_flame_graph_stands_on_threads_phases_or_modules(full: Opened, mode: str, outermost: str) -> None:
    full.view("flamegraph")
    full.page.click(f"#view-flamegraph >> text=By {mode}")
    full.page.fill("#view-flamegraph input", outermost)
    assert not full.text("#view-flamegraph .status").startswith("matched 0.0 %")
    full.page.focus(CANVAS)
    full.page.keyboard.press("ArrowDown")
    assert f"({mode})" in full.text("#view-flamegraph .flame-details")


def test_with_waiting_the_flame_graph_is_of_the_time_of_threads(full: Opened) -> None:
    full.view("flamegraph")
    full.page.click("#view-flamegraph >> text=With waiting")
    assert "of the time of threads" in full.text("#view-flamegraph .flame-details")
    full.page.fill("#view-flamegraph input", "waiting")
    assert "matched 57.5 %" in full.text("#view-flamegraph .status")
