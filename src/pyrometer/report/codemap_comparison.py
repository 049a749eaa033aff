"""Two code maps side by side, for a terminal and as Markdown."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.codemap.comparison import EdgeGrowth, MapComparison, PartGrowth
from pyrometer.report.blocks import Bullets, Column, Emphasis, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.codemap_sections import DEFAULT_TOP
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.units import format_count

_NARROWEST = 40


def render_map_comparison_terminal(
    comparison: MapComparison,
    *,
    top: int | None = DEFAULT_TOP,
    width: int | None = None,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The comparison as text of at most ``width`` columns."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    content = [page.paragraph(title_of(comparison), style="bold")]
    for section in _sections(comparison, top=top):
        content += page.section(section)
    return page.render(iter(content))


def render_map_comparison_markdown(comparison: MapComparison, *, top: int | None = DEFAULT_TOP) -> str:
    """The same as Markdown."""
    return sections_as_markdown(title_of(comparison), _sections(comparison, top=top))


def title_of(comparison: MapComparison) -> str:
    """What is told."""
    return f"What changed in {comparison.after.name}"


def _sections(comparison: MapComparison, *, top: int | None) -> Iterator[Section]:
    yield modules_section(comparison, top=top)
    yield _growth("Files whose figures changed", comparison.files, top=top, names="module")
    yield _edges("Edges between modules", comparison.edges, top=top)
    yield _edges("Edges between single modules", comparison.module_edges, top=top)
    yield _complexity(comparison, top=top)
    yield circles_and_packages(comparison)


def modules_section(comparison: MapComparison, *, top: int | None = None) -> Section:
    """The parts directly below the root, and all together."""
    before, after = comparison.before.tree, comparison.after.tree
    rows = [_row(one) for one in comparison.parts[:top]]
    rows.append(
        Row(
            name="all",
            cells=_cells(before.lines.code, after.lines.code, before.file_count, after.file_count),
            total=True,
            emphasis=Emphasis.STRONG,
        )
    )
    left = _left(len(comparison.parts) - len(rows) + 1)
    said = f"A: {comparison.before.code.made_at}, B: {comparison.after.code.made_at}."
    return Section(
        title="Modules, by lines of code",
        blocks=(Table(columns=_COLUMNS, rows=tuple(rows), names="module"), *left, *notes((said,))),
    )


_COLUMNS = (
    Column(heading="before"),
    Column(heading="after"),
    Column(heading="change"),
    Column(heading="files", dropped=1),
)


def _row(one: PartGrowth) -> Row:
    before, after = one.code
    cells = _cells(before, after, *(count or 0 for count in one.file_counts))
    if one.before is None:
        cells = (UNKNOWN_CELL, cells[1], "new", cells[3])
    elif one.after is None:
        cells = (cells[0], UNKNOWN_CELL, "gone", cells[3])
    return Row(name=one.name, cells=cells)


def _cells(before: int, after: int, files_before: int, files_after: int) -> tuple[str, ...]:
    files = f"{files_after:,}" if files_before == files_after else f"{files_before:,} → {files_after:,}"
    return f"{before:,}", f"{after:,}", _signed(after - before), files


def _signed(change: int) -> str:
    return f"{change:+,}" if change else "0"


def _growth(title: str, found: Sequence[PartGrowth], *, top: int | None, names: str) -> Section:
    if not found:
        return Section(title=title, blocks=(Lines(lines=("None.",)),))
    shown = found[:top]
    return Section(
        title=f"{title}: {len(found)}",
        blocks=(
            Table(columns=_COLUMNS, rows=tuple(map(_row, shown)), names=names),
            *_left(len(found) - len(shown)),
        ),
    )


def _left(count: int) -> tuple[Lines, ...]:
    return notes([f"{format_count(count, 'more row')}; --all shows all."] if count > 0 else [])


def _edges(title: str, found: Sequence[EdgeGrowth], *, top: int | None) -> Section:
    if not found:
        return Section(title=title, blocks=(Lines(lines=("The same ones.",)),))
    shown = found[:top]
    rows = tuple(
        Row(
            name=f"{one.importer} → {one.imported}",
            cells=(f"{one.before:,}", f"{one.after:,}", _what(one)),
            emphasis=Emphasis.STRONG if not one.before else Emphasis.NONE,
        )
        for one in shown
    )
    new, gone = sum(not one.before for one in found), sum(not one.after for one in found)
    return Section(
        title=f"{title}: {new} new, {gone} gone",
        blocks=(
            Table(
                columns=(
                    Column(heading="imports before"),
                    Column(heading="after"),
                    Column(heading="change", left=True),
                ),
                rows=rows,
                names="edge",
            ),
            *_left(len(found) - len(shown)),
        ),
    )


def _what(one: EdgeGrowth) -> str:
    if not one.before:
        return "new"
    return "gone" if not one.after else _signed(one.after - one.before)


def _complexity(comparison: MapComparison, *, top: int | None) -> Section:
    found = comparison.functions
    if not found:
        return Section(title="More complex functions", blocks=(Lines(lines=("None.",)),))
    rows = tuple(
        Row(name=one.name, cells=(f"{one.before or 0}", f"{one.after or 0}", one.path)) for one in found[:top]
    )
    columns = (
        Column(heading="before"),
        Column(heading="after"),
        Column(heading="where", left=True, widest=60, dropped=1),
    )
    return Section(
        title=f"More complex functions: {len(found)}",
        blocks=(Table(columns=columns, rows=rows, names="function"), *_left(len(found) - len(rows))),
    )


def circles_and_packages(comparison: MapComparison) -> Section:
    """Which have come, gone, or changed."""
    lines = [f"new circle: {cycle.way_round}" for cycle in comparison.new_cycles]
    lines += [f"circle that is gone: {cycle.way_round}" for cycle in comparison.gone_cycles]
    for cycle, come, gone in comparison.changed_cycles:
        moved = [f"with {', '.join(come)}"] if come else []
        moved += [f"without {', '.join(gone)}"] if gone else []
        lines.append(f"circle of {cycle.shortest[0]}, now {' and '.join(moved)}")
    if comparison.new_packages:
        lines.append(f"packages newly imported: {', '.join(comparison.new_packages)}")
    if comparison.gone_packages:
        lines.append(f"packages no longer imported: {', '.join(comparison.gone_packages)}")
    return Section(
        title="Circles and packages",
        blocks=(Bullets(lines=tuple(lines)) if lines else Lines(lines=("The same ones.",)),),
    )
