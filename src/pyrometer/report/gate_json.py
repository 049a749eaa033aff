"""A gate as JSON, for programs: verdicts, figures, places that changed, and every value measured.

Changes are relative (0.03 is 3 % more), times in nanoseconds, sizes in bytes; what was not measured is
null.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from pyrometer.analysis.gate import Reason, Verdict
from pyrometer.analysis.gated import GatedLane, overall
from pyrometer.analysis.trials import Metric
from pyrometer.record.trials import Trials
from pyrometer.stats.pooled import Interval

GATE_FORMAT: Literal["pyrometer-gate"] = "pyrometer-gate"
GATE_VERSION: Literal[1] = 1


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file; every key is always there."""


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
    verdict: Verdict
    reason: Reason
    max_slowdown: float
    before: float | None
    after: float | None
    change: float | None
    interval: Interval | None
    """Of ``change``, at 99 %; of counts, the smallest and the largest of all pairs."""
    pairs: int
    alpha: float | None
    p_slower: float | None
    p_within: float | None
    p_control: float | None
    control_change: float | None
    places: tuple[PlaceContent, ...]
    trials: Trials


class GateContent(Content, frozen=True, kw_only=True):
    """The file."""

    format: Literal["pyrometer-gate"] = GATE_FORMAT
    version: Literal[1] = GATE_VERSION
    verdict: Verdict
    lanes: tuple[LaneContent, ...]


def render_gate_json(lanes: Sequence[GatedLane]) -> str:
    """The gate as JSON text, with all values."""
    content = GateContent(verdict=overall(lanes), lanes=tuple(map(_lane, lanes)))
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n"


def _lane(lane: GatedLane) -> LaneContent:
    judgement = lane.judgement
    return LaneContent(
        subject=lane.subject,
        metric=lane.metric,
        verdict=lane.verdict,
        reason=judgement.reason,
        max_slowdown=lane.max_slowdown,
        before=lane.before,
        after=lane.after,
        change=judgement.change,
        interval=judgement.interval,
        pairs=judgement.pairs,
        alpha=judgement.alpha,
        p_slower=judgement.p_slower,
        p_within=judgement.p_within,
        p_control=judgement.p_control,
        control_change=judgement.control_change,
        places=tuple(
            PlaceContent(
                path=row.path,
                verdict=row.own.verdict.value,
                before_ns=row.own.before,
                after_ns=row.own.after,
                calls_before=None if row.calls is None else row.calls.before,
                calls_after=None if row.calls is None else row.calls.after,
                moved_from=None if row.moved is None else row.moved.name,
            )
            for row in lane.changed
        ),
        trials=lane.trials,
    )
