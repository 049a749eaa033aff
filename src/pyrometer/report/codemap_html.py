"""A code map as one HTML page: a picture to click through, tables to sort and search."""

from collections.abc import Iterator, Sequence

from pyrometer._version import __version__
from pyrometer.analysis.codemap.heat import Heat, HeatBy, HotFunction, MapHeat
from pyrometer.analysis.codemap.inventory import Part, PlacedFunction, functions_by
from pyrometer.analysis.codemap.picture import OTHERS, SystemMap, draw_system_map
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.report.codemap_heat import HEAT_NAMES, box_heats, heat_colors, heat_sections
from pyrometer.report.codemap_sections import dependency_sections, inventory_sections, skipped_section
from pyrometer.report.page_shell import fill_page
from pyrometer.report.page_views.blocks import (
    Block,
    GridColumn,
    from_sections,
    grid,
    name_of,
    one_group,
    view,
)
from pyrometer.report.safe_text import escape_controls
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_MOST_PICTURES = 400
_MOST_FUNCTIONS = 12
_TOP = 20


def render_map_html(results: MapResults, heat: MapHeat | None = None, heat_by: HeatBy = HeatBy.OWN) -> str:
    """The page; boxes and functions are by the run's heat where there is one, else by what they are."""
    name = results.name
    views = [
        view("map", "System map", (_picture_block(results, heat, heat_by, name),)),
        *(
            []
            if heat is None
            else [view("heat", "Heat", from_sections(heat_sections(results, heat, top=_TOP)))]
        ),
        _modules_view(results, heat),
        _functions_view(results, heat),
        _edges_view(results),
        view("dependencies", "Dependencies", from_sections(dependency_sections(results, top=_TOP))),
        view("inventory", "Inventory", from_sections(inventory_sections(results, top=_TOP))),
        view(
            "skipped",
            "Not read",
            from_sections((skipped_section(results.code, top=None),)),
            count=len(results.code.skipped),
        ),
    ]
    files = format_count(results.tree.file_count, "file")
    return fill_page(
        subject=f"Map of {name}",
        command=f"pyrometer map {name}",
        contents={
            "headline": {
                "program": f"Map of {escape_controls(name)}",
                "ending": f"{files}, {format_count(results.tree.lines.code, 'line')} of code",
                "started": results.code.made_at,
                "version": __version__,
            },
            "groups": one_group("Map", views),
        },
        views=views,
    )


# The picture.


def _picture_block(results: MapResults, heat: MapHeat | None, heat_by: HeatBy, name: str) -> Block:
    pictures = [(part, draw_system_map(results, part)) for part in _pictured(results)]
    functions = _functions_by_part(results, heat)
    hint = "Click a module to see what it holds" + ("" if heat is None else ", and where its time went") + "."
    return {
        "type": "codemap",
        "name": name_of(name),
        "start": results.start.dotted,
        "hint": hint,
        "warmths": [] if heat is None else [[one.value, HEAT_NAMES[one]] for one in heat.kinds],
        "warmth": heat_by.value,
        "functions": "most complex functions" if heat is None else "hot functions",
        "columns": ["complexity", "lines", "where"] if heat is None else ["own", "%", "where"],
        "pictures": {part.dotted: _picture(picture, part, heat) for part, picture in pictures},
        "parts": {
            part.dotted: {
                "facts": [[label, value] for label, value in _facts(part, heat)],
                "functions": functions.get(part.path, []),
            }
            for part in results.tree.walk()
        }
        | {
            ".".join((*part.path, OTHERS)): {"facts": _facts_of_others(picture), "functions": []}
            for part, picture in pictures
            if picture.together
        }
        | {
            ".".join((*part.path, part.own_name)): {"facts": _facts_of_own_files(part, heat), "functions": []}
            for part, _ in pictures
            if part.own_name is not None
        },
    }


def _facts_of_others(picture: SystemMap) -> list[list[str]]:
    box = next(box for box in picture.boxes if box.name == OTHERS)
    return [
        ["modules", name_of(", ".join(picture.together))],
        ["files", f"{box.files:,}"],
        ["lines", f"{box.code:,} code"],
    ]


def _facts_of_own_files(part: Part, heat: MapHeat | None) -> list[list[str]]:
    """Of a package: what is directly in it."""
    alone = Part(path=part.path, files=part.files)
    for file in part.files:
        alone.add(file)
    facts = [[label, value] for label, value in _facts(alone, None)]
    met = [] if heat is None else [its for file in part.files if (its := heat.files.get(file.path))]
    if heat is not None and met:
        own = Heat(own_ns=sum(its.own_ns for its in met))
        facts.append(
            ["CPU time", f"{format_share(heat.share(own))}, {format_duration(own.own_ns)} of its own"]
        )
    return facts


def _pictured(results: MapResults) -> Iterator[Part]:
    """Those that are worth a look into: several parts in them; the largest, where there are very many."""
    worth = [part for part in results.tree.walk() if not part.path or part.parts]
    worth.sort(key=lambda part: (part is not results.start, len(part.path), -part.lines.code))
    yield from worth[:_MOST_PICTURES]


def _picture(picture: SystemMap, inside: Part, heat: MapHeat | None) -> Block:
    names = [box.name for box in picture.boxes]
    colors: dict[HeatBy, dict[str, str]] = {}
    if heat is not None:
        for by in heat.kinds:
            warmths = box_heats(names, picture.together, inside, heat, by)
            colors[by] = heat_colors(warmths) if any(warmths.values()) else {}
    return {
        "width": round(picture.width),
        "height": round(picture.height),
        "boxes": [
            {
                "name": name_of(box.name),
                "x": round(box.x, 1),
                "y": round(box.y, 1),
                "width": round(box.width, 1),
                "height": round(box.height, 1),
                "code": box.code,
                "colours": {by.value: its[box.name] for by, its in colors.items() if box.name in its},
            }
            for box in picture.boxes
        ],
        "edges": [[name_of(edge.importer), name_of(edge.imported), edge.weight] for edge in picture.edges],
    }


def _facts(part: Part, heat: MapHeat | None) -> Iterator[tuple[str, str]]:
    yield "files", f"{part.file_count:,}"
    kinds = {name: getattr(part.lines, name) for name in ("code", "comment", "docstring", "blank")}
    yield "lines", ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    yield "functions, classes", f"{part.function_count:,}, {part.class_count:,}"
    yield "complexity", f"{part.complexity:,}"
    if heat is not None:
        its = heat.parts.get(part.path) if part.path else None
        if its is not None:
            own, total = format_duration(its.own_ns), format_duration(its.total_ns)
            yield "CPU time", f"{format_share(heat.share(its))}, {own} of its own; {total} while on the stack"
            if its.allocated_bytes is not None:
                yield "allocated", format_bytes(its.allocated_bytes)


def _functions_by_part(results: MapResults, heat: MapHeat | None) -> dict[tuple[str, ...], list[list[str]]]:
    """The functions to be shown with each part, as cells."""
    owner = {file.path: part.path for part in results.tree.walk() for file in part.files}
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for path, cells in _cells(results, heat):
        part = owner[path]
        for depth in range(len(part) + 1):
            rows = found.setdefault(part[:depth], [])
            if len(rows) < _MOST_FUNCTIONS:
                rows.append(cells)
    return found


def _cells(results: MapResults, heat: MapHeat | None) -> Iterator[tuple[str, list[str]]]:
    if heat is not None:
        for one in (one for one in heat.functions if one.heat.own_ns):
            yield (
                one.place.file.path,
                [
                    name_of(one.place.function.name),
                    format_duration(one.heat.own_ns),
                    format_share(heat.share(one.heat)),
                    name_of(_where(one.place)),
                ],
            )
        return
    for placed in functions_by(results.code.files, complexity=True, count=results.tree.function_count):
        yield (
            placed.file.path,
            [
                name_of(placed.function.name),
                f"{placed.function.complexity:,}",
                f"{placed.function.lines:,}",
                name_of(_where(placed)),
            ],
        )


def _where(placed: PlacedFunction) -> str:
    return f"{placed.file.path}:{placed.function.line}"


# Tables.


def _modules_view(results: MapResults, heat: MapHeat | None) -> Block:
    parts = [part for part in results.tree.walk() if part.path]
    number = {part.path: index for index, part in enumerate(parts)}
    its = [None if heat is None else heat.parts.get(part.path) for part in parts]
    columns = [
        *_heat_columns(heat, its),
        GridColumn(heading="code", unit="count", values=[part.lines.code for part in parts]),
        GridColumn(heading="lines", unit="count", values=[part.lines.total for part in parts]),
        GridColumn(heading="comment", unit="count", values=[part.lines.comment for part in parts]),
        GridColumn(heading="docstring", unit="count", values=[part.lines.docstring for part in parts]),
        GridColumn(heading="files", unit="count", values=[part.file_count for part in parts]),
        GridColumn(heading="functions", unit="count", values=[part.function_count for part in parts]),
        GridColumn(heading="complexity", unit="count", values=[part.complexity for part in parts]),
    ]
    table = grid(
        "modules",
        heading="module",
        names=[part.name for part in parts],
        full_names=[part.dotted for part in parts],
        parents=[number.get(part.path[:-1], -1) for part in parts],
        columns=columns,
        sort=0,
        closed=True,
    )
    return view("modules", "Modules", (table,), count=len(parts))


def _heat_columns(heat: MapHeat | None, its: Sequence[Heat | None]) -> list[GridColumn]:
    if heat is None:
        return []
    return [
        GridColumn(
            heading="own", unit="duration", values=[None if one is None else one.own_ns for one in its]
        ),
        GridColumn(
            heading="%",
            unit="share",
            values=[None if one is None else heat.share(one) for one in its],
            bar=True,
        ),
        GridColumn(
            heading="total", unit="duration", values=[None if one is None else one.total_ns for one in its]
        ),
        GridColumn(
            heading="allocated",
            unit="bytes",
            values=[None if one is None else one.allocated_bytes for one in its],
        ),
    ]


def _functions_view(results: MapResults, heat: MapHeat | None) -> Block:
    every = functions_by(results.code.files, complexity=True, count=results.tree.function_count)
    met: dict[tuple[str, int, str], HotFunction] = {}
    if heat is not None:
        met = {_key(one.place): one for one in heat.functions}
    hot = [met.get(_key(one)) for one in every]
    columns = [
        *_heat_columns(heat, [None if one is None else one.heat for one in hot]),
        GridColumn(heading="complexity", unit="count", values=[one.function.complexity for one in every]),
        GridColumn(heading="lines", unit="count", values=[one.function.lines for one in every]),
        GridColumn(heading="where", unit="text", values=[_where(one) for one in every], width=260),
    ]
    table = grid(
        "functions", heading="function", names=[one.function.name for one in every], columns=columns, sort=0
    )
    return view("functions", "Functions", (table,), count=len(every))


def _key(placed: PlacedFunction) -> tuple[str, int, str]:
    return placed.file.path, placed.function.line, placed.function.name


def _edges_view(results: MapResults) -> Block:
    edges = results.imports.edges
    table = grid(
        "imports",
        heading="module",
        names=[edge.importer for edge in edges],
        columns=[
            GridColumn(heading="imports", unit="text", values=[edge.imported for edge in edges], width=280),
            GridColumn(heading="statements", unit="count", values=[edge.weight for edge in edges]),
            GridColumn(
                heading="when",
                unit="text",
                values=[", ".join(sorted(edge.kinds)) for edge in edges],
                width=140,
            ),
        ],
        sort=1,
    )
    return view("imports", "Imports", (table,), count=len(edges))
