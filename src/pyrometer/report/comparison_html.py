"""A comparison as one HTML page: tables to sort and search, and the flame graph of what changed."""

from collections.abc import Callable, Sequence

from pyrometer._version import __version__
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    FunctionTable,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
)
from pyrometer.analysis.identity import Level
from pyrometer.report import comparison_words as words
from pyrometer.report.blocks import Table
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.comparison_sections import (
    Shape,
    build_metrics,
    build_opening,
)
from pyrometer.report.comparison_summary import build_summary
from pyrometer.report.diff_flamegraph import diff_look, find_vanished
from pyrometer.report.flamegraph import draw_flamegraph, flamegraph_script, flamegraph_style
from pyrometer.report.page_shell import Picture, fill_page
from pyrometer.report.page_views.blocks import (
    Block,
    Figure,
    GridColumn,
    from_sections,
    grid,
    missing,
    one_group,
    small_print,
    view,
)
from pyrometer.report.safe_text import escape_controls

_PICTURE = "flame"
# What the page puts pictures into: their styles are for nothing else on it.
_WITHIN = ".inlined"
_FIGURE_WIDTH = 96
_LONGEST_PATH = 30
_WORDS_WIDTH = 128
_INTERVAL_WIDTH = 154
_UNITS = {Quantity.DURATION: "duration", Quantity.BYTES: "bytes", Quantity.COUNT: "calls"}

_Of = Callable[[PartChange], Change | None]


def render_comparison_html(comparison: Comparison) -> str:
    """The page; where the comparison was refused, it has the facts and nothing else."""
    picture = _picture(comparison)
    views = [_summary_view(comparison)]
    if comparison.comparability.level is not Level.REFUSED:
        views += [_parts_view(table) for table in comparison.tables]
        if comparison.functions is not None:
            views.append(_functions_view(comparison.functions))
        if comparison.trials is None:  # else stacks were not looked at
            views.append(_flame_view(comparison))
    return fill_page(
        subject=f"Comparison of {comparison.after.program}",
        command="pyrometer compare A B",
        contents=_contents(comparison, views),
        views=views,
        pictures=() if picture is None else (picture,),
    )


def _contents(comparison: Comparison, views: Sequence[Block]) -> Block:
    before, after = (escape_controls(side.name) for side in (comparison.before, comparison.after))
    return {
        "headline": {
            "program": f"Comparison of {escape_controls(comparison.after.program)}",
            "ending": f"A: {before}",
            "started": f"B: {after}",
            "version": __version__,
        },
        "groups": one_group("Comparison", views),
    }


def _summary_view(comparison: Comparison) -> Block:
    opening = build_opening(comparison)
    if comparison.comparability.level is Level.REFUSED:
        return view("summary", "Summary", from_sections((opening,)))
    metrics = build_metrics(comparison, Shape(style=SPACIOUS, top=None))
    notes = [line for block in metrics.blocks if not isinstance(block, Table) for line in _lines(block)]
    return view(
        "summary",
        "Summary",
        (
            *from_sections((opening, build_summary(comparison, SPACIOUS))),
            *from_sections((metrics,))[:1],
            _metrics_grid(comparison),
            *small_print(notes),
        ),
    )


def _lines(block: object) -> Sequence[str]:
    return getattr(block, "lines", ())


def _metrics_grid(comparison: Comparison) -> Block:
    changes = [one.change for one in comparison.metrics]
    presences = [Presence.BOTH] * len(changes)
    return grid(
        "whole-run",
        heading="figure",
        names=[words.metric_name(one) for one in comparison.metrics],
        columns=_change_columns(changes, presences, unit=None),
    )


def _parts_view(table: PartsTable) -> Block:
    names = [words.part_name(row, table.kind) for row in table.rows]
    presences = [row.presence for row in table.rows]
    calls = GridColumn(
        heading="calls",
        spelled="calls" if table.unit is None else f"calls a {table.unit}",
        unit="calls",
        values=[None if row.calls is None else _latest(row.calls) for row in table.rows],
        texts=[words.write_calls(row) for row in table.rows],
        width=_WORDS_WIDTH,
    )
    columns = [
        *([calls] if any(row.calls is not None for row in table.rows) else []),
        *_change_columns([row.own for row in table.rows], presences, unit="duration"),
        *_both(table.rows, "total", lambda row: row.total if table.kind is not PartsKind.PHASES else None),
        *_both(table.rows, "a call", lambda row: row.per_call),
        *_both(table.rows, "allocated", lambda row: row.allocated),
    ]
    known = [column for column in columns if column.is_known]
    rest = f"{words.rest_name(table)}: {_in_words(table.rest)}"
    whole = f"{words.whole_name(table)}: {_in_words(table.whole)}"
    return view(
        table.kind.value,
        words.table_title(table),
        (
            grid(
                f"{table.kind.value}-changes",
                heading=words.heading_of_parts(table),
                names=names,
                full_names=[words.path_name(row, most=_LONGEST_PATH) for row in table.rows],
                columns=known,
                details=[". ".join(words.describe_details(row)) for row in table.rows],
                notes=(whole, rest, words.describe_basis(table), words.describe_adding_up(table)),
            ),
        ),
        count=len(table.rows),
    )


def _in_words(change: Change) -> str:
    before, after = (
        words.write_figure(value, change.quantity, SPACIOUS) for value in (change.before, change.after)
    )
    by = words.write_change(change, SPACIOUS)
    return f"{before} → {after} ({by}, {words.write_percent(change)} %), {words.write_verdict(change)}"


def _latest(change: Change) -> float | None:
    return change.before if change.after is None else change.after


def _both(rows: Sequence[PartChange], heading: str, of: _Of) -> tuple[GridColumn, GridColumn]:
    """A further figure of each row, before and after."""
    changes = [of(row) for row in rows]
    unit = next((_UNITS[change.quantity] for change in changes if change is not None), "duration")
    return (
        GridColumn(
            heading=f"{heading} before",
            unit=unit,
            values=[None if change is None else change.before for change in changes],
        ),
        GridColumn(
            heading=f"{heading} after",
            unit=unit,
            values=[None if change is None else change.after for change in changes],
        ),
    )


def _change_columns(
    changes: Sequence[Change], presences: Sequence[Presence], *, unit: str | None
) -> tuple[GridColumn, ...]:
    """Before, after, the change and its verdict; without a unit, each row has its own."""

    def column(heading: str, values: Sequence[Figure], texts: Sequence[str]) -> GridColumn:
        return GridColumn(
            heading=heading, unit=unit or "digits", values=values, texts=texts, width=_FIGURE_WIDTH
        )

    return (
        column("before", [one.before for one in changes], [_figure(one, one.before) for one in changes]),
        column("after", [one.after for one in changes], [_figure(one, one.after) for one in changes]),
        column(
            "change",
            [one.grown if unit else one.absolute for one in changes],
            [
                words.write_signed(
                    one.absolute if presence is Presence.BOTH else one.grown, one.quantity, SPACIOUS
                )
                for one, presence in zip(changes, presences, strict=True)
            ],
        ),
        GridColumn(
            heading="%",
            unit="share",
            values=[one.relative for one in changes],
            texts=[words.write_percent(one) for one in changes],
            spelled="relative change",
            width=_FIGURE_WIDTH,
        ),
        GridColumn(
            heading="99 % interval",
            unit="text",
            values=[
                None
                if one.interval is None or one.quantity is Quantity.SHARE
                else f"{words.write_interval(one)} %"
                for one in changes
            ],
            width=_INTERVAL_WIDTH,
        ),
        GridColumn(
            heading="verdict",
            unit="text",
            values=[words.write_verdict(*pair) for pair in zip(changes, presences, strict=True)],
        ),
    )


def _figure(change: Change, value: float | None) -> str:
    return words.write_figure(value, change.quantity, SPACIOUS)


def _functions_view(table: FunctionTable) -> Block:
    changes = [row.change for row in table.rows]
    before, after = table.samples
    return view(
        "functions",
        "Functions",
        (
            grid(
                "functions-changes",
                heading="function",
                names=[row.name for row in table.rows],
                columns=(
                    GridColumn(heading="module", unit="text", values=[row.module for row in table.rows]),
                    GridColumn(heading="before %", unit="share", values=[one.before for one in changes]),
                    GridColumn(
                        heading="± before", unit="share", values=[row.before_margin for row in table.rows]
                    ),
                    GridColumn(heading="after %", unit="share", values=[one.after for one in changes]),
                    GridColumn(
                        heading="± after", unit="share", values=[row.after_margin for row in table.rows]
                    ),
                    GridColumn(
                        heading="change",
                        unit="share",
                        values=[one.grown for one in changes],
                        texts=[words.write_signed(one.grown, Quantity.SHARE, SPACIOUS) for one in changes],
                    ),
                    GridColumn(
                        heading="there", unit="text", values=[row.presence.value for row in table.rows]
                    ),
                ),
                notes=(
                    f"Own share of the CPU time by {before:,} and {after:,} samples, with 95 % margins.",
                    "Shares are never judged: one that grew may be all that did not shrink.",
                ),
            ),
        ),
        count=len(table.rows),
    )


def _flame_view(comparison: Comparison) -> Block:
    if comparison.frames is None:
        lost = [one for one in comparison.missing if one.part.value == "samples"]
        return view("flamegraph", "Flame graph", [missing(words.describe_missing(one)) for one in lost])
    vanished = find_vanished(comparison.frames)
    blocks: list[Block] = [{"type": "inlined", "picture": _PICTURE}]
    if vanished:
        blocks.append(
            grid(
                "vanished-frames",
                heading="vanished frame",
                names=[one.name for one in vanished],
                columns=(
                    GridColumn(heading="module", unit="text", values=[one.module for one in vanished]),
                    GridColumn(heading="before %", unit="share", values=[one.share for one in vanished]),
                ),
            )
        )
    return view("flamegraph", "Flame graph", blocks)


def _picture(comparison: Comparison) -> Picture | None:
    if comparison.frames is None:
        return None
    look = diff_look(comparison.frames, comparison.after.program)
    return Picture(
        key=_PICTURE,
        svg=draw_flamegraph(comparison.frames.after, look, within=_WITHIN),
        script=flamegraph_script(),
        style=flamegraph_style(look, within=_WITHIN),
    )
