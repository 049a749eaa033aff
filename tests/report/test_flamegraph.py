"""The flame graph: a file of its own, safe whatever the names, and quick with a great many frames."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from pyrometer.analysis.sample_results import build_sample_results
from pyrometer.record.run import Run
from pyrometer.record.samples import Function, Observation, StackNode, StackSamples
from pyrometer.report.flamegraph import render_flamegraph
from tests.record.example_runs import any_runs
from tests.report.sample_runs import HOSTILE_NAMES, empty_run
from tests.report.test_safety import NASTY_TEXT
from tests.report.test_sample_report import run_named, sampled_run
from tests.sampled_runs import Seen, stack_samples, with_samples

SVG = "{http://www.w3.org/2000/svg}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
HOSTILE_TEXTS = (
    *HOSTILE_NAMES,
    "</script><script>alert(1)</script>",
    "]]>",
    "&lt;b&gt;",
    "\x00\x1b[31m",
    "\udcff",
)


def draw(run: Run) -> str:
    results = build_sample_results(run)
    assert results is not None
    return render_flamegraph(run, results)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own file


def data_of(svg: str) -> dict[str, Any]:
    [data] = [part for part in parsed(svg).iter(f"{SVG}script") if part.get("class") == "data"]
    content: dict[str, Any] = json.loads(data.text or "")
    return content


def names_drawn(svg: str) -> list[str]:
    """The frames of the picture that is shown where no script runs."""
    return [
        (frame.findtext(f"{SVG}title") or "").partition(":")[0]
        for frame in parsed(svg).iter(f"{SVG}g")
        if "frame" in (frame.get("class") or "").split()
    ]


def large_run(*, frames: int) -> Run:
    """As many frames as asked for, under a tree ten levels high of which each has four children."""
    nodes = tuple(
        StackNode(None if index == 0 else (index - 1) // 4, index % 5_000, 1) for index in range(frames)
    )
    samples = StackSamples(
        samples_per_s=100,
        samples=frames,
        dropped=0,
        sampler_cpu_ns=0,
        threads=("MainThread",),
        functions=tuple(
            Function(f"function_{index}", f"/x/{index % 100}.py", index) for index in range(5_000)
        ),
        nodes=nodes,
        observations=tuple(
            Observation(index, 0, None, None, None, 1, 0, 0, 10_000_000, 10_000_000)
            for index in range(frames)
        ),
    )
    return with_samples(empty_run(), samples)


def test_it_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    svg = draw(sampled_run())
    script = re.search(r"<script><!\[CDATA\[.*\]\]></script>", svg, re.DOTALL)
    assert script is not None
    check_golden("flamegraph.svg", svg.replace(script[0], ""))


def test_it_needs_nothing_else() -> None:
    svg = draw(sampled_run())
    addresses = set(re.findall(r"https?://[\w./-]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"(?:href|src|url\(|@import|import\()", svg)


def test_frames_are_as_wide_as_their_share_of_the_cpu_time() -> None:
    widths = {}
    for frame in parsed(draw(sampled_run())).iter(f"{SVG}g"):
        rect = frame.find(f"{SVG}rect")
        if rect is not None and frame.find(f"{SVG}title") is not None:
            widths[(frame.findtext(f"{SVG}title") or "").partition(":")[0]] = float(rect.get("width") or 0)
    assert widths["load_batch"] / widths["all"] == pytest.approx(940 / 7_690, abs=0.001)
    assert widths["Linear.forward"] / widths["all"] == pytest.approx(4_300 / 7_690, abs=0.001)


def test_the_data_holds_every_frame_with_both_times_and_the_samples() -> None:
    data = data_of(draw(sampled_run()))
    nodes = [data["nodes"][at : at + 5] for at in range(0, len(data["nodes"]), 5)]
    assert sum(node[2] for node in nodes) == 1_809
    assert sum(node[3] for node in nodes) == 7_690_000_000
    assert sum(node[4] for node in nodes) == 18_090_000_000
    assert {"cblas_sgemm", "waiting", "<module> train"} <= {frame[0] for frame in data["frames"]}


def shape_of(svg: str) -> list[str]:
    """What it is made of, less words, and less the legend: whose code it is, names of files tell."""
    root = parsed(svg)
    for legend in [group for group in root if group.get("class") == "legend"]:
        root.remove(legend)
    return [element.tag for element in root.iter() if element.tag != f"{SVG}text"]


@given(NASTY_TEXT)
@example("/")
def test_whatever_the_names_it_is_one_whole_file(name: str) -> None:
    assert shape_of(draw(run_named(name))) == shape_of(draw(run_named("plain")))


@pytest.mark.parametrize("name", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_nothing_in_a_name_ends_the_script_it_stands_in(name: str) -> None:
    svg = draw(run_named(name))
    assert svg.count("</script>") == 2
    assert svg.count("]]>") == 1
    data_of(svg)


@given(any_runs())
def test_any_samples_can_be_drawn(run: Run) -> None:
    if run.samples is not None:
        data_of(draw(run))


def test_a_hundred_thousand_frames_are_in_the_data_and_few_in_the_picture() -> None:
    svg = draw(large_run(frames=100_000))
    assert len(data_of(svg)["nodes"]) == 5 * 100_001
    assert len(names_drawn(svg)) < 8_000
    assert len(svg) < 8_000_000


def test_a_stack_as_deep_as_it_gets_is_drawn_to_a_depth_one_can_look_at() -> None:
    depth = 150_000
    samples = StackSamples(
        samples_per_s=100,
        samples=1,
        dropped=0,
        sampler_cpu_ns=0,
        threads=("MainThread",),
        functions=(Function("f", "/x.py", 1),),
        nodes=tuple(StackNode(None if index == 0 else index - 1, 0, 1) for index in range(depth)),
        observations=(Observation(depth - 1, 0, None, None, None, 1, 0, 0, 10, 10),),
    )
    svg = draw(with_samples(empty_run(), samples))
    assert len(names_drawn(svg)) < 4_000


def browse(page: Path, *, fragment: str = "") -> str:
    """The page as Chromium has it when all is drawn."""
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"]
    finished = subprocess.run(
        [*command, f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", f"{page.as_uri()}{fragment}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return finished.stdout


def browse_with(folder: Path, run: Run, actions: Sequence[str]) -> Any:
    """What the last action gives, in a page that holds the flame graph."""
    steps = "\n".join(actions[:-1])
    page = folder / "page.html"
    page.write_text(
        f"""<!doctype html><meta charset="utf-8"><body>{draw(run)}<pre id="answer"></pre><script>
        const label = (one) => one.getAttribute("aria-label");
        const frames = () => Array.from(document.querySelectorAll(".frame"));
        const named = (name) => frames().find((one) => label(one).startsWith(name + " ("));
        const wide = (one) => Number(one.querySelector("rect").getAttribute("width"));
        const press = (one, key) => one.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
        const input = document.querySelector("input");
        const type = (text) => {{ input.value = text; input.dispatchEvent(new Event("input")); }};
        const [reset, time] = document.querySelectorAll("button");
        {steps}
        document.getElementById("answer").textContent = JSON.stringify({actions[-1]});
        </script></body>""",
        encoding="utf-8",
        errors="replace",
    )
    answer = re.search(r'<pre id="answer">(.*?)</pre>', browse(page), re.DOTALL)
    assert answer is not None
    return json.loads(answer[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@in_a_browser
def test_a_click_zooms_and_reset_goes_back(tmp_path: Path) -> None:
    before, zoomed, after = browse_with(
        tmp_path,
        sampled_run(),
        [
            "const before = wide(named('load_batch'));",
            "named('load_batch').dispatchEvent(new MouseEvent('click', { bubbles: true }));",
            "const zoomed = wide(named('load_batch'));",
            "reset.click();",
            "[before, zoomed, wide(named('load_batch'))]",
        ],
    )
    assert before == after < zoomed


@in_a_browser
def test_a_search_marks_what_it_finds_and_says_how_much_that_is(tmp_path: Path) -> None:
    found, text, none = browse_with(
        tmp_path,
        sampled_run(),
        [
            "type('^fib$');",
            "const found = document.querySelectorAll('.found').length;",
            "const text = document.querySelector('output').textContent;",
            "type('(');",
            "[found, text, document.querySelector('output').textContent]",
        ],
    )
    # Four frames of fib, the outermost of which holds the others: 900 of 7,740 ms.
    assert (found, text) == (4, "found: 11.7 %")
    assert none.startswith("found: ")


@in_a_browser
def test_the_time_of_threads_shows_what_waits(tmp_path: Path) -> None:
    hidden, wall = browse_with(
        tmp_path,
        sampled_run(),
        [
            "const hidden = named('Condition.wait') === undefined;",
            "time.click();",
            "[hidden, label(named('Condition.wait'))]",
        ],
    )
    assert hidden
    assert wall.startswith("Condition.wait (threading, threading.py:288): 49.2 % ± 2.3 of the time")
    assert "890 samples" in wall


@in_a_browser
def test_the_keyboard_reaches_every_frame(tmp_path: Path) -> None:
    stops = browse_with(
        tmp_path,
        sampled_run(),
        [
            "const stops = [];",
            "const here = () => document.activeElement;",
            "const go = (key) => { press(here(), key); stops.push(label(here()).split(/:| \\(/)[0]); };",
            "document.querySelector('.frame[tabindex=\"0\"]').focus();",
            "['ArrowDown', 'ArrowRight', 'ArrowLeft', 'ArrowDown'].forEach(go);",
            "['ArrowDown', 'ArrowUp', 'Enter', 'Escape'].forEach(go);",
            "stops",
        ],
    )
    assert stops == ["<module> train", "worker", "<module> train", "train", "step", "train", "train", "all"]


@in_a_browser
def test_hostile_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    names = HOSTILE_TEXTS[-5:-1]
    stacks = (Seen(stack=name.replace(";", ","), python=100) for name in names)
    labels, scripts = browse_with(
        tmp_path,
        with_samples(empty_run(), stack_samples(*stacks)),
        [
            "const labels = frames().map((one) => one.getAttribute('aria-label'));",
            "[labels, document.querySelectorAll('script').length]",
        ],
    )
    for name in names:
        shown = name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
        assert any(label.startswith(f"{shown.replace(';', ',')} (") for label in labels)
    # Its own two, and that of the page.
    assert scripts == 3


@in_a_browser
def test_frames_too_narrow_to_see_are_drawn_when_zoomed(
    tmp_path: Path,
) -> None:
    drawn, whole, deep = browse_with(
        tmp_path,
        large_run(frames=100_000),
        [
            "const drawn = frames().length, whole = label(frames()[0]);",
            "let steps = 0;",
            "const deepest = () => frames()[frames().length - 1];",
            "while (steps++ < 12) deepest().dispatchEvent(new MouseEvent('click', { bubbles: true }));",
            "[drawn, whole, wide(deepest())]",
        ],
    )
    assert drawn <= 6_000
    assert whole == "all: 100.0 % ± 0.0 of CPU time, 1000 s, 100,000 samples; itself 0.0 %"
    assert deep > 1_000


@in_a_browser
def test_the_address_says_what_is_shown(tmp_path: Path) -> None:
    page = tmp_path / "flamegraph.svg"
    page.write_text(draw(sampled_run()), encoding="utf-8")
    dom = browse(page, fragment="#search=fib&time=wall&zoom=2")
    # 900 of 18,140 ms.
    assert "found: 5.0 %" in dom
    assert "show CPU time" in dom
    assert 'class="frame k0 above"' in dom
