"""How long the HTML page of a large run takes to open, and how large it is without its data.

    python benchmarks/page_opens.py [--nodes N] [--turns N]

A run with 20,000 modules, scopes and frames each is opened in Chromium, anew each time. Measured is from
the navigation until the first view is drawn and a click has led to another one, which is drawn as well.
Fails above one second (the median), or where the page without its data has a megabyte or more.
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from pyrometer.report.html_page import render_html

ROOT = Path(__file__).parents[1]
MOST_S = 1.0
MOST_BYTES = 1_000_000

# The page's own clock begins with the navigation. Two frames: the first may have been on its way already.
CLICK_AND_WAIT = """view => new Promise((done) => {
    document.getElementById(`tab-${view}`).click();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
})"""
# Each of these has all the nodes.
VIEWS = ("modules", "scopes", "flamegraph")


def main() -> None:
    """Print both, and whether they are within their limits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    html = _large_page(options.nodes)
    size = _without_data(html)
    print(f"page: {len(html) / 1e6:.2f} MB for {options.nodes:,} modules, scopes and frames each")
    passed = [_judge("size without data", size / 1e6, MOST_BYTES / 1e6, "MB")]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for view in VIEWS:
            turns = [_opening_s(browser, path, view) for _ in range(options.turns)]
            spread = f"{min(turns):.2f} to {max(turns):.2f} s in {len(turns)} turns"
            passed.append(_judge(f"to the {view}, {spread}", statistics.median(turns), MOST_S, "s"))
        browser.close()
    sys.exit(0 if all(passed) else 1)


def _opening_s(browser: Browser, path: Path, view: str) -> float:
    """From the navigation until another view was clicked and is drawn."""
    page = browser.new_context(viewport={"width": 1_400, "height": 900}).new_page()
    page.goto(path.as_uri())
    took_s: float = page.evaluate(CLICK_AND_WAIT, view) / 1_000
    assert page.is_visible(f"#view-{view}")  # noqa: S101 - a measurement of nothing is none
    page.context.close()
    return took_s


def _large_page(nodes: int) -> str:
    # The tests' values are found from the repository's root only.
    sys.path.insert(0, str(ROOT))
    from tests.report.page_runs import run_of_many_nodes

    return render_html(run_of_many_nodes(nodes))


def _without_data(html: str) -> int:
    return len(re.sub(r'(<script type="[\w/]+" id="[\w-]+">).*?(</script>)', r"\1\2", html).encode())


def _judge(what: str, value: float, limit: float, unit: str) -> bool:
    passed = value < limit
    print(f"{'PASS' if passed else 'FAIL'}  {what}: {value:.2f} {unit} (limit {limit:.2f} {unit})")
    return passed


if __name__ == "__main__":
    main()
