"""The sampled stacks as a flame graph: one SVG file that can be zoomed and searched, and needs no other.

Where no script runs, as in a Markdown page, the picture drawn here is shown: all frames wide enough to
see. Where one does, ``flamegraph.js`` takes over and draws from the data.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from xml.sax.saxutils import escape

from pyrometer.analysis.frame_tree import TOP, Frame, FrameKind, FrameTree, with_children
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.record.run import Run
from pyrometer.report.safe_text import escape_controls, shorten_middle, visible
from pyrometer.report.sample_wording import frame_name
from pyrometer.units import format_count, format_duration, format_share

WIDTH = 1_200
ROW = 18
MARGIN = 10
LETTER = 6.7
_TITLE_Y = 22
_CONTROLS_Y = 32
_LEGEND_Y = 72
_DETAILS_Y = 94
_TOP = 104
_NARROWEST = 0.7
_MOST_DRAWN = 3_000
_LONGEST_NAME = 300

_COLOURS = {
    FrameKind.OWN: "#f08a5d",
    FrameKind.TORCH: "#f6c453",
    FrameKind.LIBRARY: "#a8cf8e",
    FrameKind.STDLIB: "#8fbfe0",
    FrameKind.PROFILER: "#e9a8c9",
    FrameKind.NATIVE: "#c0b2e6",
    FrameKind.WAITING: "#cfcfcf",
}
_KINDS = tuple(_COLOURS)
_ALL = "all"
_HINT = "Open this picture by itself to zoom, to search and to see each frame's share."

_STYLE = """
svg { background: #ffffff; }
text { font: 11px Menlo, "DejaVu Sans Mono", Consolas, monospace; fill: #1c1c1c; }
.title { font-size: 15px; font-weight: bold; }
.hint, .legend text { fill: #555555; }
.frame { cursor: pointer; outline: none; }
.frame text { pointer-events: none; }
.frame rect { stroke: none; }
.frame:hover rect, .frame:focus rect { stroke: #1c1c1c; stroke-width: 1.5; }
.above { opacity: 0.55; }
.frame.found rect { fill: #a3009b; }
.frame.found text { fill: #ffffff; }
.measure { font-size: 12px; font-weight: normal; fill: #555555; }
.controls { display: flex; gap: 8px; align-items: center; font: 12px sans-serif; color: #1c1c1c; }
.controls input, .controls button { font: inherit; padding: 2px 8px; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """The tree with one frame on top of all, its children widest first."""

    tree: FrameTree
    children: Sequence[Sequence[int]]
    tops: Sequence[int]
    cpu_ns: Sequence[int]
    """Of each node and all below."""
    samples: Sequence[int]
    all_cpu_ns: int
    all_samples: int


def render_flamegraph(run: Run, results: SampleResults) -> str:
    """The flame graph as an SVG file of its own."""
    graph = _graph(results.tree)
    script = files("pyrometer.report").joinpath("flamegraph.js").read_text(encoding="utf-8")
    program = _name(run.program.name)
    title = f"Flame graph of {program}"
    drawn = list(_drawn(graph))
    height = _TOP + ROW * (1 + max((depth for _, depth, _, _ in drawn), default=0)) + MARGIN
    measures = _measures(results)
    measure = f'<tspan class="measure" dx="12">{measures["cpu"]}</tspan>'
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {_size(height)}>',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}{_kind_styles()}</style>",
        f'<text class="title" x="{MARGIN}" y="{_TITLE_Y}">{escape(title)}{measure}</text>',
        f'<text class="hint" x="{MARGIN}" y="{_CONTROLS_Y + 16}">{_HINT}</text>',
        _legend(results.tree),
        f'<text class="details" x="{MARGIN}" y="{_DETAILS_Y}"></text>',
        f'<g class="frames">{"".join(_static_frame(graph, *entry) for entry in drawn)}</g>',
        f'<script class="data" type="application/json">{_data(graph, results, measures)}</script>',
        f"<script><![CDATA[\n{script}]]></script>",
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def _size(height: int) -> str:
    return f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'


def _measures(results: SampleResults) -> dict[str, str]:
    parts = results.overall.parts
    samples = format_count(results.samples, "sample")
    return {
        "cpu": f"{format_duration(parts.cpu_ns)} CPU time of all threads, {samples}",
        "wall": f"{format_duration(parts.wall_ns)} of all threads, {format_duration(parts.waiting_ns)} "
        f"of it waiting, {samples}",
    }


def _graph(tree: FrameTree) -> _Graph:
    cpu_ns = with_children(tree.parents, tree.cpu_ns)
    wall_ns = with_children(tree.parents, tree.wall_ns)
    children: list[list[int]] = [[] for _ in tree.parents]
    tops: list[int] = []
    for index in sorted(range(len(cpu_ns)), key=lambda node: (-cpu_ns[node], -wall_ns[node], node)):
        parent = tree.parents[index]
        (tops if parent == TOP else children[parent]).append(index)
    return _Graph(
        tree=tree,
        children=children,
        tops=tops,
        cpu_ns=cpu_ns,
        samples=with_children(tree.parents, tree.samples),
        all_cpu_ns=sum(cpu_ns[top] for top in tops),
        all_samples=sum(tree.samples),
    )


def _walk(graph: _Graph) -> Iterator[tuple[int, int]]:
    """Each node with its depth, a parent right before its children; on top of all are depth 1."""
    waiting = [(top, 1) for top in reversed(graph.tops)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(graph.children[node])]


def _drawn(graph: _Graph) -> Iterator[tuple[int, int, float, float]]:
    """The frames of the still picture: node, depth, where it begins and how wide it is."""
    room = WIDTH - 2 * MARGIN
    yield TOP, 0, float(MARGIN), float(room)
    if not graph.all_cpu_ns:
        return
    per_ns = room / graph.all_cpu_ns
    # Level by level: where there are more than a picture needs, the deepest are missing.
    level = [(float(MARGIN), graph.tops)]
    depth, drawn = 1, 0
    while level and drawn < _MOST_DRAWN:
        below: list[tuple[float, Sequence[int]]] = []
        for start, siblings in level:
            x = start
            for node in siblings:
                wide = graph.cpu_ns[node] * per_ns
                if wide < _NARROWEST:
                    break
                yield node, depth, x, wide
                drawn += 1
                below.append((x, graph.children[node]))
                x += wide
        level, depth = below, depth + 1


def _static_frame(graph: _Graph, node: int, depth: int, x: float, wide: float) -> str:
    y = _TOP + depth * ROW
    if node == TOP:
        name, kind, cpu_ns, samples = _ALL, f"k{len(_KINDS)}", graph.all_cpu_ns, graph.all_samples
    else:
        frame = graph.tree.frames[graph.tree.frame_of[node]]
        name, kind = _name(frame_name(frame)), f"k{_KINDS.index(frame.kind)}"
        cpu_ns, samples = graph.cpu_ns[node], graph.samples[node]
    share = format_share(cpu_ns / graph.all_cpu_ns) if graph.all_cpu_ns else "no CPU time"
    words = escape(f"{name}: {share}, {format_count(samples, 'sample')}")
    room = int((wide - 6) / LETTER)
    text = escape(shorten_middle(name, room)) if room >= 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + ROW - 5}">{text}</text>' if text else ""
    return (
        f'<g class="frame {kind}"><title>{words}</title>'
        f'<rect x="{x:.1f}" y="{y}" width="{max(wide - 0.4, 0.4):.1f}" height="{ROW - 1}"/>{label}</g>'
    )


def _data(graph: _Graph, results: SampleResults, measures: dict[str, str]) -> str:
    tree = graph.tree
    nodes = [0, len(tree.frames), 0, 0, 0]
    for node, depth in _walk(graph):
        nodes += (depth, tree.frame_of[node], tree.samples[node], tree.cpu_ns[node], tree.wall_ns[node])
    content = {
        "sizes": {
            "width": WIDTH,
            "row": ROW,
            "top": _TOP,
            "margin": MARGIN,
            "letter": LETTER,
            "controls": _CONTROLS_Y,
        },
        "measures": measures,
        "effective": results.effective_samples,
        "frames": [*map(_frame_row, tree.frames), [_ALL, "", len(_KINDS)]],
        "nodes": nodes,
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    # As JSON writes them, so that nothing in a name can end the element it stands in.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _frame_row(frame: Frame) -> list[str | int]:
    place = frame.module
    if frame.first_line is not None:
        place = f"{frame.module}, {frame.file.rpartition('/')[2]}:{frame.first_line}"
    return [
        _name(frame_name(frame)),
        shorten_middle(escape_controls(place), _LONGEST_NAME),
        _KINDS.index(frame.kind),
    ]


def _name(name: str) -> str:
    return shorten_middle(escape_controls(visible(name)), _LONGEST_NAME)


def _kind_styles() -> str:
    kinds = (f".k{index} rect {{ fill: {colour}; }}" for index, colour in enumerate(_COLOURS.values()))
    return "\n".join((*kinds, f".k{len(_KINDS)} rect {{ fill: #e6e2da; }}", ""))


def _legend(tree: FrameTree) -> str:
    """The colours of the kinds that occur."""
    present = {tree.frames[frame].kind for frame in set(tree.frame_of)}
    x, parts = MARGIN, []
    for kind, colour in _COLOURS.items():
        if kind in present:
            parts.append(f'<rect x="{x}" y="{_LEGEND_Y - 10}" width="12" height="12" fill="{colour}"/>')
            parts.append(f'<text x="{x + 17}" y="{_LEGEND_Y}">{kind.value}</text>')
            x += 17 + round(LETTER * len(kind.value)) + 16
    return f'<g class="legend">{"".join(parts)}</g>'
