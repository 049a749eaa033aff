"""The system map as an SVG: readable by itself, in Markdown and on a page."""

import math
from collections.abc import Callable, Iterator, Mapping
from html import escape

from pyrometer.analysis.codemap.imports import Edge
from pyrometer.analysis.codemap.picture import Box, SystemMap
from pyrometer.record.code_map import ImportKind
from pyrometer.report.safe_text import escape_controls, shorten_middle
from pyrometer.units import format_count

_CHARACTER_WIDTH = 6.6
_LEGEND_HEIGHT = 34.0
_STYLE = """
.back { fill: #ffffff; }
.box { fill: #eef1f4; stroke: #8a94a0; }
.name { font: 600 12px system-ui, sans-serif; fill: #1f2328; }
.heated .name, .heated .size { fill: #1f1b16; }
.size { font: 10.5px system-ui, sans-serif; fill: #4b535c; }
.legend { font: 11px system-ui, sans-serif; fill: #4b535c; }
.edge { fill: none; stroke: #5d7288; }
.upwards { stroke: #b8420a; }
.types { stroke-dasharray: 4 4; }
@media (prefers-color-scheme: dark) {
  .back { fill: #1b1e22; } .box { fill: #2a3037; stroke: #66707b; }
  .name { fill: #e7e9ec; } .size, .legend { fill: #a9b1bb; } .edge { stroke: #8fa3b8; }
  .upwards { stroke: #ff9a62; } .heated .name, .heated .size { fill: #1f1b16; }
}
"""


def draw_map_svg(
    picture: SystemMap,
    *,
    title: str,
    colors: Mapping[str, str] | None = None,
    warmer: str | None = None,
    said: Callable[[str], str] | None = None,
) -> str:
    """The picture; ``colors`` are those of boxes by their names, and ``warmer`` says what they stand for.

    ``said`` is what else is told of a box.
    """
    height = picture.height + _LEGEND_HEIGHT
    extent = f"{picture.width:.0f} {height:.0f}"
    legend = _legend(picture, warmer)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {extent}" role="img">',
            f"<title>{_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="back" width="{picture.width:.0f}" height="{height:.0f}"/>',
            *_edges(picture),
            *_boxes(picture, colors or {}, said),
            f'<text class="legend" x="20" y="{height - 12:.0f}">{_text(legend)}</text>',
            "</svg>",
        )
    )


def _edges(picture: SystemMap) -> Iterator[str]:
    boxes = {box.name: box for box in picture.boxes}
    for edge in picture.edges:
        start, end = boxes[edge.importer], boxes[edge.imported]
        path = _curve(start, end)
        upwards = " upwards" if _goes_up(start, end) else ""
        if edge.kinds == {ImportKind.TYPING}:
            upwards = " types"
        width = 0.7 + math.log2(1 + edge.weight) / 2
        yield (
            f'<path class="edge{upwards}" d="{path}" stroke-width="{width:.1f}" stroke-opacity="0.45">'
            f"<title>{_text(_told(edge))}</title></path>"
        )


def _goes_up(start: Box, end: Box) -> bool:
    return start.layer is not None and end.layer is not None and end.layer >= start.layer


def _curve(start: Box, end: Box) -> str:
    """From below who imports to above what is imported; within a line, and upwards, round the side."""
    if start.y + start.height <= end.y:
        from_y, to_y = start.y + start.height, end.y
        bend = (to_y - from_y) / 2
        return (
            f"M{start.middle:.1f} {from_y:.1f} C{start.middle:.1f} {from_y + bend:.1f} "
            f"{end.middle:.1f} {to_y - bend:.1f} {end.middle:.1f} {to_y:.1f}"
        )
    from_y, to_y = start.y, end.y + end.height
    if end.y < start.y and to_y <= from_y:
        bend = (from_y - to_y) / 2
        return (
            f"M{start.middle:.1f} {from_y:.1f} C{start.middle:.1f} {from_y - bend:.1f} "
            f"{end.middle:.1f} {to_y + bend:.1f} {end.middle:.1f} {to_y:.1f}"
        )
    top = min(start.y, end.y) - 22
    return (
        f"M{start.middle:.1f} {start.y:.1f} C{start.middle:.1f} {top:.1f} "
        f"{end.middle:.1f} {top:.1f} {end.middle:.1f} {end.y:.1f}"
    )


def _boxes(picture: SystemMap, colors: Mapping[str, str], said: Callable[[str], str] | None) -> Iterator[str]:
    for box in picture.boxes:
        name = shorten_middle(escape_controls(box.name), max(int(box.width / _CHARACTER_WIDTH) - 1, 8))
        fill = f' style="fill:{colors[box.name]}"' if box.name in colors else ""
        heated = ' class="heated"' if fill else ""
        told = f"{box.name}: {format_count(box.code, 'line')} of code in {format_count(box.files, 'file')}"
        more = "" if said is None else said(box.name)
        middle = box.y + box.height / 2
        yield (
            f"<g{heated}><title>{_text(told + more)}</title>"
            f'<rect class="box"{fill} x="{box.x:.1f}" y="{box.y:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="5"/>'
            f'<text class="name" text-anchor="middle" x="{box.middle:.1f}" y="{middle - 1:.1f}">'
            f'{_text(name)}</text><text class="size" text-anchor="middle" x="{box.middle:.1f}" '
            f'y="{middle + 12:.1f}">{box.code:,}</text></g>'
        )


def _told(edge: Edge) -> str:
    return f"{edge.importer} imports {edge.imported}: {format_count(edge.weight, 'statement')}"


def _legend(picture: SystemMap, warmer: str | None) -> str:
    parts = ["A box is a module, by its lines of code", "a line goes down to what is imported"]
    if any(edge.kinds == {ImportKind.TYPING} for edge in picture.edges):
        parts.append("dashed: for types only")
    if warmer is not None:
        parts.append(f"the warmer, the more {warmer}")
    if picture.all_edges > len(picture.edges):
        parts.append(f"the {len(picture.edges)} heaviest of {picture.all_edges} edges")
    if picture.together:
        parts.append(f"the {len(picture.together)} smallest are one box")
    return "; ".join(parts) + "."


def _text(text: str) -> str:
    return escape(escape_controls(text), quote=True)
