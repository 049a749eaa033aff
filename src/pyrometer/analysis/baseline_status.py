"""Each figure of a baseline judged by a rule: fine, to be watched, or to be acted upon."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.criteria import MOST_OTHER_SHARE
from pyrometer.analysis.hotspots import (
    FEWEST_EVEN_STEPS,
    HIGH_SHARE,
    LIMITS,
    MEDIUM_SHARE,
    StrengthKind,
)
from pyrometer.analysis.loading import SLOW_WAIT_SHARE
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.steps import GroupResult, SteadySteps, fold_phases
from pyrometer.stats.rates import per

UNEVEN_RATIO = 2.0
OUTLIER_RATIO = 2.0
LARGE_OUTLIER_RATIO = 5.0
GROWTH_STEPS = 1_000
GROWTH_SHARE = 0.10


class Status(Enum):
    """What a rule says of a figure."""

    FINE = "fine"
    WATCH = "watch"
    ACT = "act"
    UNKNOWN = "cannot be told"
    NOT_JUDGED = "–"
    """There is no rule for it: it is what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A figure's status, and the rule in words."""

    status: Status
    rule: str


def judge_spread(steady: SteadySteps) -> Judged:
    """Whether the steps take alike."""
    even = LIMITS[StrengthKind.EVEN_STEPS]
    ratio = per(steady.p95_ns, steady.p50_ns) if steady.steps >= FEWEST_EVEN_STEPS else None
    return Judged(
        status=_below(ratio, even, UNEVEN_RATIO),
        rule=f"p95 below {even:g} × the median: fine; below {UNEVEN_RATIO:g} ×: watch; of at least "
        f"{FEWEST_EVEN_STEPS} batches",
    )


def judge_longest(steady: SteadySteps) -> Judged:
    """Whether one batch took much longer than the others."""
    return Judged(
        status=_below(per(steady.max_ns, steady.p50_ns), OUTLIER_RATIO, LARGE_OUTLIER_RATIO),
        rule=f"below {OUTLIER_RATIO:g} × the median: fine; below {LARGE_OUTLIER_RATIO:g} ×: watch",
    )


def judge_phases(group: GroupResult) -> Iterator[tuple[str, Judged]]:
    """The five phases of a batch, each by its share."""
    for phase in fold_phases(group.phases):
        yield phase.name, _judge_phase(phase.name, phase.share)


def judge_growth(memory: MemoryResult | None) -> Judged:
    """Whether memory stays what it is."""
    rule = (
        f"{GROWTH_STEPS:,} more batches would add less than {100 * GROWTH_SHARE:.0f} % of the peak: fine; "
        "else watch"
    )
    growth = None if memory is None else memory.growth_bytes_per_step
    if memory is None or growth is None:
        return Judged(status=Status.UNKNOWN, rule=rule)
    large = growth * GROWTH_STEPS >= GROWTH_SHARE * memory.peak_bytes
    return Judged(status=Status.WATCH if large else Status.FINE, rule=rule)


def _judge_phase(name: str, share: float) -> Judged:
    limits = {
        "data": (LIMITS[StrengthKind.DATA_READY], SLOW_WAIT_SHARE),
        "optimizer": (MEDIUM_SHARE, HIGH_SHARE),
        "other": (LIMITS[StrengthKind.LITTLE_OTHER], MOST_OTHER_SHARE),
    }
    if name not in limits:
        return Judged(status=Status.NOT_JUDGED, rule="the work itself")
    fine, watch = limits[name]
    return Judged(
        status=_below(share, fine, watch),
        rule=f"below {100 * fine:.0f} %: fine; below {100 * watch:.0f} %: watch",
    )


def _below(figure: float | None, fine: float, watch: float) -> Status:
    if figure is None:
        return Status.UNKNOWN
    if figure < fine:
        return Status.FINE
    return Status.WATCH if figure < watch else Status.ACT
