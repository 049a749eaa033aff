"""Makes the pictures of the HTML page that the docs show, by opening it in Chromium.

    python docs/make_page_pictures.py RUN

They have few colours, and so are small: a picture above 200 KB is refused.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from pyrometer.report.html_page import render_html
from pyrometer.store.run_files import read_run

FOLDER = Path(__file__).parent
SIZE = {"width": 1_280, "height": 800}
MOST_BYTES = 200_000
VIEWS = ("overview", "findings", "flamegraph")


def main() -> None:
    """Draw all of them from the run that is named."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/make_page_pictures.py RUN")
    html = render_html(read_run(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(path.as_uri())
        for view in VIEWS:
            draw(page, view, FOLDER / f"page-{view}.png")
        browser.close()


def draw(page: Page, view: str, path: Path) -> None:
    """A view as it is seen when it is opened."""
    page.click(f"#tab-{view}")
    # What is hovered over looks different.
    page.mouse.move(0, 0)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = page.screenshot()
    if len(picture) > MOST_BYTES:
        sys.exit(f"{path.name} would have {len(picture):,} bytes; at most {MOST_BYTES:,} are kept")
    path.write_bytes(picture)


if __name__ == "__main__":
    main()
