"""The system map: where each part stands, how large it is, and the lines between them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyrometer.analysis.codemap.imports import Edge, ImportSite, edges_from
from pyrometer.analysis.codemap.inventory import Part
from pyrometer.analysis.codemap.results import Level, MapResults, level_below, level_of

MOST_BOXES = 40
MOST_LINKS = 160
OTHERS = "(others)"

WIDTH = 1_000.0
_MARGIN = 20.0
_GAP = 18.0
_WIDEST_GAP = 90.0
_ROW_GAPS = (26.0, 64.0)
"""The more layers there are, the nearer they are to each other."""
_USUAL_HEIGHT = 860.0
_LEAST = (92.0, 36.0)
_LARGEST = (230.0, 92.0)
_SWEEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A part, from its upper left corner on."""

    name: str
    x: float
    y: float
    width: float
    height: float
    code: int
    files: int
    layer: int | None
    """From 1, the lowest; None where it has nothing to do with the others."""

    @property
    def middle(self) -> float:
        """Of its width."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMap:
    """A picture of a level: boxes sized by code, layer upon layer, and edges by how many imports they are."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    """Those that are drawn, the heaviest first."""
    all_edges: int
    together: tuple[str, ...]
    """The small parts that are one box, with the name ``OTHERS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    code: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelToDraw:
    """The parts directly below another, of very many the small ones as one with the name ``OTHERS``."""

    level: Level
    sizes: Mapping[str, _Size]
    together: tuple[str, ...]
    """The small ones."""


def level_to_draw(results: MapResults, part: Part | None = None) -> LevelToDraw:
    """The parts directly below where the map starts, or below another part."""
    whole = results.start if part is None else part
    sizes = {
        inner.name: _Size(code=inner.lines.code, files=inner.file_count) for inner in whole.parts.values()
    }
    if whole.own_name is not None:
        code = sum(file.lines.code for file in whole.files)
        sizes[whole.own_name] = _Size(code=code, files=len(whole.files))
    return _grouped(level_below(whole, results.edges), sizes)


def draw_system_map(results: MapResults, part: Part | None = None) -> SystemMap:
    """The picture of the parts directly below where the map starts, or below another part."""
    found = level_to_draw(results, part)
    drawn = sorted(found.level.edges, key=lambda edge: (-edge.weight, edge.importer, edge.imported))
    boxes, height = _placed(found.level, found.sizes)
    return SystemMap(
        width=WIDTH,
        height=height,
        boxes=boxes,
        edges=tuple(drawn[:MOST_LINKS]),
        all_edges=len(drawn),
        together=found.together,
    )


def _grouped(level: Level, sizes: Mapping[str, _Size]) -> LevelToDraw:
    """Of very many parts the small ones as one; those with most code stay by themselves."""
    by_code = sorted(sizes, key=lambda name: (-sizes[name].code, name))
    if len(by_code) <= MOST_BOXES:
        return LevelToDraw(level=level, sizes=sizes, together=())
    kept, small = by_code[: MOST_BOXES - 1], by_code[MOST_BOXES - 1 :]
    stands_for = dict.fromkeys(small, OTHERS)
    joined: dict[tuple[str, str], list[ImportSite]] = {}
    for edge in level.edges:
        one, other = (stands_for.get(name, name) for name in (edge.importer, edge.imported))
        if one != other:
            joined.setdefault((one, other), []).extend(edge.sites)
    new_sizes = {name: sizes[name] for name in kept}
    new_sizes[OTHERS] = _Size(
        code=sum(sizes[name].code for name in small), files=sum(sizes[name].files for name in small)
    )
    return LevelToDraw(
        level=level_of(tuple(new_sizes), edges_from(joined)), sizes=new_sizes, together=tuple(small)
    )


def _placed(level: Level, sizes: Mapping[str, _Size]) -> tuple[tuple[Box, ...], float]:
    linked = {name for layer in level.layers for name in layer}
    apart = sorted(name for name in sizes if name not in linked)
    rows = [*reversed(_ordered(level)), *([apart] if apart else [])]
    largest = max((size.code for size in sizes.values()), default=1) or 1
    extents = {name: _extent(size.code, largest) for name, size in sizes.items()}
    layer_of = {name: number for number, layer in enumerate(level.layers, start=1) for name in layer}
    boxes: list[Box] = []
    y = _MARGIN
    lines_of_rows = [_lines(row, extents) for row in rows]
    row_gap = _row_gap(lines_of_rows, extents)
    for lines in lines_of_rows:
        for line in lines:
            taken = sum(extents[name][0] for name in line)
            gap = min(max((WIDTH - 2 * _MARGIN - taken) / (len(line) + 1), _GAP), _WIDEST_GAP)
            x = (WIDTH - taken - gap * (len(line) - 1)) / 2
            tallest = max(extents[name][1] for name in line)
            for name in line:
                width, height = extents[name]
                boxes.append(
                    Box(
                        name=name,
                        x=x,
                        y=y + (tallest - height) / 2,
                        width=width,
                        height=height,
                        code=sizes[name].code,
                        files=sizes[name].files,
                        layer=layer_of.get(name),
                    )
                )
                x += width + gap
            y += tallest + _GAP
        y += row_gap - _GAP
    return tuple(boxes), max(y - row_gap + _MARGIN, 2 * _MARGIN)


def _row_gap(rows: Sequence[Sequence[Sequence[str]]], extents: Mapping[str, tuple[float, float]]) -> float:
    taken = sum(max(extents[name][1] for name in line) + _GAP for lines in rows for line in lines)
    least, most = _ROW_GAPS
    return min(max((_USUAL_HEIGHT - taken) / max(len(rows), 1), least), most)


def _extent(code: int, largest: int) -> tuple[float, float]:
    """Width and height: the area is in proportion to the code, as far as a name still fits."""
    side = math.sqrt(code / largest)
    return max(_LARGEST[0] * side, _LEAST[0]), max(_LARGEST[1] * side, _LEAST[1])


def _lines(row: Sequence[str], extents: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """A layer that is too wide goes over several lines."""
    lines: list[list[str]] = [[]]
    left = WIDTH - 2 * _MARGIN
    for name in row:
        width = extents[name][0]
        if lines[-1] and width > left:
            lines.append([])
            left = WIDTH - 2 * _MARGIN
        lines[-1].append(name)
        left -= width + _GAP
    return lines


def _ordered(level: Level) -> list[list[str]]:
    """The layers, each in an order in which lines cross little: everybody near what it is linked to."""
    layers = [list(layer) for layer in level.layers]
    beside: dict[str, list[str]] = {}
    for edge in level.edges:
        beside.setdefault(edge.importer, []).append(edge.imported)
        beside.setdefault(edge.imported, []).append(edge.importer)
    place = {name: _share(layer, name) for layer in layers for name in layer}
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wished = {name: _average([place[other] for other in beside.get(name, ())]) for name in layer}
            layer.sort(key=lambda name: (wished[name], name))
            place.update((name, _share(layer, name)) for name in layer)
    return layers


def _share(layer: Sequence[str], name: str) -> float:
    return (layer.index(name) + 0.5) / len(layer)


def _average(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.5
