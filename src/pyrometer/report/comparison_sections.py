"""The sections of a comparison: whether it may be made, figures of the whole, and parts that add up."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    FunctionTable,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.parts import is_called_otherwise
from pyrometer.analysis.comparison.verdicts import (
    BYTES_TOLERANCE,
    INSTRUCTIONS_TOLERANCE,
    LEAST_TESTED_SHARE,
    PEAK_TOLERANCE,
    SAME_WITHIN,
    UNSEEDED_INSTRUCTIONS_TOLERANCE,
)
from pyrometer.report import comparison_words as words
from pyrometer.report import gate_words
from pyrometer.report.blocks import (
    Bullets,
    Column,
    Emphasis,
    Lines,
    Row,
    Section,
    Table,
    notes,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style
from pyrometer.stats.label_permutation import MOST_COUNTED, RANDOM_WAYS

DEFAULT_TOP = 10
_INTERVAL = "99 % interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much of a comparison is shown; ``top`` rows of each table, None: all."""

    style: Style
    top: int | None = DEFAULT_TOP
    where_the_rest_is: str = "--top N, or --all"


def build_opening(comparison: Comparison) -> Section:
    """Whether both sides may be compared, and each fact that is not the same."""
    sides = (
        f"A, before: {words.describe_side(comparison.before)}",
        f"B, after:  {words.describe_side(comparison.after)}",
    )
    differences = tuple(words.describe_differences(comparison))
    return Section(
        title="May they be compared?",
        blocks=(
            Lines(lines=sides),
            Lines(lines=(words.describe_level(comparison),), emphasis=Emphasis.STRONG),
            *((Bullets(lines=differences),) if differences else ()),
        ),
    )


# Tables.


def build_metrics(comparison: Comparison, shape: Shape) -> Section:
    """The figures of the whole runs."""
    rows = tuple(
        Row(name=words.metric_name(one), cells=_cells(one.change, shape.style)) for one in comparison.metrics
    )
    if not rows:
        return Section(title="Whole run", blocks=(Lines(lines=("Nothing was measured on both sides.",)),))
    table = Table(columns=_columns(), rows=rows, names="figure", whole_names=True)
    return Section(
        title="Whole run",
        blocks=(_trimmed(table), *notes(_rules(comparison))),
    )


def _rules(comparison: Comparison) -> Iterator[str]:
    """By which rules verdicts are made."""
    if comparison.trials is not None and comparison.look is not None:
        yield from gate_words.describe_plan(comparison.trials)
        yield gate_words.describe_look(comparison.trials, comparison.look)
        yield f"Peaks are called the same within {100 * PEAK_TOLERANCE:g} %."
        return
    if comparison.doubt is None:
        runs = comparison.before.runs + comparison.after.runs
        ways = "exact" if runs <= MOST_COUNTED else f"{RANDOM_WAYS:,} random ways"
        yield (
            f"Times are judged over {comparison.before.runs} + {comparison.after.runs} processes. A change "
            f"is called one where p is below 1 %, by permuting which process is whose ({ways}; Holm over the "
            "rows of a table), and where it is 1 % or more; no change where its 99 % interval is within "
            f"±{100 * SAME_WITHIN:.0f} %. Parts below {100 * LEAST_TESTED_SHARE:.0f} % of the whole are not "
            "tested."
        )
    if comparison.before.runs + comparison.after.runs > 2:
        yield (
            "Each figure is the median over the runs of its side. In tables of parts, which add up, it is "
            "that of the run whose whole is the middle one."
        )
    if comparison.after.steps_label is not None:
        yield (
            "Calls, passes, batches and tensors are a step; calls and passes of all that the program does, "
            "evaluation too, shared out to the steps of its main group."
        )
    yield (
        f"Called the same: counts that are equal, bytes within {100 * BYTES_TOLERANCE:g} %, peaks within "
        f"{100 * PEAK_TOLERANCE:g} %, instructions within {100 * INSTRUCTIONS_TOLERANCE:g} % "
        f"({100 * UNSEEDED_INSTRUCTIONS_TOLERANCE:g} % without a fixed hash seed)."
    )
    sides = (comparison.before, comparison.after)
    if len({side.steps / side.runs for side in sides}) > 1 or any(side.unfinished for side in sides):
        yield (
            "Runs have other numbers of steps, and one may have had a smaller last batch more than another: "
            "samples and bytes a step are called the same within one part in as many as the shortest has."
        )


def build_parts(table: PartsTable, shape: Shape) -> Section:
    """One table of parts, which add up to the whole as printed."""
    shown, folded = _split(table.rows, shape.top)
    duplicates = _duplicates(shown)
    rows = [_part_row(row, table.kind, shape.style, in_full=row.name in duplicates) for row in shown]
    if folded:
        rows.append(_folded_row(folded, shape.style))
    style = shape.style
    if table.kind is not PartsKind.PHASES or table.rest.before or table.rest.after:
        rows.append(_sum_row(words.rest_name(table), table.rest, style, emphasis=Emphasis.FAINT))
    name = words.whole_name(table)
    rows.append(replace(_sum_row(name, table.whole, style, emphasis=Emphasis.STRONG), total=True))
    made = Table(
        columns=(_calls_column(table), *_columns()),
        rows=tuple(rows),
        names=words.heading_of_parts(table),
        details="notes" if any(row.details for row in rows) else "",
    )
    return Section(
        title=words.table_title(table),
        blocks=(
            _trimmed(made),
            *notes(
                (f"{words.describe_basis(table)} {words.describe_adding_up(table)}", *_folding(folded, shape))
            ),
        ),
    )


def build_calls(table: PartsTable, shape: Shape) -> Section | None:
    """What one call of a part takes, with all below it; None where that is not known of any."""
    known = [(row, row.per_call) for row in table.rows if row.per_call is not None]
    if not known:
        return None
    top = len(known) if shape.top is None else shape.top
    ordered = sorted(known, key=lambda pair: -abs((pair[0].total or pair[0].own).grown))
    rows = tuple(
        Row(
            name=words.part_name(row, table.kind),
            cells=(words.write_calls(row), *_cells(change, shape.style, row.presence)),
        )
        for row, change in ordered[:top]
    )
    columns = (_calls_column(table), *_columns())
    left = len(ordered) - len(rows)
    return Section(
        title=f"{words.table_title(table)}, one call",
        blocks=(
            _trimmed(Table(columns=columns, rows=rows, names=words.heading_of_parts(table))),
            *notes(
                (f"Mean of a finished call, with all below it.{f' {left:,} more: --all.' if left else ''}",)
            ),
        ),
    )


def build_functions(table: FunctionTable, shape: Shape) -> Section:
    """Functions by the change of their share of the CPU time: a trend, whatever the number of runs."""
    rows = table.rows if shape.top is None else table.rows[: shape.top]
    made = tuple(
        Row(
            name=row.name,
            qualified_name=f"{row.name} ({row.module})" if row.module else row.name,
            cells=(
                _share(row.change.before, row.before_margin),
                _share(row.change.after, row.after_margin),
                words.write_signed(row.change.grown, Quantity.SHARE, shape.style),
                "trend" if row.presence is Presence.BOTH else row.presence.value,
            ),
        )
        for row in rows
    )
    columns = (
        Column(heading="before %"),
        Column(heading="after %"),
        Column(heading="change"),
        Column(heading="verdict", left=True),
    )
    before, after = table.samples
    left = len(table.rows) - len(rows)
    note = (
        f"Own share of the CPU time by {before:,} and {after:,} samples, with 95 % margins. Shares are never "
        f"judged: one that grew may be all that did not shrink.{f' {left:,} more: --all.' if left else ''}"
    )
    return Section(
        title="Functions",
        blocks=(
            Table(columns=columns, rows=made, names="function"),
            *notes((note,)),
        ),
    )


def build_sections(comparison: Comparison, shape: Shape) -> Iterator[Section]:
    """The tables, from the whole to its parts."""
    yield build_metrics(comparison, shape)
    for table in comparison.tables:
        yield build_parts(table, shape)
        calls = build_calls(table, shape) if table.kind is PartsKind.SCOPES else None
        if calls is not None:
            yield calls
    if comparison.functions is not None:
        yield build_functions(comparison.functions, shape)


def _calls_column(table: PartsTable) -> Column:
    return Column(heading="calls", spelled="calls" if table.unit is None else f"calls a {table.unit}")


def _columns() -> tuple[Column, ...]:
    return (
        Column(heading="before"),
        Column(heading="after"),
        Column(heading="change", dropped=2),
        Column(heading="%"),
        Column(heading=_INTERVAL, dropped=1),
        Column(heading="verdict", left=True),
    )


def _cells(change: Change, style: Style, presence: Presence = Presence.BOTH) -> tuple[str, ...]:
    return (
        words.write_figure(change.before, change.quantity, style),
        words.write_figure(change.after, change.quantity, style),
        # Of a part that is new or gone, all of it.
        words.write_signed(change.grown, change.quantity, style)
        if presence is not Presence.BOTH
        else words.write_change(change, style),
        words.write_percent(change),
        words.write_interval(change),
        words.write_verdict(change, presence),
    )


def _trimmed(table: Table) -> Table:
    """Without columns in which nothing is known: calls of phases, intervals of few runs."""
    return without_unknown_columns(table, {UNKNOWN_CELL, ""})


def _split(rows: Sequence[PartChange], top: int | None) -> tuple[Sequence[PartChange], Sequence[PartChange]]:
    """The rows to show, and those that are put together."""
    if top is None or len(rows) <= top + 1:
        return rows, ()
    return rows[:top], rows[top:]


def _duplicates(rows: Iterable[PartChange]) -> set[str]:
    """Names that stand at several places."""
    counted = Counter(row.name for row in rows)
    return {name for name, count in counted.items() if count > 1}


def _part_row(row: PartChange, kind: PartsKind, style: Style, *, in_full: bool) -> Row:
    name = words.path_name(row) if in_full else words.part_name(row, kind)
    return Row(
        name=name,
        cells=(words.write_calls(row), *_cells(row.own, style, row.presence)),
        details=tuple(words.describe_details(row)),
        mark="" if row.is_part else " ∥",
        emphasis=Emphasis.STRONG if is_called_otherwise(row) else Emphasis.NONE,
    )


def _folded_row(folded: Sequence[PartChange], style: Style) -> Row:
    parts = [row.own for row in folded if row.is_part]
    change = Change(
        quantity=Quantity.DURATION,
        before=sum(own.before or 0.0 for own in parts),
        after=sum(own.after or 0.0 for own in parts),
        verdict=Verdict.CANNOT_TELL,
    )
    return replace(_sum_row(f"{len(folded):,} more", change, style, emphasis=Emphasis.FAINT), sentence=True)


def _sum_row(name: str, change: Change, style: Style, *, emphasis: Emphasis) -> Row:
    *cells, verdict = _cells(change, style)
    is_told = change.verdict is not Verdict.CANNOT_TELL or change.doubt is not None
    return Row(name=name, cells=("", *cells, verdict if is_told else ""), emphasis=emphasis)


def _folding(folded: Sequence[PartChange], shape: Shape) -> tuple[str, ...]:
    return (f"{len(folded):,} more rows: {shape.where_the_rest_is}.",) if folded else ()


def _share(share: float | None, margin: float | None) -> str:
    if share is None or margin is None:
        return UNKNOWN_CELL
    return f"{100 * share:.1f} ±{100 * margin:.1f}"
