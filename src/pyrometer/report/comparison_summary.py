"""A comparison in a few sentences."""

from collections.abc import Iterator

from pyrometer.analysis.comparison.model import (
    Comparison,
    Doubt,
    Part,
    PartChange,
    PartsKind,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.parts import outermost_called_otherwise
from pyrometer.report import comparison_words as words
from pyrometer.report.blocks import Bullets, Section
from pyrometer.report.cells import Style

_MOST_CALLED_OTHERWISE = 5
_MOST_GROWN = 3
_LEAST_TOLD_SHARE = 0.01
_CHANGED = frozenset({Verdict.MORE, Verdict.FEWER})


def build_summary(comparison: Comparison, style: Style) -> Section:
    """The comparison in a few sentences: what is certain first, then where time went."""
    return Section(title="In short", blocks=(Bullets(lines=tuple(_summary(comparison, style))),))


def _summary(comparison: Comparison, style: Style) -> Iterator[str]:
    leading = comparison.leading
    if leading is not None:
        yield words.describe_metric(leading, style)
    doubt = words.describe_doubt(comparison)
    if doubt is not None:
        yield doubt
    yield from _certain(comparison, style)
    yield from _largest(comparison)
    yield from _cautions(comparison)


def _certain(comparison: Comparison, style: Style) -> Iterator[str]:
    """Counts and bytes that are not the same: certain from one run."""
    metrics = [one for one in comparison.metrics if not one.change.quantity.is_timed]
    changed = [words.describe_metric(one, style) for one in metrics if one.change.verdict in _CHANGED]
    called = [
        sentence
        for table in comparison.tables
        for row in outermost_called_otherwise(table)
        if (sentence := words.describe_calls(row, table))
    ]
    yield from changed
    yield from called[:_MOST_CALLED_OTHERWISE]
    left = len(called) - _MOST_CALLED_OTHERWISE
    if left > 0:
        yield f"{left:,} more that are new, have vanished, or are called otherwise: see the tables"
    rows = [row for table in comparison.tables for row in table.rows]
    counted = [one.change for one in metrics]
    counted += [change for row in rows for change in (row.calls, row.allocated) if change is not None]
    verdicts = {change.verdict for change in counted}
    is_counted = any(change.quantity is Quantity.COUNT for change in counted)
    if verdicts == {Verdict.SAME} and not called and is_counted:
        yield "Counts and bytes are the same."
    elif not changed and not called and verdicts & _CHANGED:
        yield "Parts allocate other bytes than before, though the whole does not: see the tables"
    if any(change.doubt is Doubt.VARIES for change in counted):
        yield (
            "Some counts are not the same in all runs of a side, or hang on how many steps a run had, or "
            "on which were looked at, and are not judged: see the tables"
        )


def _largest(comparison: Comparison) -> Iterator[str]:
    """The parts in which most of the change is, by the table that goes deepest."""
    kinds = (PartsKind.PHASES, PartsKind.MODULES, PartsKind.SCOPES)
    for table in filter(None, map(comparison.table, kinds)):
        least = _LEAST_TOLD_SHARE * max(table.whole.before or 0.0, table.whole.after or 0.0)
        rows = sorted(
            (row for row in table.rows if row.is_part and abs(row.own.grown) >= max(least, 1.0)),
            key=lambda row: -abs(row.own.grown),
        )
        if rows:
            told = ", ".join(_grown(row, table.kind) for row in rows[:_MOST_GROWN])
            yield f"{words.table_title(table)}: {told}. {words.describe_adding_up(table)}"


def _grown(row: PartChange, kind: PartsKind) -> str:
    moved = next(iter(words.describe_details(row)), None) if row.moved is not None else None
    return (
        f"{words.short_name(words.part_name(row, kind))} {words.write_plain_signed(row.own.grown)}"
        f" ({words.write_verdict(row.own, row.presence)}{'' if moved is None else f', {moved}'})"
    )


def _cautions(comparison: Comparison) -> Iterator[str]:
    """What makes figures less sure than they look."""
    for name, side in (("A", comparison.before), ("B", comparison.after)):
        if side.unfinished:
            yield f"{name}: not every run finished ({', '.join(sorted(set(side.unfinished)))})"
        if not side.is_steady:
            yield f"{name}: steps did not become steady, or are too few to tell: warm-up may be in it"
    labels = (comparison.before.steps_label, comparison.after.steps_label)
    if None not in labels and labels[0] != labels[1]:
        shown = [words.short_name(label or "") for label in labels]
        yield f"The steps are not made by the same: {shown[0]} in A, {shown[1]} in B"
    kinds = [
        ", ".join(map(words.short_name, side.step_kinds)) for side in (comparison.before, comparison.after)
    ]
    if kinds[0] != kinds[1]:
        yield f"The kinds of steps are not the same: {kinds[0] or 'none'} in A, {kinds[1] or 'none'} in B"
    # What neither side holds was not asked for; only stacks are looked at in every run.
    missing = [one for one in comparison.missing if one.part is Part.SAMPLES or one.before != one.after]
    if missing:
        yield f"Not compared: {'; '.join(map(words.describe_missing, missing))}."
