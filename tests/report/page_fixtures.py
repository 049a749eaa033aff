"""Pages in a browser, made once for a file of tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pyrometer.report.html_page import render_html
from tests.findings import training_findings
from tests.report.browsing import Opened, chromium, opened
from tests.report.page_runs import full_run, run_of_many_nodes


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
