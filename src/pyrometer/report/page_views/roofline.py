"""How near the step, its phases, modules and operators come to what the machine can do."""

from collections.abc import Sequence

from pyrometer.analysis.observed import Observed
from pyrometer.analysis.roofline import Bound, Placed
from pyrometer.analysis.torch_roofline import Roofline
from pyrometer.report.blocks import Lines
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.page_views.blocks import Block, GridColumn, grid, missing, small_print, text, view
from pyrometer.report.page_views.steps import NO_TORCH
from pyrometer.report.roofline_svg import NoPictureError, render_roofline_svg
from pyrometer.report.torch_operators import operator_name
from pyrometer.report.torch_roofline import build_roofline_section, describe_roofs

_PICTURE_TITLE = "What the machine can do at best, and what was reached"
_NO_LIMITS = (
    "The run does not know what its machine can do at best, or no module was called. Measure the limits "
    "once, then run the program again."
)


def roofline_picture(observed: Observed) -> str | None:
    """The picture as markup of our own, without its style; None where nothing can be placed."""
    roofline = None if observed.torch is None else observed.torch.roofline
    try:
        return render_roofline_svg(roofline, title=_PICTURE_TITLE, styled=False)
    except NoPictureError:
        return None


def build_roofline_view(observed: Observed) -> Block:
    """The picture, then the same as a table."""
    title = "Roofline"
    if observed.torch is None:
        return view("roofline", title, [missing(NO_TORCH)])
    roofline = observed.torch.roofline
    if roofline is None:
        return view("roofline", title, [missing(_NO_LIMITS, command="pyrometer limits")])
    if roofline.roofs is None:
        return view(
            "roofline", title, [missing(f"Not placed: {roofline.reason}.", command="pyrometer limits")]
        )
    blocks: list[Block] = []
    try:
        render_roofline_svg(roofline, title=_PICTURE_TITLE, styled=False)
        blocks.append({"type": "roofline"})
    except NoPictureError as error:
        blocks += [text(describe_roofs(roofline.roofs)), missing(f"No picture: {error}.")]
    blocks += [_table(_rows(roofline)), *small_print(_notes(roofline))]
    return view("roofline", title, blocks)


def _rows(roofline: Roofline) -> list[Placed]:
    steps = () if roofline.step is None else (roofline.step,)
    everything = (*steps, *roofline.phases, *roofline.modules, *roofline.operators)
    return [one for one in everything if one.bound is not Bound.NOT_PLACED]


def _notes(roofline: Roofline) -> list[str]:
    section = build_roofline_section(roofline, SPACIOUS, top=1)
    blocks = () if section is None else section.blocks[1:]
    lines = [line for block in blocks if isinstance(block, Lines) for line in block.lines]
    # Here all are shown.
    return [line for line in lines if "--top" not in line]


def _table(rows: Sequence[Placed]) -> Block:
    works = [one.work for one in rows]
    marks = [(" ≥" if work.at_least else "") + (" ≈" if work.estimated else "") for work in works]
    names = [
        (operator_name(work.name) if work.kind == "operator" else work.name) + mark
        for work, mark in zip(works, marks, strict=True)
    ]
    return grid(
        "roofline",
        heading="piece of work",
        names=names,
        columns=[
            GridColumn(heading="what", unit="text", values=[work.kind for work in works]),
            GridColumn(heading="bound", unit="text", values=[one.bound.value for one in rows]),
            GridColumn(
                heading="time",
                spelled="a step, or a call of a module or operator",
                unit="duration",
                values=[
                    work.duration_ns
                    if work.kind in {"step", "phase"}
                    else work.duration_ns / max(work.calls, 1)
                    for work in works
                ],
            ),
            GridColumn(
                heading="FLOP/B",
                spelled="FLOPs a byte",
                unit="digits",
                values=[one.intensity for one in rows],
            ),
            GridColumn(heading="GFLOP/s", unit="digits", values=[_giga(one.flops_per_s) for one in rows]),
            GridColumn(
                heading="% FLOP/s",
                spelled="% of the FLOP/s there are",
                unit="share",
                values=[one.compute_share for one in rows],
                bar=True,
            ),
            GridColumn(heading="GB/s", unit="digits", values=[_giga(one.bytes_per_s) for one in rows]),
            GridColumn(
                heading="% GB/s",
                spelled="% of the bandwidth there is",
                unit="share",
                values=[one.memory_share for one in rows],
                bar=True,
            ),
        ],
    )


def _giga(per_second: float | None) -> float | None:
    return None if per_second is None else per_second / 1e9
