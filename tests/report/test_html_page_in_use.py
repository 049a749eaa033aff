"""The HTML page in a browser: by keyboard alone, in the dark, on paper, and whatever is in the run."""

import csv
import io
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer import units
from pyrometer.record.format import decode_run
from pyrometer.record.run import Run
from pyrometer.report.html_page import render_html
from pyrometer.report.torch_wording import format_figure
from tests.findings import findings_named
from tests.report.browsing import Opened, column, focused, needs_chromium, opened
from tests.report.page_runs import full_run
from tests.report.sample_runs import (
    MS,
    allocating_run,
    empty_run,
    hostile_run,
    simple_run,
    threaded_run,
    wide_run,
)
from tests.report.torch_samples import torch_run_named
from tests.torch_runs import compiled_run, gpu_run, long_run, no_steps_run, training_run

pytestmark = needs_chromium
pytest_plugins = ("tests.report.page_fixtures",)

# Rows that are there at once, whatever the number there is.
MOST_ROWS = 400


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


@pytest.mark.parametrize(
    "make",
    [compiled_run, gpu_run, no_steps_run, long_run, threaded_run, wide_run, allocating_run],
    ids=lambda make: make.__name__,
)
def test_every_kind_of_run_is_shown_in_figures_and_words(
    browser: Browser, tmp_path: Path, make: Callable[[], Run]
) -> None:
    with opened(browser, render_html(make()), tmp_path) as page:
        page.page.emulate_media(media="print")
        page.page.wait_for_selector("html.printing")
        text = page.text("#main")
        assert len(text) > 1_000
        assert re.findall(r"NaN|undefined|Infinity|null|\[object", text) == []


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
