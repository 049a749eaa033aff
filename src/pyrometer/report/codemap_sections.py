"""What a code map says, as sections: the inventory, the dependencies, and what was left out."""

from collections.abc import Iterable, Iterator, Sequence

from pyrometer.analysis.codemap.cycles import Cycle
from pyrometer.analysis.codemap.imports import Edge
from pyrometer.analysis.codemap.inventory import (
    Part,
    PlacedFunction,
    functions_by,
    languages_of,
    largest_files,
)
from pyrometer.analysis.codemap.packages import ExternalPackage
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.record.code_map import CodeMap, ImportKind, LineCounts
from pyrometer.report.blocks import Bullets, Column, Emphasis, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.units import format_count

DEFAULT_TOP = 15
_LISTED = 5
_NAMED = 10
_KIND_WORDS = {
    ImportKind.CONDITIONAL: "conditional",
    ImportKind.LAZY: "lazy",
    ImportKind.TYPING: "for types",
}

_OF_LINES = (
    Column(heading="files", dropped=3),
    Column(heading="lines", dropped=1),
    Column(heading="code"),
    Column(heading="comment", dropped=4),
    Column(heading="docstring", dropped=5),
    Column(heading="blank", dropped=6),
)
_OF_CODE = (
    Column(heading="functions", dropped=7),
    Column(heading="classes", dropped=8),
    Column(heading="complexity", dropped=2),
)


def inventory_sections(results: MapResults, *, top: int | None) -> Iterator[Section]:
    """What there is: languages, modules, the largest files and functions."""
    yield _languages(results)
    yield _modules(results, top=top)
    yield _largest(results, top=top)
    for title, complexity in (("Most complex functions", True), ("Longest functions", False)):
        count = results.tree.function_count
        found = functions_by(results.code.files, complexity=complexity, count=top or count)
        yield _functions(title, found, left=count - len(found))


def tree_section(results: MapResults) -> Section:
    """Every part, at every depth."""
    rows = tuple(
        Row(name=part.dotted, cells=(*_line_cells(part.lines, part.file_count), *_code_cells(part)))
        for part in results.tree.walk()
        if part.path
    )
    return Section(title="All modules", blocks=(_table((*_OF_LINES, *_OF_CODE), rows, names="module"),))


def _languages(results: MapResults) -> Section:
    found = languages_of(results.code.files)
    rows = [Row(name=one.language, cells=_line_cells(one.lines, one.files)) for one in found]
    if len(rows) > 1:
        rows.append(_total(results.tree.lines, results.tree.file_count))
    return Section(title="Languages", blocks=(_table(_OF_LINES, rows, names="language"),))


def _total(lines: LineCounts, files: int, *more: str) -> Row:
    return Row(name="all", cells=(*_line_cells(lines, files), *more), total=True, emphasis=Emphasis.STRONG)


def _modules(results: MapResults, *, top: int | None) -> Section:
    parts = results.tree.sorted_parts()
    shown = parts[:top]
    rows = [_part_row(part) for part in shown]
    rows.append(_total(results.tree.lines, results.tree.file_count, *_code_cells(results.tree)))
    return Section(
        title="Modules",
        blocks=(
            _table((*_OF_LINES, *_OF_CODE), rows, names="module"),
            *notes(_more(len(parts) - len(shown), "smaller module")),
        ),
    )


def _part_row(part: Part) -> Row:
    return Row(name=part.name, cells=(*_line_cells(part.lines, part.file_count), *_code_cells(part)))


def _line_cells(lines: LineCounts, files: int) -> tuple[str, ...]:
    counts = (files, lines.total, lines.code, lines.comment, lines.docstring, lines.blank)
    return tuple(f"{count:,}" for count in counts)


def _code_cells(part: Part) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in (part.function_count, part.class_count, part.complexity))


def _largest(results: MapResults, *, top: int | None) -> Section:
    found = largest_files(results.tree, top or results.tree.file_count)
    rows = tuple(
        Row(
            name=file.path,
            cells=(*_line_cells(file.lines, 1)[1:], f"{len(file.functions):,}", f"{file.complexity:,}"),
        )
        for file in found
    )
    columns = (*_OF_LINES[1:], _OF_CODE[0], _OF_CODE[2])
    generated = sum(file.is_generated for file in results.code.files)
    told = (
        [f"{format_count(generated, 'file')} that says it is generated is left out."]
        if generated == 1
        else []
    )
    if generated > 1:
        told = [f"{format_count(generated, 'file')} that say they are generated are left out."]
    return Section(title="Largest files", blocks=(_table(columns, rows, names="file"), *notes(told)))


def _functions(title: str, found: Sequence[PlacedFunction], *, left: int) -> Section:
    rows = tuple(
        Row(
            name=one.function.name,
            cells=(
                f"{one.function.complexity:,}",
                f"{one.function.lines:,}",
                f"{one.file.path}:{one.function.line}",
            ),
        )
        for one in found
    )
    columns = (
        Column(heading="complexity"),
        Column(heading="lines"),
        Column(heading="where", left=True, widest=60, dropped=1),
    )
    return Section(
        title=title, blocks=(_table(columns, rows, names="function"), *notes(_more(left, "more function")))
    )


def dependency_sections(results: MapResults, *, top: int | None) -> Iterator[Section]:
    """What depends on what: between parts, between modules, and on packages from elsewhere."""
    yield _parts_and_layers(results, top=top)
    yield _edges(results, top=top)
    yield _busiest(results, top=top)
    yield _cycles(results.cycles, top=top)
    yield _packages(results, top=top)


def _parts_and_layers(results: MapResults, *, top: int | None) -> Section:
    level = results.top
    layer_of = {name: number for number, layer in enumerate(level.layers, start=1) for name in layer}
    imported, imports = dict(level.depended_on), dict(level.depending)
    rows = tuple(
        Row(
            name=name,
            cells=(
                f"{layer_of[name]}",
                f"{imports[name]:,}",
                f"{imported[name]:,}",
                ", ".join(edge.imported for edge in level.edges if edge.importer == name) or UNKNOWN_CELL,
            ),
        )
        for name in sorted(layer_of, key=lambda name: (-layer_of[name], name))[:top]
    )
    columns = (
        Column(heading="layer"),
        Column(heading="imports"),
        Column(heading="imported by"),
        Column(heading="what it imports", left=True, widest=60, dropped=1),
    )
    inside = f" in {results.start.dotted}" if results.start.path else ""
    title = f"Dependencies: {format_count(len(level.edges), 'edge')} between modules{inside}"
    if not rows:
        return Section(title=title, blocks=(Lines(lines=("None of these imports another one.",)),))
    told = (
        *_more(len(layer_of) - len(rows), "module in lower layers", "modules in lower layers"),
        "A layer imports only lower ones, but for the edges that make circles.",
    )
    return Section(title=title, blocks=(_table(columns, rows, names="module"), *notes(told)))


def _edges(results: MapResults, *, top: int | None) -> Section:
    found = sorted(results.top.edges, key=lambda edge: (-edge.weight, edge.importer, edge.imported))
    shown = found[:top]
    rows = tuple(
        Row(name=f"{edge.importer} → {edge.imported}", cells=(f"{edge.weight:,}", _kinds_of(edge)))
        for edge in shown
    )
    columns = (Column(heading="imports"), Column(heading="of which", left=True, dropped=1))
    return Section(
        title="Heaviest edges",
        blocks=(
            _table(columns, rows, names="edge"),
            *notes(_more(len(found) - len(shown), "lighter edge")),
        ),
    )


def _kinds_of(edge: Edge) -> str:
    counts = {kind: sum(site.kind is kind for site in edge.sites) for kind in _KIND_WORDS}
    return ", ".join(f"{count} {_KIND_WORDS[kind]}" for kind, count in counts.items() if count)


def _busiest(results: MapResults, *, top: int | None) -> Section:
    level = results.modules
    columns = (Column(heading="modules"),)
    return Section(
        title="Busiest modules",
        blocks=tuple(
            _table(
                columns,
                [Row(name=name, cells=(f"{count:,}",)) for name, count in found[:top] if count],
                names=heading,
            )
            for heading, found in (
                ("most depended on, by", level.depended_on),
                ("most depending, on", level.depending),
            )
        ),
    )


def _cycles(cycles: Sequence[Cycle], *, top: int | None) -> Section:
    if not cycles:
        said = "No modules import each other in a circle when they are imported."
        return Section(title="Circles", blocks=(Lines(lines=(said,)),))
    shown = cycles[:top]
    return Section(
        title=f"Circles: {len(cycles)}",
        blocks=(
            Bullets(lines=tuple(line for cycle in shown for line in _describe_cycle(cycle))),
            *notes(_more(len(cycles) - len(shown), "smaller circle")),
        ),
    )


def _describe_cycle(cycle: Cycle) -> Iterator[str]:
    others = len(cycle.members) - len(cycle.shortest)
    more = f", and {format_count(others, 'more module')} bound to it" if others else ""
    yield f"{cycle.way_round}{more}"
    statements = sum(edge.weight for edge in cycle.cut)
    least = "" if cycle.is_least else "; perhaps fewer would do"
    cut = ", ".join(f"{edge.importer} → {edge.imported} ({_where(edge)})" for edge in cycle.cut[:_LISTED])
    left = len(cycle.cut) - _LISTED
    yield (
        f"cut by {format_count(statements, 'import')}{least}: {cut}"
        + (f" and {format_count(left, 'more edge')}" if left > 0 else "")
    )


def _where(edge: Edge) -> str:
    first, *rest = edge.sites
    more = f" and {len(rest)} more" if rest else ""
    return f"{first.path}:{first.line}{more}"


def _packages(results: MapResults, *, top: int | None) -> Section:
    packages = results.packages
    third_party = [one for one in packages.imported if not one.is_standard_library]
    shown = third_party[:top]
    rows = tuple(
        Row(
            name=one.import_name,
            cells=(
                f"{len(one.sites):,}",
                _version(one),
                _declared(one),
            ),
        )
        for one in shown
    )
    columns = (
        Column(heading="imports"),
        Column(heading="installed", left=True, dropped=1),
        Column(heading="declared", left=True),
    )
    standard = [one.import_name for one in packages.imported if one.is_standard_library]
    told = [
        *_more(
            len(third_party) - len(shown), "package that is imported less", "packages that are imported less"
        )
    ]
    told.append(f"Of Python's own: {format_count(len(standard), 'module')}.")
    undeclared = [one.import_name for one in third_party if one.is_undeclared]
    if undeclared:
        told.append(f"Imported, and declared nowhere: {_names(undeclared)}.")
    unclear = [one.import_name for one in third_party if one.is_undeclared is None]
    if unclear and results.code.are_declarations_known:
        told.append(
            f"Imported, not installed here, and perhaps declared under another name: {_names(unclear)}."
        )
    if results.imports.without_source:
        compiled = _names(results.imports.without_source)
        told.append(f"Own modules without a source here, compiled or made later: {compiled}.")
    told += _unused(results)
    return Section(
        title=f"Packages from elsewhere: {len(third_party)}",
        blocks=(_table(columns, rows, names="package"), *notes(told)),
    )


def _unused(results: MapResults) -> Iterator[str]:
    unread = sum(file.problem is not None for file in results.code.files)
    but = f"; {format_count(unread, 'file')} could not be understood, and may import it" if unread else ""
    for what, found in (
        (f"Declared, and imported nowhere here{but}", results.packages.unused),
        (
            "Declared, not installed here, and perhaps imported under another name",
            results.packages.perhaps_unused,
        ),
    ):
        if found:
            yield f"{what}: {_names(f'{one.name} ({one.where})' for one in found)}."


def _version(one: ExternalPackage) -> str:
    return "not installed here" if one.version is None else one.version


def _declared(one: ExternalPackage) -> str:
    if one.declarations:
        return ", ".join(
            dict.fromkeys(
                f"{each.where} [{each.group}]" if each.group else each.where for each in one.declarations
            )
        )
    if one.is_for_types_only:
        return "no, for types only"
    if one.is_own:
        return "of this project"
    return "no" if one.is_undeclared else UNKNOWN_CELL


def skipped_section(code: CodeMap, *, top: int | None) -> Section:
    """What was not read, or not understood."""
    lines = [f"{one.path}: {one.reason}" for one in code.skipped]
    lines += [f"{file.path}: counted only, {file.problem}" for file in code.files if file.problem is not None]
    others = format_count(code.uncounted_files, "file")
    said = [f"No sources, but data, pictures and the like: {others}."] if code.uncounted_files else []
    shown = lines[:top]
    if not lines:
        all_read = ("Every source was read.", *said)
        return Section(title="Not read", blocks=(Lines(lines=all_read),))
    return Section(
        title=f"Not read: {len(lines)}",
        blocks=(Bullets(lines=tuple(shown)), *notes((*_more(len(lines) - len(shown), "more path"), *said))),
    )


def _more(left: int, what: str, plural: str | None = None) -> list[str]:
    return [f"{format_count(left, what, plural)} not shown; --all shows all."] if left > 0 else []


def _names(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _table(columns: tuple[Column, ...], rows: Iterable[Row], *, names: str) -> Table | Lines:
    """The rows; a word where there are none."""
    kept = tuple(rows)
    return Table(columns=columns, rows=kept, names=names) if kept else Lines(lines=("None.",))
