"""A page opened in Chromium, with all that it says and asks for on the way."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium (Debian, Ubuntu: apt-get install chromium)"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that asks nobody for anything."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """A page, the complaints in its console, and what it asked for beside itself."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)

    def view(self, key: str) -> None:
        """Go to a view by its address."""
        self.page.evaluate("key => { location.hash = key; }", key)
        self.page.wait_for_selector(f"#view-{key}:not([hidden])")

    def text(self, selector: str) -> str:
        """What can be read there."""
        return self.page.inner_text(selector)

    def views(self) -> list[str]:
        """The keys of all views, in their order."""
        sections = self.page.query_selector_all(".view")
        return [(section.get_attribute("id") or "").removeprefix("view-") for section in sections]


@contextmanager
def opened(
    browser: Browser, html: str, folder: Path, *, width: int = 1_280, dark: bool = False, at: str = ""
) -> Iterator[Opened]:
    """The page as a file on disk; at the end it must have complained of nothing and asked for nothing."""
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
    )
    page = context.new_page()
    found = Opened(page=page)

    def said(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            found.complaints.append(message.text)

    def asked(request: Request) -> None:
        # What is in the page itself: the file, its picture in the tab, and files made to be saved.
        if not request.url.startswith((path.as_uri(), "data:", "blob:")):
            found.asked_for.append(request.url)

    page.on("console", said)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", asked)
    page.goto(path.as_uri() + at)
    try:
        yield found
        assert found.complaints == []
        assert found.asked_for == []
    finally:
        context.close()


def column(page: Opened, table: str, at: int) -> list[str]:
    """The cells of a column, from 1, as far as they are in sight."""
    cells = page.page.query_selector_all(f"{table} tbody tr[data-place] > :nth-child({at})")
    return [cell.inner_text() for cell in cells]


def focused(page: Opened) -> str:
    """What the focused element says, or is called."""
    text: str = page.page.evaluate(
        "() => document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
    )
    return text
