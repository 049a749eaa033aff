"""Two code maps side by side as one HTML page: tables to sort and search."""

from collections.abc import Sequence

from pyrometer._version import __version__
from pyrometer.analysis.codemap.comparison import EdgeGrowth, MapComparison
from pyrometer.report.codemap_comparison import circles_and_packages, modules_section, title_of
from pyrometer.report.page_shell import fill_page
from pyrometer.report.page_views.blocks import Block, GridColumn, from_sections, grid, one_group, view
from pyrometer.report.safe_text import escape_controls


def render_map_comparison_html(comparison: MapComparison) -> str:
    """The page."""
    views = [
        view("modules", "Modules", from_sections((modules_section(comparison),))),
        _files_view(comparison),
        _edges_view("edges", "Edges between modules", comparison.edges),
        _edges_view("imports", "Imports", comparison.module_edges),
        _functions_view(comparison),
        view("circles", "Circles and packages", from_sections((circles_and_packages(comparison),))),
    ]
    title = title_of(comparison)
    return fill_page(
        subject=title,
        command="pyrometer compare A B",
        contents={
            "headline": {
                "program": escape_controls(title),
                "ending": f"A: {comparison.before.code.made_at}",
                "started": f"B: {comparison.after.code.made_at}",
                "version": __version__,
            },
            "groups": one_group("Comparison", views),
        },
        views=views,
    )


def _files_view(comparison: MapComparison) -> Block:
    found = comparison.files
    table = grid(
        "files",
        heading="module",
        names=[one.name for one in found],
        columns=_columns(
            [None if one.before is None else one.code[0] for one in found],
            [None if one.after is None else one.code[1] for one in found],
        ),
        notes=("Lines of code, of files whose figures changed.",),
    )
    return view("files", "Files", (table,), count=len(found))


def _edges_view(key: str, title: str, found: Sequence[EdgeGrowth]) -> Block:
    table = grid(
        key,
        heading="module",
        names=[one.importer for one in found],
        columns=[
            GridColumn(heading="imports", unit="text", values=[one.imported for one in found], width=280),
            *_columns([one.before or None for one in found], [one.after or None for one in found]),
        ],
        notes=("Statements that import; edges that changed.",),
    )
    return view(key, title, (table,), count=len(found))


def _functions_view(comparison: MapComparison) -> Block:
    found = comparison.functions
    table = grid(
        "functions",
        heading="function",
        names=[one.name for one in found],
        columns=[
            *_columns([one.before for one in found], [one.after for one in found]),
            GridColumn(heading="where", unit="text", values=[one.path for one in found], width=260),
        ],
        notes=("Complexity, of functions in both whose complexity grew.",),
    )
    return view("functions", "More complex", (table,), count=len(found))


def _columns(before: Sequence[int | None], after: Sequence[int | None]) -> list[GridColumn]:
    """None: it is not there; what is on one side only is new, or gone."""
    sides = list(zip(before, after, strict=True))
    return [
        GridColumn(heading="before", unit="count", values=before),
        GridColumn(heading="after", unit="count", values=after),
        GridColumn(
            heading="change",
            unit="count",
            values=[(after or 0) - (before or 0) for before, after in sides],
            texts=[_change(before, after) for before, after in sides],
        ),
    ]


def _change(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return "new" if before is None else "gone"
    return f"{after - before:+,}" if after != before else "0"
