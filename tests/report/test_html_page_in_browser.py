"""The HTML page in a browser: every view, by mouse and by keyboard, with nothing asked of a network."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer import units
from pyrometer.record.format import decode_run
from pyrometer.report.html_page import render_html
from pyrometer.report.torch_wording import format_figure
from tests.findings import findings_named, training_findings
from tests.report.browsing import Opened, chromium, needs_chromium, opened
from tests.report.page_runs import full_run, run_of_many_nodes
from tests.report.sample_runs import MS, empty_run, hostile_run, simple_run
from tests.report.torch_samples import torch_run_named
from tests.torch_runs import training_run

pytestmark = needs_chromium

# Rows that are there at once, whatever the number there is.
MOST_ROWS = 400


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def full_page() -> str:
    return render_html(full_run(), findings=training_findings())


@pytest.fixture(scope="module")
def large_page() -> str:
    return render_html(run_of_many_nodes())


@pytest.fixture
def full(browser: Browser, full_page: str, tmp_path: Path) -> Iterator[Opened]:
    with opened(browser, full_page, tmp_path) as page:
        yield page


def column(page: Opened, table: str, at: int) -> list[str]:
    cells = page.page.query_selector_all(f"{table} tbody tr[data-place] > :nth-child({at})")
    return [cell.inner_text() for cell in cells]


def focused(page: Opened) -> str:
    """What the focused element says, or is called."""
    text: str = page.page.evaluate(
        "() => document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
    )
    return text


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


# By keyboard alone, light and dark, on paper.


def test_all_views_are_reached_by_keyboard_alone(full: Opened) -> None:
    keyboard = full.page.keyboard
    keyboard.press("Tab")
    assert focused(full) == "Skip to the view"
    keyboard.press("Tab")
    assert focused(full) == "Overview"
    seen = []
    for _ in full.views():
        seen.append(full.page.evaluate("() => location.hash.slice(1)") or "overview")
        keyboard.press("ArrowDown")
    assert seen == full.views()
    keyboard.press("End")
    assert full.page.get_attribute("#tab-download", "aria-selected") == "true"


def test_the_skip_link_leads_past_the_list_of_views(full: Opened) -> None:
    full.page.keyboard.press("Tab")
    full.page.keyboard.press("Enter")
    assert full.page.evaluate("() => document.activeElement.id") == "main"
    assert full.page.is_visible("#view-overview")


def test_slash_goes_to_the_search_of_the_view(full: Opened) -> None:
    full.view("functions")
    full.page.keyboard.press("/")
    assert focused(full) == "Search function"


def theme(page: Opened) -> str | None:
    return page.page.get_attribute("html", "data-theme")


def lightness(page: Opened) -> int:
    colour = page.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_as_light_or_dark_as_the_system_until_told_otherwise(
    browser: Browser, full_page: str, tmp_path: Path, dark: bool
) -> None:
    with opened(browser, full_page, tmp_path, dark=dark) as page:
        assert (lightness(page) < 300) is dark
        page.page.click("button.theme")
        assert (lightness(page) < 300) is not dark
        page.page.reload()
        assert (lightness(page) < 300) is not dark


def test_on_paper_there_are_all_views_light_and_without_controls(
    browser: Browser, full_page: str, tmp_path: Path
) -> None:
    with opened(browser, full_page, tmp_path, dark=True, width=760) as page:
        page.page.emulate_media(media="print")
        page.page.wait_for_selector("html.printing")
        assert theme(page) == "light"
        for key in page.views():
            assert page.page.is_visible(f"#view-{key} h2")
            assert page.page.evaluate("key => document.getElementById(key).offsetHeight", f"view-{key}") > 50
        assert not page.page.is_visible(".side")
        assert not page.page.is_visible("#view-functions .controls")
        assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 760
        page.page.emulate_media(media="screen")
        page.page.wait_for_selector("html:not(.printing)")
        assert theme(page) == "dark"


def test_a_pdf_can_be_made_of_it(browser: Browser, full_page: str, tmp_path: Path) -> None:
    with opened(browser, full_page, tmp_path) as page:
        assert len(page.page.pdf()) > 50_000


@pytest.mark.parametrize("width", [700, 800, 1_000, 1_400])
def test_nothing_is_wider_than_the_window(
    browser: Browser, full_page: str, tmp_path: Path, width: int
) -> None:
    with opened(browser, full_page, tmp_path, width=width) as page:
        for key in page.views():
            page.view(key)
            assert page.page.evaluate("() => document.documentElement.scrollWidth") <= width, key


# Files.


def test_a_table_is_saved_with_raw_figures(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(simple_run()), tmp_path, at="#scopes") as page:
        with page.page.expect_download() as saved:
            page.page.click("#view-scopes >> text=CSV >> nth=0")
        rows = list(csv.reader(io.StringIO(saved.value.path().read_text(encoding="utf-8"))))
    assert saved.value.suggested_filename == "scopes-tree.csv"
    assert rows[0][:4] == ["scope", "depth", "% of the profiled time (fraction)", "total (ns)"]
    assert rows[1][:4] == ["train_epoch", "0", "0.95", str(1_900 * MS)]
    assert len(rows) == 11


def test_every_table_is_saved_from_the_list_of_files(full: Opened) -> None:
    full.view("download")
    names = [button.inner_text() for button in full.page.query_selector_all("#view-download .files button")]
    assert {"modules-tree.csv", "functions.csv", "operators-1.csv", "phases-1.csv"} <= set(names)
    with full.page.expect_download() as saved:
        full.page.click("#view-download >> text=phases-1.csv")
    rows = list(csv.reader(io.StringIO(saved.value.path().read_text(encoding="utf-8"))))
    assert sum(float(row[2]) for row in rows[1:]) == pytest.approx(1)


def test_the_run_is_saved_as_it_was_recorded(full: Opened) -> None:
    full.view("download")
    with full.page.expect_download() as saved:
        full.page.click("#view-download button.main")
    assert decode_run(saved.value.path().read_bytes()) == full_run()


def test_a_name_that_a_spreadsheet_would_run_is_saved_as_text(browser: Browser, tmp_path: Path) -> None:
    html = render_html(torch_run_named("=HYPERLINK(1)"))
    with opened(browser, html, tmp_path, at="#modules") as page:
        with page.page.expect_download() as saved:
            page.page.click("#view-modules >> text=CSV >> nth=0")
        text = saved.value.path().read_text(encoding="utf-8")
    assert "'=HYPERLINK(1)" in text
    assert "\n=HYPERLINK" not in text


# Whatever is in it.


@pytest.mark.parametrize(
    "name",
    [
        "<script>window.hacked=1</script>",
        "</script><img src=x onerror=window.hacked=1>",
        "<img src=x onerror=window.hacked=1>",
        "javascript:window.hacked=1",
        "\u202egnp.exe",
        "x" * 100_000,
        "{{data}}",
        "",
    ],
    ids=["script", "end-of-script", "image", "address", "turned", "long", "template", "empty"],
)
def test_hostile_names_are_shown_and_do_nothing(browser: Browser, tmp_path: Path, name: str) -> None:
    html = render_html(torch_run_named(name), findings=findings_named(name))
    with opened(browser, html, tmp_path, width=900) as page:
        for key in page.views():
            page.view(key)
            assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 900, key
        assert page.page.evaluate("() => window.hacked") is None
        page.view("modules")
        shown = page.page.get_attribute("#view-modules .grid .name", "title") or ""
        expected = {"": "''", "\u202egnp.exe": r"\u202egnp.exe"}.get(name, name)
        assert shown == expected or (len(name) > 1_000 and shown.startswith("xxxx") and "…" in shown)


def test_names_of_scopes_are_shown_as_they_are(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(hostile_run()), tmp_path, at="#scopes") as page:
        names = column(page, "#view-scopes .grid[role=treegrid]", 1)
        assert {
            "<script>alert(1)</script>",
            "&lt;b&gt; \\| *star* _under_ ~~gone~~",
            "\\u202egnp.exe",
        } <= set(names)


def test_a_run_with_nothing_in_it_says_what_is_missing(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(empty_run()), tmp_path) as page:
        for key in ("steps", "modules", "operators", "functions", "flamegraph", "scopes", "counters"):
            page.view(key)
            assert page.page.is_visible(f"#view-{key} .missing")
            assert "empty" in (page.page.get_attribute(f"#tab-{key}", "class") or "")


def test_a_run_without_samples_says_which_option_records_them(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_html(training_run()), tmp_path, at="#flamegraph") as page:
        assert "--sample-hz" in page.text("#view-flamegraph .missing")
        page.view("operators")
        assert "--ops" in page.text("#view-operators .missing")


def test_of_twenty_thousand_nodes_only_those_in_sight_are_there(
    browser: Browser, large_page: str, tmp_path: Path
) -> None:
    with opened(browser, large_page, tmp_path) as page:
        for view, count in (("modules", 19_999), ("scopes", 20_000)):
            page.view(view)
            page.page.click(f"#view-{view} >> text=Expand all")
            tree = f"#view-{view} .grid[role=treegrid]"
            assert page.page.get_attribute(tree, "aria-rowcount") == str(count + 1)
            assert len(page.page.query_selector_all(f"{tree} tbody tr")) < MOST_ROWS
            page.page.focus(f"{tree} tbody tr[tabindex='0']")
            page.page.keyboard.press("End")
            last = page.page.evaluate("() => document.activeElement.getAttribute('aria-rowindex')")
            assert last == str(count + 1)
            assert len(page.page.query_selector_all(f"{tree} tbody tr")) < MOST_ROWS
        page.view("flamegraph")
        page.page.fill("#view-flamegraph input", "function_4999")
        assert "4 frames" in page.text("#view-flamegraph .status")


# Figures are written as everywhere.


def alike(browser: Browser, unit: str, values: list[float]) -> list[str]:
    script = files("pyrometer.report.page_assets").joinpath("units.js").read_text(encoding="utf-8")
    page = browser.new_page()
    try:
        written: list[str] = page.evaluate(
            f"([unit, values]) => {{ {script}\nreturn values.map((value) => write(value, unit)); }}",
            [unit, values],
        )
    finally:
        page.close()
    return written


def many_values() -> list[float]:
    """Around every change of unit and of digits, and halves, which are rounded to the even one."""
    edges = [1, 2.5, 3.5, 9.995, 99.95, 999.5, 1_000, 1_023.5, 1_024, 9_995, 99_950, 99_999.5]
    scales = [1, 10, 1_000, 1_024, 1_024**2, 10**6, 10**9, 1_024**3, 3.6e12, 8.64e13]
    near = [0.999, 1, 1.0005]
    return [
        0,
        0.25,
        0.5,
        0.125,
        1.125,
        *(edge * scale * by for edge in edges for scale in scales for by in near),
    ]


@pytest.mark.parametrize(
    ("unit", "write"),
    [
        ("duration", units.format_duration),
        ("bytes", units.format_bytes),
        ("flops", units.compact_count),
        ("figure", format_figure),
        ("digits", lambda value: units.three_digits(value) if value else "0"),
    ],
)
def test_figures_are_written_as_in_the_other_reports(
    browser: Browser, unit: str, write: Callable[[float], str]
) -> None:
    values = many_values()
    assert alike(browser, unit, values) == [write(value) for value in values]


def test_shares_are_written_as_in_the_other_reports(browser: Browser) -> None:
    values = [0, 0.0004, 0.0005, 0.00125, 0.12345, 0.1225, 0.5, 0.99949, 1, 9.9994, 9.9996]
    assert alike(browser, "share", values) == [units.compact_share(value) for value in values]
