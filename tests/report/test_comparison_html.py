"""The page of a comparison, as a browser shows it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer.report.comparison_html import render_comparison_html
from tests.compared_runs import Net, compare, net_run
from tests.report.browsing import chromium, column, needs_chromium, opened
from tests.report.sample_runs import HOSTILE_NAMES, simple_run
from tests.report.test_comparison_report import COMPARISONS, comparison_of

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_the_summary_and_every_table_are_there_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(COMPARISONS["one-run"]()), tmp_path) as page:
        assert page.views() == [
            "summary",
            "phases",
            "modules",
            "scopes",
            "operators",
            "functions",
            "flamegraph",
        ]
        summary = page.text("#view-summary")
        assert "module net.first: called 2 × as often" in summary
        assert summary.index("May they be compared?") < summary.index("In short")
        for key in page.views():
            page.view(key)
        assert "The parts explain" in page.text("#view-modules")


def test_a_table_is_sorted_by_its_figures(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(COMPARISONS["one-run"]()), tmp_path) as page:
        page.view("modules")
        page.page.click("#view-modules th:has-text('after') button")
        assert column(page, "#view-modules", 1)[0] == "net.first"
        page.page.click("#view-modules th:has-text('after') button")
        assert column(page, "#view-modules", 1)[-1] == "net.first"


def test_the_flame_graph_is_drawn_in_the_page_by_its_own_script(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(COMPARISONS["one-run"]()), tmp_path) as page:
        page.view("flamegraph")
        assert page.page.locator(".inlined input[type=search]").count() == 1
        label = page.page.locator(".inlined .frame").nth(1).get_attribute("aria-label") or ""
        assert re.search(r"before \d", label)
        # Only one measure: there is no button that would show the other.
        assert page.page.locator(".inlined button:visible").count() == 1
        page.page.locator(".inlined .frame").nth(2).click()
        assert page.page.locator(".inlined .frame.above").count() >= 1


def test_styles_of_the_picture_stay_in_it(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(COMPARISONS["one-run"]()), tmp_path) as page:
        size = "selector => getComputedStyle(document.querySelector(selector)).fontSize"
        page.view("modules")
        before = page.page.evaluate(size, "#view-modules .controls")
        page.view("flamegraph")
        assert page.page.evaluate(size, "#view-modules .controls") == before


def test_without_samples_the_page_says_so(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(compare(simple_run(), simple_run())), tmp_path) as page:
        page.view("flamegraph")
        assert "neither side has stack samples" in page.text("#view-flamegraph")


def test_what_was_refused_has_one_view_with_the_facts(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, render_comparison_html(COMPARISONS["refused"]()), tmp_path) as page:
        assert page.views() == ["summary"]
        assert "--allow inputs" in page.text("#view-summary")


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_is_text_in_every_view(name: str, browser: Browser, tmp_path: Path) -> None:
    html = render_comparison_html(comparison_of(name))
    with opened(browser, html, tmp_path) as page:
        for key in page.views():
            page.view(key)
        assert page.page.locator("#page script:not(.data)").count() <= 1
        assert page.page.locator("#page b, #page i, #page img").count() == 0


def test_many_modules_are_no_trouble(browser: Browser, tmp_path: Path) -> None:
    with opened(
        browser, render_comparison_html(compare(net_run(), net_run(Net(first_us=1)))), tmp_path, width=700
    ) as page:
        page.view("modules")
        assert "net.first" in page.text("#view-modules")
