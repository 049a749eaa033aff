"""The page of a code map, as a browser shows it; ``opened`` fails for any complaint or request of it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer.analysis.codemap.comparison import compare_maps
from pyrometer.analysis.codemap.heat import find_heat, find_places
from pyrometer.analysis.observed import observe
from pyrometer.analysis.sampled_functions import SampledFunction
from pyrometer.cli.map_linking import link_to_map
from pyrometer.record.run import Run
from pyrometer.report.codemap_comparison_html import render_map_comparison_html
from pyrometer.report.codemap_html import render_map_html
from pyrometer.report.codemap_json import render_map_json
from pyrometer.report.html_page import render_html
from pyrometer.report.map_links import MapLinks
from pyrometer.report.markdown import render_markdown
from tests.codemap.test_map_reports import FILES, results_of, run_of
from tests.report.browsing import chromium, column, needs_chromium, opened
from tests.sampled_runs import Seen

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def functions_of(run: Run) -> Sequence[SampledFunction]:
    samples = observe(run).samples
    assert samples is not None
    return samples.functions


def test_every_view_is_there_with_and_without_a_run(browser: Browser, tmp_path: Path) -> None:
    results = results_of(tmp_path)
    heat = find_heat(results, run_of(tmp_path, Seen(stack="main;go;work", python=100)))
    for html, count in ((render_map_html(results), 7), (render_map_html(results, heat), 8)):
        with opened(browser, html, tmp_path) as page:
            assert len(page.views()) == count
            for key in page.views():
                page.view(key)
            assert "pack.high.a" in page.text("#view-imports")


def test_a_module_that_is_clicked_shows_its_hot_functions_and_the_way_into_it(
    browser: Browser, tmp_path: Path
) -> None:
    results = results_of(tmp_path)
    run = run_of(tmp_path, Seen(stack="main;go;work", python=300), Seen(stack="main;go", python=100))
    with opened(browser, render_map_html(results, find_heat(results, run)), tmp_path) as page:
        page.page.locator(".map-box", has_text="low").click()
        assert "75.0 %" in page.text(".map-about")
        assert "low.py:3" in page.text(".map-about")
        assert page.page.locator(".look-into").count() == 0
        page.page.locator(".map-box", has_text="high").click()
        assert "a.py:3" in page.text(".map-about")
        page.page.locator(".look-into").click()
        assert page.page.locator(".map-box").count() == 3
        page.page.locator(".map-box", has_text="b").last.press("Enter")
        assert page.text(".map-about").startswith("high.")
        page.page.locator(".crumb").first.click()
        assert page.page.locator(".map-box", has_text="low").count() == 1


def test_what_makes_a_box_warm_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    results = results_of(tmp_path)
    run = run_of(tmp_path, Seen(stack="main;go;work", python=300), Seen(stack="main;go", python=100))
    with opened(browser, render_map_html(results, find_heat(results, run)), tmp_path) as page:

        def color(name: str) -> str | None:
            return page.page.locator(".map-box", has_text=name).locator("rect").get_attribute("style")

        hottest = color("low")
        assert color("high") != hottest
        page.page.get_by_role("button", name="CPU time while on the stack").click()
        assert color("high") == hottest != color("low")


def test_a_comparison_has_all_its_views(browser: Browser, tmp_path: Path) -> None:
    before = results_of(tmp_path / "1")
    after = results_of(tmp_path / "2", {**FILES, "pack/new.py": "import pack.low\nif pack:\n    x = 1\n"})
    with opened(browser, render_map_comparison_html(compare_maps(before, after)), tmp_path) as page:
        assert page.views() == ["modules", "files", "edges", "imports", "functions", "circles"]
        for key in page.views():
            page.view(key)
        assert "pack.new" in page.text("#view-imports")
        assert column(page, "#view-files", 1) == ["new"]


def test_small_modules_that_are_one_box_are_named(browser: Browser, tmp_path: Path) -> None:
    files = {"pack/__init__.py": ""} | {
        f"pack/m{number:02}.py": "x = 1\n" * (60 - number) for number in range(60)
    }
    with opened(browser, render_map_html(results_of(tmp_path, files)), tmp_path) as page:
        page.page.locator(".map-box", has_text="(others)").click()
        assert "m59" in page.text(".map-about")
        assert "m01" not in page.text(".map-about")


def test_tables_are_sorted_by_the_runs_time(browser: Browser, tmp_path: Path) -> None:
    results = results_of(tmp_path)
    run = run_of(tmp_path, Seen(stack="main;go", python=300), Seen(stack="main;work", python=100))
    with opened(browser, render_map_html(results, find_heat(results, run)), tmp_path) as page:
        page.view("functions")
        assert column(page, "#view-functions", 1)[:2] == ["go", "work"]


def test_a_hot_function_of_a_report_leads_to_its_place_on_the_map(browser: Browser, tmp_path: Path) -> None:
    # A table of few rows needs no search.
    more = {"pack/more.py": "".join(f"def f{number}():\n    pass\n" for number in range(6))}
    results = results_of(tmp_path, {**FILES, **more})
    run = run_of(tmp_path, Seen(stack="main;go;work", python=300))
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "code_map.json").write_text(render_map_json(results))
    (tmp_path / "map" / "code_map.html").write_text(render_map_html(results))
    links = link_to_map(run, tmp_path / "map", seen_from=tmp_path / "page.html")
    with opened(browser, render_html(run, on_map=links), tmp_path) as page:
        page.view("functions")
        link = page.page.locator("#view-functions td a", has_text="low.py:3")
        assert link.get_attribute("href") == "map/code_map.html#functions/%22low.py%3A3%22"
    assert "](<map/code_map.html#functions/%22low.py%3A3%22>)" in render_markdown(run, on_map=links)
    html = (tmp_path / "map" / "code_map.html").read_text()
    with opened(browser, html, tmp_path, at="#functions/%22low.py%3A3%22") as page:
        assert column(page, "#view-functions", 1) == ["work"]


def test_the_level_of_a_module_leads_to_the_module(tmp_path: Path) -> None:
    results = results_of(tmp_path)
    run = run_of(
        tmp_path,
        Seen(stack="<module>;go", python=300),
        places={"<module>": (tmp_path / "pack" / "high" / "a.py", 1)},
    )
    place = find_places(results, run)[(str(tmp_path / "pack" / "high" / "a.py"), 1, "<module>")]
    links = MapLinks(places={("f", 1, "<module>"): place}, page="map.html")
    function = next(one for one in functions_of(run) if one.name == "<module>")
    there = replace(function, file="f", first_line=1)
    assert links.address(there) == "map.html#modules/%22high.a%22"


def test_names_that_every_object_of_the_page_has_are_names(browser: Browser, tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/constructor.py": "import pack.toString.a\n",
        "pack/toString/__init__.py": "x = 1\ny = 2\n",
        "pack/toString/a.py": "import pack.toString\n",
    }
    with opened(browser, render_map_html(results_of(tmp_path, files)), tmp_path) as page:
        page.page.locator(".map-box", has_text="constructor").click()
        assert page.page.locator(".look-into").count() == 0
        page.page.locator(".map-box", has_text="toString").click()
        page.page.locator(".look-into").click()
        page.page.locator(".map-box", has_text="__init__").click()
        assert "2 code" in page.text(".map-about")
