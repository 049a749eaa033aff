"""A comparison as JSON, for programs, and the JSON Schema of that.

Times are in nanoseconds, sizes in bytes, shares and relative changes are fractions; what was not measured
is null. The text is plain ASCII. Keys stay, new ones may come, and ``version`` rises when the meaning of
one changes. Write the schema anew after a change:
``python -m pyrometer.report.comparison_json > docs/comparison.schema.json``.
"""

import json
import sys
from typing import Annotated, Literal

import msgspec

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    FunctionChange,
    Metric,
    Part,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
    SideFacts,
    Verdict,
)
from pyrometer.analysis.identity import Difference, Level, Weight
from pyrometer.record.trials import Trials
from pyrometer.report.diff_flamegraph import find_vanished

COMPARISON_FORMAT: Literal["pyrometer-comparison"] = "pyrometer-comparison"
COMPARISON_VERSION: Literal[1] = 1

Number = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file; every key is always there."""


class SideContent(Content, frozen=True, kw_only=True):
    """One of the two sides."""

    name: str
    """As it was named on the command line."""
    program: str
    runs: Number
    commit: str | None
    has_uncommitted_changes: bool | None
    started_at: str
    """Of its first run, ISO 8601."""
    steps_label: str | None
    steps: Number
    """Of the main group, over all runs; likewise ``warmup_steps``, which are among them."""
    warmup_steps: Number
    is_steady: bool
    step_kinds: tuple[str, ...]
    """What makes the steps of each kind that there is."""
    unfinished: tuple[str, ...]
    """How the runs ended that did not finish."""


class DifferenceContent(Content, frozen=True, kw_only=True):
    """A fact that is not known to be the same on both sides."""

    name: str
    before: str
    after: str
    weight: Weight
    accepted: bool
    sentence: str


class ChangeContent(Content, frozen=True, kw_only=True):
    """A figure on both sides.

    Of several runs it is the median over them; of parts of a whole, what that run has whose whole is the
    middle one.
    """

    quantity: Quantity
    before: float | None
    after: float | None
    absolute: float | None
    relative: float | None
    interval: tuple[float, float] | None
    """Of ``relative``, at 99 %."""
    verdict: Verdict
    doubt: Doubt | None
    """Why the verdict is "cannot tell"; null exactly when it is another one."""


class MetricContent(Content, frozen=True, kw_only=True):
    """A figure of the whole runs."""

    metric: Metric
    subject: str | None
    change: ChangeContent


class MoveContent(Content, frozen=True, kw_only=True):
    """Where time came from; ``name`` is empty where that is in no part."""

    name: str
    proven: bool


class PartContent(Content, frozen=True, kw_only=True):
    """A phase, module, scope or operator."""

    name: str
    parent: Number | None
    """The row it stands below, counted from 0; null at the top."""
    presence: Presence
    is_part: bool
    """Whether ``own`` is part of the whole; false on other threads."""
    calls: ChangeContent | None
    own: ChangeContent
    total: ChangeContent | None
    per_call: ChangeContent | None
    allocated: ChangeContent | None
    moved_from: MoveContent | None


class TableContent(Content, frozen=True, kw_only=True):
    """Parts of a whole: ``explained`` and ``unexplained`` are the change of ``whole``."""

    kind: PartsKind
    whole: ChangeContent
    rest: ChangeContent
    explained: float
    unexplained: float
    steps: tuple[Number, Number] | None
    """Over which figures are averaged, before and after; null: over the whole run."""
    with_warmup: bool
    is_cut: bool
    """Whether only places that take most were kept, where it was measured: smaller ones are in ``rest``."""
    rows: tuple[PartContent, ...]


class FunctionContent(Content, frozen=True, kw_only=True):
    """A function's own share of the CPU time."""

    name: str
    module: str
    presence: Presence
    before: Share | None
    after: Share | None
    before_margin: Share | None
    """Half of the 95 % interval."""
    after_margin: Share | None


class VanishedContent(Content, frozen=True, kw_only=True):
    """A frame that is in no stack of after, and its share before."""

    name: str
    module: str
    share: Share


class MissingContent(Content, frozen=True, kw_only=True):
    """A part that could not be compared, and on which sides it is missing."""

    part: Part
    before: bool
    after: bool


class ComparisonContent(Content, frozen=True, kw_only=True):
    """The file; where the comparison was refused, the lists after ``doubt`` are empty."""

    format: Literal["pyrometer-comparison"] = COMPARISON_FORMAT
    version: Literal[1] = COMPARISON_VERSION
    before: SideContent
    after: SideContent
    level: Level
    differences: tuple[DifferenceContent, ...]
    verdict: Verdict | None
    """Of the step, or of the whole time of a program without steps; of samples a second, where it was
    measured on steps of both sides that work on other numbers of them."""
    doubt: Doubt | None
    """Why no time is judged; null where times are."""
    metrics: tuple[MetricContent, ...]
    tables: tuple[TableContent, ...]
    functions: tuple[FunctionContent, ...]
    vanished_frames: tuple[VanishedContent, ...]
    missing: tuple[MissingContent, ...]
    trials: Trials | None
    """Every value that was measured for it; null of runs that were recorded before."""


def render_comparison_json(comparison: Comparison) -> str:
    """The text of the file: what it is first, a line for each figure; all rows, however many."""
    content = comparison_content(comparison)
    # In this order, which is not that of the keys with defaults.
    head = {"format": content.format, "version": content.version}
    return json.dumps({**head, **msgspec.to_builtins(content)}, allow_nan=False, indent=2) + "\n"


def comparison_content(comparison: Comparison) -> ComparisonContent:
    """The same as a value."""
    functions = () if comparison.functions is None else comparison.functions.rows
    vanished = () if comparison.frames is None else find_vanished(comparison.frames)
    leading = comparison.leading
    return ComparisonContent(
        before=_side(comparison.before),
        after=_side(comparison.after),
        level=comparison.comparability.level,
        differences=tuple(map(_difference, comparison.comparability.differences)),
        verdict=None if leading is None else leading.change.verdict,
        doubt=comparison.doubt,
        metrics=tuple(
            MetricContent(metric=one.metric, subject=one.subject, change=_change(one.change))
            for one in comparison.metrics
        ),
        tables=tuple(map(table_content, comparison.tables)),
        functions=tuple(map(_function, functions)),
        vanished_frames=tuple(
            VanishedContent(name=one.name, module=one.module, share=one.share) for one in vanished
        ),
        missing=tuple(
            MissingContent(part=one.part, before=one.before, after=one.after) for one in comparison.missing
        ),
        trials=comparison.trials,
    )


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer comparison, format version {COMPARISON_VERSION}",
        **msgspec.json.schema(ComparisonContent),
    }
    return json.dumps(schema, indent=2) + "\n"


def _side(side: SideFacts) -> SideContent:
    return SideContent(
        name=side.name,
        program=side.program,
        runs=side.runs,
        commit=side.commit,
        has_uncommitted_changes=side.dirty,
        started_at=side.started_at,
        steps_label=side.steps_label,
        steps=side.steps,
        warmup_steps=side.warmup_steps,
        is_steady=side.is_steady,
        step_kinds=side.step_kinds,
        unfinished=side.unfinished,
    )


def _difference(difference: Difference) -> DifferenceContent:
    return DifferenceContent(
        name=difference.name,
        before=difference.before,
        after=difference.after,
        weight=difference.weight,
        accepted=difference.accepted,
        sentence=difference.sentence,
    )


def _change(change: Change) -> ChangeContent:
    return ChangeContent(
        quantity=change.quantity,
        before=change.before,
        after=change.after,
        absolute=change.absolute,
        relative=change.relative,
        interval=None if change.interval is None else (change.interval.low, change.interval.high),
        verdict=change.verdict,
        doubt=change.doubt,
    )


def _known(change: Change | None) -> ChangeContent | None:
    return None if change is None else _change(change)


def table_content(table: PartsTable) -> TableContent:
    """One table of parts, all of its rows."""
    places = {row.place: index for index, row in enumerate(table.rows)}
    return TableContent(
        kind=table.kind,
        whole=_change(table.whole),
        rest=_change(table.rest),
        explained=table.explained,
        unexplained=table.unexplained,
        steps=table.steps,
        with_warmup=table.with_warmup,
        is_cut=table.is_cut,
        rows=tuple(_part(row, places) for row in table.rows),
    )


def _part(row: PartChange, places: dict[Place, int]) -> PartContent:
    moved, outer = row.moved, row.place.outer
    return PartContent(
        name=row.name,
        parent=None if outer is None else places.get(outer),
        presence=row.presence,
        is_part=row.is_part,
        calls=_known(row.calls),
        own=_change(row.own),
        total=_known(row.total),
        per_call=_known(row.per_call),
        allocated=_known(row.allocated),
        moved_from=None if moved is None else MoveContent(name=moved.name, proven=moved.proven),
    )


def _function(row: FunctionChange) -> FunctionContent:
    return FunctionContent(
        name=row.name,
        module=row.module,
        presence=row.presence,
        before=row.change.before,
        after=row.change.after,
        before_margin=row.before_margin,
        after_margin=row.after_margin,
    )


if __name__ == "__main__":
    sys.stdout.write(schema_text())
