"""Findings as a plan: what to do now, soon and later, and what all of it could gain at most.

Each bound is an upper one until a change has been measured. Bounds of several findings may be of the
same time: the conservative total takes them to overlap completely, the optimistic one not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.findings.model import Effort, Finding, GainOf
from pyrometer.analysis.torch_results import TorchResults

PLAN_RULE = (
    "Upper bounds until measured. Conservative: the largest single bound, as the changes may be after the "
    "same time. Optimistic: bounds in one phase add up to at most that phase; where all of them make up "
    "all of the time, nothing bounds it. Memory is in neither."
)


class Horizon(Enum):
    """When to do it, by the effort it takes."""

    IMMEDIATE = "immediate"
    SHORT_TERM = "short term"
    LONG_TERM = "long term"


HORIZON_OF = {
    Effort.MINUTES: Horizon.IMMEDIATE,
    Effort.HOURS: Horizon.SHORT_TERM,
    Effort.DAYS: Horizon.LONG_TERM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What several findings could gain at most. ``0 < conservative <= optimistic < 1`` where bounded."""

    of: GainOf
    group: str | None
    """The kind of steps, by its label; None where it is not told, or the time is not one of steps."""
    conservative: float
    optimistic: float | None
    """None: together the bounds are all of the time, and so no bound."""

    @property
    def speedups(self) -> tuple[float | None, float | None]:
        """How many times as fast, conservative and optimistic; None where nothing bounds it."""
        conservative = None if self.conservative >= 1 else 1 / (1 - self.conservative)
        return conservative, None if self.optimistic is None else 1 / (1 - self.optimistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What to do within one horizon, by rank."""

    horizon: Horizon
    effort: Effort
    findings: tuple[Finding, ...]
    totals: tuple[Total, ...]
    """One for each kind of time that its bounds are of; of what the report is about first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All stages, each of them even where it is empty, and what all findings together could gain."""

    stages: tuple[Stage, ...]
    totals: tuple[Total, ...]


_Shares = Mapping[str, Mapping[str, float]]
"""Of each group of steps, by its label, the share of each phase."""


def build_plan(found: Sequence[Finding], torch: TorchResults | None) -> Plan:
    """The findings by horizon, with totals that never count one phase's time twice."""
    main = None if torch is None or torch.main is None else torch.main.label
    shares: dict[str, dict[str, float]] = {}
    for group in () if torch is None else torch.groups:
        shares.setdefault(group.label, {phase.name: phase.share for phase in group.phases})
    return Plan(
        stages=tuple(
            Stage(
                horizon=horizon,
                effort=effort,
                findings=(chosen := tuple(finding for finding in found if finding.effort is effort)),
                totals=_totals(chosen, shares, main),
            )
            for effort, horizon in HORIZON_OF.items()
        ),
        totals=_totals(found, shares, main),
    )


def _totals(found: Sequence[Finding], shares: _Shares, main: str | None) -> tuple[Total, ...]:
    alike: dict[tuple[GainOf, str | None], list[Finding]] = {}
    for finding in found:
        if finding.gain is not None and finding.gain.of is not GainOf.MEMORY and finding.gain.share > 0:
            alike.setdefault((finding.gain.of, _group(finding, main)), []).append(finding)
    totals = [
        _total(of, group, chosen, shares.get(group, {}) if group is not None else {})
        for (of, group), chosen in alike.items()
    ]
    about_steps = (GainOf.STEP, GainOf.TOKEN)
    return tuple(
        sorted(
            totals, key=lambda total: (total.of not in about_steps, total.group != main, -total.conservative)
        )
    )


def _group(finding: Finding, main: str | None) -> str | None:
    """Whose steps the bound is a share of: the main ones unless it says otherwise."""
    if finding.gain is None or finding.gain.of is GainOf.RUN:
        return None
    return finding.place.group or main


def _total(
    of: GainOf, group: str | None, found: Sequence[Finding], phase_shares: Mapping[str, float]
) -> Total:
    by_phase: dict[str, float] = {}
    unplaced = 0.0
    bounds = [finding.gain.share for finding in found if finding.gain is not None]
    for finding, bound in zip(found, bounds, strict=True):
        phase = finding.place.phase
        if phase is None or phase not in phase_shares:
            unplaced += bound
        else:
            by_phase[phase] = by_phase.get(phase, 0.0) + bound
    placed = sum(min(bound, phase_shares[phase]) for phase, bound in by_phase.items())
    conservative = max(bounds)
    # A bound is never taken for less than it says of itself, though its phase may be rounded smaller.
    optimistic = max(placed + unplaced, conservative)
    return Total(
        of=of, group=group, conservative=conservative, optimistic=optimistic if optimistic < 1 else None
    )
