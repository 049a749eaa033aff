"""A gate as JSON, for programs: verdicts, figures, places that changed, and every value measured.

Changes are relative (0.03 is 3 % more), times in nanoseconds, sizes in bytes; what was not measured is
null. The text is plain ASCII. Keys stay, new ones may come, and ``version`` rises when the meaning of one
changes. Write the schema anew after a change:
``python -m pyrometer.report.gate_json > docs/gate.schema.json``.
"""

import json
import sys
from collections.abc import Sequence
from typing import Literal

import msgspec

from pyrometer.analysis.comparison.model import PartChange, Presence
from pyrometer.analysis.comparison.parts import is_called_otherwise
from pyrometer.analysis.gate import Reason, Verdict
from pyrometer.analysis.gated import GatedLane, overall
from pyrometer.analysis.trials import Metric, Peaks
from pyrometer.record.trials import Trials
from pyrometer.report.comparison_json import Content, TableContent, table_content
from pyrometer.stats.pooled import Interval

GATE_FORMAT: Literal["pyrometer-gate"] = "pyrometer-gate"
GATE_VERSION: Literal[1] = 1


class PlaceContent(Content, frozen=True, kw_only=True):
    """A place of the call tree that changed for sure."""

    path: tuple[str, ...]
    verdict: str
    """Of its own time, or ``new``, ``vanished``, ``called otherwise``."""
    before_ns: float | None
    after_ns: float | None
    calls_before: float | None
    calls_after: float | None
    moved_from: str | None


class LaneContent(Content, frozen=True, kw_only=True):
    """One metric."""

    subject: str | None
    metric: Metric
    peaks: Peaks | None
    """Of peak memory, which one was judged: the most that was allocated at once, or that was resident."""
    verdict: Verdict
    reason: Reason
    max_slowdown: float
    before: float | None
    """The median over the baseline's processes, of a benchmark that of a call."""
    after: float | None
    """That with ``change``."""
    change: float | None
    """The median over turns side by side; of counts, over pairs."""
    interval: Interval | None
    """Of ``change``, at 99 %, null with fewer than 8 pairs; of counts, the least and the most pair."""
    pairs: int
    alpha: float | None
    average_change: float | None
    """Of the time of all turns together: the median over pairs; null of counts."""
    p_slower: float | None
    p_within: float | None
    p_control: float | None
    control_change: float | None
    places: tuple[PlaceContent, ...]
    """Those that changed for sure, the most telling first."""
    tables: tuple[TableContent, ...]
    """All places; own times and the rest are the whole."""
    unchecked: tuple[str, ...]
    """What of a benchmark may have been another on both sides, and why that cannot be told."""
    trials: Trials


class GateContent(Content, frozen=True, kw_only=True):
    """The file."""

    format: Literal["pyrometer-gate"] = GATE_FORMAT
    version: Literal[1] = GATE_VERSION
    verdict: Verdict | None
    """Null where the measured program failed."""
    problem: str | None
    """Why nothing more was judged, in a refusal or a failure."""
    seed: int | None
    """Which ``--seed`` makes the same random choices again; null where it is not known."""
    lanes: tuple[LaneContent, ...]
    """All of them, or those that were judged before the problem."""
    new: tuple[str, ...]
    """Benchmarks that the baseline does not have; not judged."""
    gone: tuple[str, ...]
    """Benchmarks that the candidate does not have; not judged."""


def render_gate_json(lanes: Sequence[GatedLane], *, seed: int | None = None) -> str:
    """The gate as JSON text, with all values."""
    return _written(lanes, verdict=overall(lanes), problem=None, seed=seed)


def render_problem_json(
    verdict: Verdict | None, problem: str, *, judged: Sequence[GatedLane] = (), seed: int | None = None
) -> str:
    """A gate that came to no end, as JSON text; with what it had judged by then."""
    return _written(judged, verdict=verdict, problem=problem, seed=seed)


def _written(
    lanes: Sequence[GatedLane], *, verdict: Verdict | None, problem: str | None, seed: int | None
) -> str:
    content = GateContent(
        verdict=verdict,
        problem=problem,
        seed=seed,
        lanes=tuple(map(_lane, lanes)),
        new=tuple(dict.fromkeys(name for lane in lanes for name in lane.new)),
        gone=tuple(dict.fromkeys(name for lane in lanes for name in lane.gone)),
    )
    # In this order, which is not that of the keys with defaults.
    head = {"format": content.format, "version": content.version}
    return json.dumps({**head, **msgspec.to_builtins(content)}, allow_nan=False, indent=1) + "\n"


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer gate, format version {GATE_VERSION}",
        **msgspec.json.schema(GateContent),
    }
    return json.dumps(schema, indent=2) + "\n"


def _lane(lane: GatedLane) -> LaneContent:
    judgement = lane.judgement
    return LaneContent(
        subject=lane.subject,
        metric=lane.metric,
        peaks=lane.peaks,
        verdict=lane.verdict,
        reason=judgement.reason,
        max_slowdown=lane.max_slowdown,
        before=lane.before,
        after=lane.after,
        change=judgement.change,
        interval=judgement.interval,
        pairs=judgement.pairs,
        alpha=judgement.alpha,
        average_change=judgement.average_change,
        p_slower=judgement.p_slower,
        p_within=judgement.p_within,
        p_control=judgement.p_control,
        control_change=judgement.control_change,
        places=tuple(map(_place, lane.changed)),
        tables=tuple(map(table_content, lane.tables)),
        unchecked=lane.unchecked,
        trials=lane.trials,
    )


def _place(row: PartChange) -> PlaceContent:
    verdict = row.own.verdict.value
    if row.presence is not Presence.BOTH:
        verdict = row.presence.value
    elif is_called_otherwise(row):
        verdict = "called otherwise"
    return PlaceContent(
        path=row.path,
        verdict=verdict,
        before_ns=row.own.before,
        after_ns=row.own.after,
        calls_before=None if row.calls is None else row.calls.before,
        calls_after=None if row.calls is None else row.calls.after,
        moved_from=None if row.moved is None else row.moved.name,
    )


if __name__ == "__main__":
    sys.stdout.write(schema_text())
