"""The roofline in reports: as a table, as JSON, and as a picture."""

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import msgspec
import pytest

from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.record.run import Run
from pyrometer.report import render_json, render_markdown, render_terminal
from pyrometer.report.roofline_svg import NoPictureError, render_roofline_svg
from tests.findings import no_findings
from tests.limits import make_limits
from tests.placed_runs import placed_run
from tests.report.sample_runs import HOSTILE_NAMES
from tests.report.torch_samples import large_torch_run
from tests.torch_runs import gpu_run, net_operators, operators_run, training_run

SVG = "{http://www.w3.org/2000/svg}"


def picture_of(run: Run, title: str = "Roofline of train.py") -> str:
    results = build_torch_results(run)
    assert results is not None
    return render_roofline_svg(results.roofline, title=title)


def named(run: Run, name: str) -> Run:
    """The run with another name for its module ``net.conv``."""
    data = msgspec.json.encode(run).replace(b'"net.conv"', json.dumps(name).encode())
    return msgspec.json.decode(data, type=Run)


def test_a_run_below_its_limits_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    check_golden("roofline.txt", render_terminal(placed_run(), findings=no_findings()))
    text = render_markdown(placed_run(), roofline_file="pictures/my roofline.svg", findings=no_findings())
    check_golden("roofline.md", text)
    check_golden("roofline.json", render_json(placed_run()))
    check_golden("roofline.svg", picture_of(placed_run()))


def test_without_limits_nothing_is_said() -> None:
    assert "Roofline" not in render_terminal(training_run())


def test_where_nothing_can_be_placed_the_reason_is_given() -> None:
    text = render_terminal(msgspec.structs.replace(gpu_run(), limits=make_limits()), width=120)
    assert "Not placed: the program had a GPU, and the limits are those of the processor." in text
    old = render_terminal(msgspec.structs.replace(training_run(), limits=make_limits()), width=120)
    assert "Nothing could be placed." in old
    assert "model.fc1, model.fc2, model.act: the bytes it is given were not recorded." in old


def test_limits_for_other_threads_or_beside_something_else_are_said() -> None:
    run = placed_run()
    assert run.torch is not None
    torch = msgspec.structs.replace(run.torch, intra_op_threads=8)
    limits = make_limits()
    worse = tuple(
        msgspec.structs.replace(one, median_bytes_per_s=one.best_bytes_per_s / 2) for one in limits.bandwidths
    )
    limits = msgspec.structs.replace(limits, bandwidths=worse)
    text = render_terminal(msgspec.structs.replace(run, torch=torch, limits=limits), width=120)
    assert "The program used 8 threads; there are no limits for so many." in text
    assert "The limits were measured beside something else" in text


def test_more_modules_than_asked_for_are_counted() -> None:
    assert "2 more modules not shown (see --top)." in render_terminal(placed_run(), top=2)
    assert "1 more module not shown (see --top)." in render_terminal(placed_run(), top=3)


# The picture.


def test_every_placed_thing_with_flops_is_in_the_picture_below_the_roof() -> None:
    root = ET.fromstring(picture_of(placed_run()))  # noqa: S314 - our own text
    hints = [one.text or "" for one in root.iter(f"{SVG}title")][1:]
    assert [hint.partition(":")[0] for hint in hints] == [
        "step", "backward", "forward", "net.conv", "net.head",
    ]  # fmt: skip
    assert "150 GFLOP/s, 75.0 % of the arithmetic" in hints[3]
    [roof] = root.iter(f"{SVG}polyline")
    highest = min(float(pair.split(",")[1]) for pair in str(roof.get("points")).split())
    dots = [*root.iter(f"{SVG}circle")]
    assert all(float(str(dot.get("cy"))) > highest for dot in dots)


def test_the_picture_needs_nothing_else_and_has_no_script() -> None:
    text = picture_of(placed_run())
    assert not re.search(r"<script|href|url\(|<image|<foreignObject|\bon\w+=", text)


@pytest.mark.parametrize(
    "name", [*HOSTILE_NAMES, "<script>alert(1)</script>", '"/><a href="x">', "a" * 5_000]
)
def test_names_from_the_run_are_only_text_in_the_picture(name: str) -> None:
    text = picture_of(named(placed_run(), name), title=name)
    root = ET.fromstring(text)  # noqa: S314 - our own text
    allowed = {"svg", "title", "style", "text", "line", "polyline", "circle", "rect"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed


def test_a_picture_of_a_thousand_modules_stays_small() -> None:
    run = large_torch_run()
    assert run.torch is not None
    modules = tuple(
        msgspec.structs.replace(
            one, measured_calls=1, input_bytes=4_000, output_bytes=4_000, flops=1_000_000 + index
        )
        for index, one in enumerate(run.torch.modules)
    )
    run = msgspec.structs.replace(
        run, torch=msgspec.structs.replace(run.torch, modules=modules), limits=make_limits()
    )
    assert len(picture_of(run)) < 200_000


@pytest.mark.parametrize("flops", [1, 2**62])
def test_figures_that_cannot_be_stay_in_the_picture(flops: int) -> None:
    run = placed_run()
    assert run.torch is not None
    modules = tuple(msgspec.structs.replace(one, flops=flops) for one in run.torch.modules)
    run = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, modules=modules))
    root = ET.fromstring(picture_of(run))  # noqa: S314 - our own text
    for dot in root.iter(f"{SVG}circle"):
        assert 0 <= float(str(dot.get("cx"))) <= 960
        assert 0 <= float(str(dot.get("cy"))) <= 620


def test_where_there_is_nothing_to_draw_the_reason_is_given() -> None:
    with pytest.raises(NoPictureError, match="does not know the limits of its machine"):
        picture_of(training_run())
    with pytest.raises(NoPictureError, match="had a GPU"):
        picture_of(msgspec.structs.replace(gpu_run(), limits=make_limits()))
    with pytest.raises(NoPictureError, match="no phase or module has both"):
        picture_of(msgspec.structs.replace(training_run(), limits=make_limits()))


def test_operators_stand_in_the_table_and_in_the_picture() -> None:
    run = msgspec.structs.replace(operators_run(net_operators()), limits=make_limits())
    text = render_terminal(run, width=120)
    start = text.index("Roofline: how much")
    assert "aten::addmm ≥" in text[start : text.index("\n\n", start)]
    assert "aten::addmm: " in picture_of(run)
