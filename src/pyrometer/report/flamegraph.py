"""The sampled stacks as a flame graph: one SVG file that can be zoomed and searched, and needs no other.

Where no script runs, as in a Markdown page, the picture drawn here is shown: all frames wide enough to
see. Where one does, ``flamegraph.js`` takes over and draws from the data.
"""

import json
from collections.abc import Callable, Iterator, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a flame graph shows beside its tree of frames; nodes are those of the tree, ``TOP`` is all."""

    title: str
    measures: dict[str, str]
    """What widths are of: by ``cpu`` time and, where that can be shown too, by ``wall`` time."""
    effective_samples: float
    styles: str
    """The colours of the kinds that ``kind_of`` tells, each a class: ``k0`` and so on."""
    legend: str
    kind_of: Callable[[int], int]
    note_of: Callable[[int], str] | None = None
    """What is said of a frame after its share."""
    below: Sequence[str] = ()
    """Lines below the frames."""


def render_flamegraph(run: Run, results: SampleResults) -> str:
    """The flame graph as an SVG file of its own."""
    tree = results.tree
    return draw_flamegraph(
        tree,
        Look(
            title=f"Flame graph of {_name(run.program.name)}",
            measures=_measures(results),
            effective_samples=results.effective_samples,
            styles=_kind_styles(),
            legend=_legend(tree),
            kind_of=lambda node: len(_KINDS) if node == TOP else _kind_of_frame(tree, node),
        ),
    )


def draw_flamegraph(tree: FrameTree, look: Look, *, within: str = "") -> str:
    """A tree of frames as an SVG file of its own, as wide as their CPU time; ``within`` as for its style."""
    graph = _graph(tree)
    script = flamegraph_script()
    drawn = list(_drawn(graph))
    deepest = _TOP + ROW * (1 + max((depth for _, depth, _, _ in drawn), default=0))
    height = deepest + ROW * len(look.below) + MARGIN
    measure = f'<tspan class="measure" dx="12">{escape(look.measures["cpu"])}</tspan>'
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {_size(height)}>',
        f"<title>{escape(look.title)}</title>",
        f"<style>{flamegraph_style(look, within=within)}</style>",
        f'<text class="title" x="{MARGIN}" y="{_TITLE_Y}">{escape(look.title)}{measure}</text>',
        f'<text class="hint" x="{MARGIN}" y="{_CONTROLS_Y + 16}">{_HINT}</text>',
        look.legend,
        f'<text class="details" x="{MARGIN}" y="{_DETAILS_Y}"></text>',
        f'<g class="frames">{"".join(_static_frame(graph, look, entry) for entry in drawn)}</g>',
        *_below(look.below, deepest),
        f'<script class="data" type="application/json">{_data(graph, look)}</script>',
        f"<script><![CDATA[{script}]]></script>",
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def flamegraph_script() -> str:
    """The script in every flame graph, as a policy has to name it."""
    return "\n" + files("pyrometer.report").joinpath("flamegraph.js").read_text(encoding="utf-8")


def flamegraph_style(look: Look, *, within: str = "") -> str:
    """The style in it, likewise; in a page only for what is ``within`` elements of this selector."""
    style = f"{_STYLE}{look.styles}"
    if not within:
        return style
    rules = (line.partition("{") for line in style.splitlines() if line)
    return "\n".join(
        f"{', '.join(f'{within} {selector.strip()}' for selector in selectors.split(','))} {{{rest}"
        for selectors, _, rest in rules
    )


def _below(lines: Sequence[str], deepest: int) -> Iterator[str]:
    """Lines under the frames; the script moves them as those grow deeper."""
    if lines:
        texts = (
            f'<text x="{MARGIN}" y="{ROW * (index + 1)}">{escape(line)}</text>'
            for index, line in enumerate(lines)
        )
        yield f'<g class="below" transform="translate(0 {deepest})">{"".join(texts)}</g>'


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


def _static_frame(graph: _Graph, look: Look, drawn: tuple[int, int, float, float]) -> str:
    node, depth, x, wide = drawn
    y = _TOP + depth * ROW
    if node == TOP:
        name, cpu_ns, samples = _ALL, graph.all_cpu_ns, graph.all_samples
    else:
        frame = graph.tree.frames[graph.tree.frame_of[node]]
        name, cpu_ns, samples = _name(frame_name(frame)), graph.cpu_ns[node], graph.samples[node]
    share = format_share(cpu_ns / graph.all_cpu_ns) if graph.all_cpu_ns else "no CPU time"
    note = "" if look.note_of is None else f", {look.note_of(node)}"
    words = escape(f"{name}: {share}{note}, {format_count(samples, 'sample')}")
    room = int((wide - 6) / LETTER)
    text = escape(shorten_middle(name, room)) if room >= 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + ROW - 5}">{text}</text>' if text else ""
    return (
        f'<g class="frame k{look.kind_of(node)}"><title>{words}</title>'
        f'<rect x="{x:.1f}" y="{y}" width="{max(wide - 0.4, 0.4):.1f}" height="{ROW - 1}"/>{label}</g>'
    )


def _data(graph: _Graph, look: Look) -> str:
    tree = graph.tree
    nodes = [0, len(tree.frames), 0, 0, 0]
    walked = list(_walk(graph))
    for node, depth in walked:
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
        "measures": look.measures,
        "effective": look.effective_samples,
        "frames": [*map(_frame_row, tree.frames), [_ALL, "", len(_KINDS)]],
        "nodes": nodes,
    }
    if look.note_of is not None:
        # Said, and coloured, place by place, and not by what the frame is.
        places = [TOP, *(node for node, _ in walked)]
        content["kinds"] = [look.kind_of(node) for node in places]
        content["notes"] = [look.note_of(node) for node in places]
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    # As JSON writes them, so that nothing in a name can end the element it stands in.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _kind_of_frame(tree: FrameTree, node: int) -> int:
    return _KINDS.index(tree.frames[tree.frame_of[node]].kind)


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
