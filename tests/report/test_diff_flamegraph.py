import json
import re
import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from pyrometer.analysis.comparison.model import FrameDiff
from pyrometer.report.diff_flamegraph import MOST_VANISHED, find_vanished, render_diff_flamegraph
from tests.compared_runs import compare, net_run
from tests.report.sample_runs import HOSTILE_NAMES
from tests.sampled_runs import Seen, stack_samples

SVG = "{http://www.w3.org/2000/svg}"


def diff_of(before: tuple[Seen, ...], after: tuple[Seen, ...]) -> FrameDiff:
    runs = [replace(net_run(), samples=stack_samples(*stacks)) for stacks in (before, after)]
    frames = compare(runs[0], runs[1]).frames
    assert frames is not None
    return frames


def drawn(svg: str) -> dict[str, tuple[str, float, str]]:
    """Of each frame of the still picture its class, its width and what it says."""
    frames = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):  # noqa: S314 - our own file
        classes = (group.get("class") or "").split()
        if "frame" in classes:
            words = group.findtext(f"{SVG}title") or ""
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            frames[words.partition(":")[0]] = (classes[1], float(rect.get("width") or 0), words)
    return frames


BEFORE = (
    Seen(stack="main:1;load:2", python=30_000),
    Seen(stack="main:1;step:3", python=60_000),
    Seen(stack="main:1;old:4;deeper:5", python=10_000),
)
AFTER = (
    Seen(stack="main:1;load:2", python=20_000),
    Seen(stack="main:1;step:3", python=60_000),
    Seen(stack="main:1;fresh:4", python=20_000),
)


def test_frames_are_as_wide_as_after_and_red_where_they_grew() -> None:
    frames = drawn(render_diff_flamegraph(diff_of(BEFORE, AFTER), "train.py"))
    assert frames["step"][1] == pytest.approx(0.6 * 1_180, abs=1)
    assert frames["load"][1] == pytest.approx(0.2 * 1_180, abs=1)
    assert {name: kind for name, (kind, _, _) in frames.items()} == {
        "all": "k7",
        "main": "k3",
        "step": "k3",
        "fresh": "k6",
        "load": "k0",
    }


def test_a_frame_says_both_shares() -> None:
    frames = drawn(render_diff_flamegraph(diff_of(BEFORE, AFTER), "train.py"))
    assert frames["load"][2] == "load: 20.0 %, before 30.0 % (-10.0 points), 2,000 samples"
    assert "before 0.0 % (+20.0 points)" in frames["fresh"][2]


def test_a_change_within_what_samples_vary_is_grey() -> None:
    before = (Seen(stack="main:1;load:2", python=500), Seen(stack="main:1;step:3", python=500))
    after = (Seen(stack="main:1;load:2", python=450), Seen(stack="main:1;step:3", python=550))
    frames = drawn(render_diff_flamegraph(diff_of(before, after), "train.py"))
    assert {kind for name, (kind, _, _) in frames.items() if name != "all"} == {"k3"}


def test_what_vanished_is_listed_once_with_what_it_took() -> None:
    diff = diff_of(BEFORE, AFTER)
    [vanished] = find_vanished(diff)
    assert vanished.name == "old"
    assert vanished.share == pytest.approx(0.1)
    svg = render_diff_flamegraph(diff, "train.py")
    assert "Vanished, with what they took before:" in svg
    assert "10.0 % old (train)" in svg


def test_a_long_list_of_what_vanished_is_cut_and_says_so() -> None:
    before = tuple(Seen(stack=f"main:1;old{at}:2", python=100) for at in range(MOST_VANISHED + 3))
    svg = render_diff_flamegraph(diff_of(before, (Seen(stack="main:1", python=100),)), "train.py")
    assert "and 3 more" in svg


def test_the_script_gets_a_colour_and_a_note_for_each_frame() -> None:
    svg = render_diff_flamegraph(diff_of(BEFORE, AFTER), "train.py")
    found = re.search(r'<script class="data" type="application/json">(.*?)</script>', svg)
    assert found is not None
    data = json.loads(found[1])
    assert len(data["kinds"]) == len(data["notes"]) == len(data["nodes"]) / 5
    assert set(data["measures"]) == {"cpu"}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_is_text(name: str) -> None:
    frame = name.replace(";", "").replace(":", "") or "x"
    before = (Seen(stack=f"main:1;{frame}:2", python=100), Seen(stack="main:1", python=100))
    svg = render_diff_flamegraph(diff_of(before, (Seen(stack="main:1", python=100),)), name)
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}  # noqa: S314 - ours
    assert tags <= {"svg", "title", "style", "text", "tspan", "g", "rect", "script"}
    assert svg.count("</script>") == 2
