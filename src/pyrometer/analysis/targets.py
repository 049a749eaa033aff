"""Targets: what the figures of a program are to reach, and whether a run does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from pyrometer.analysis.baseline import Measurement
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.target_figures import METRICS, Figure, Metric, figure_of
from pyrometer.analysis.target_goals import Goal, Quantity, parse_goal
from pyrometer.errors import UsageError
from pyrometer.stats.rates import per


class RelativeTo(Enum):
    """What a relative target is measured from."""

    BASELINE = "the baseline"
    THIS_RUN = "this run"
    """Without a baseline: something for later runs to reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure and where it is to be."""

    name: str
    """A key of ``METRICS``."""
    goal: Goal

    @property
    def metric(self) -> Metric:
        """What the figure is."""
        return METRICS[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """A target beside what a run measured; all figures are in the base unit of ``quantity``."""

    name: str
    metric: str
    """In words."""
    quantity: Quantity
    more_is_better: bool
    written: str
    """As it stands in the settings."""
    current: float | None
    low: float | None
    """What is to be reached at least; with ``high`` set too, see ``Goal``."""
    high: float | None
    exclusive: bool
    relative_to: RelativeTo | None
    reference: float | None
    """The figure that the target is relative to."""
    improvement: float | None
    """How much the current figure must change to get there: -0.2 is a fifth less; 0 where it is met."""
    met: bool | None
    """None: cannot be told."""
    reason: str | None
    """Why it cannot."""


def parse_targets(settings: Mapping[str, object], *, where: str) -> tuple[Target, ...]:
    """The targets that a table of settings sets, in its order; ``where`` names it in a ``UsageError``."""
    return tuple(parse_target(name, value, where=where) for name, value in settings.items())


def parse_target(name: str, value: object, *, where: str) -> Target:
    """One target by its key and value."""
    metric = METRICS.get(name)
    if metric is None:
        near = get_close_matches(name, METRICS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(METRICS)}"
        raise UsageError(f"{where} has no key {name!r} (value {value!r}); {hint}")
    goal = parse_goal(
        value, name=f"{where} {name}", quantity=metric.quantity, more_is_better=metric.more_is_better
    )
    return Target(name=name, goal=goal)


def judge_targets(
    observed: Observed, targets: Sequence[Target], *, baseline: Observed | Measurement | None = None
) -> tuple[TargetResult, ...]:
    """Each target beside the run, in the order given.

    A relative one is judged against the baseline. Without one it is set from this run for later runs to
    reach, and so never met.
    """
    return tuple(_judge(target, observed, baseline) for target in targets)


def _judge(target: Target, observed: Observed, baseline: Observed | Measurement | None) -> TargetResult:
    metric, goal = target.metric, target.goal
    current = figure_of(metric, observed)
    relative_to, reference = None, Figure(value=None)
    if goal.relative:
        relative_to = RelativeTo.THIS_RUN if baseline is None else RelativeTo.BASELINE
        reference = current if baseline is None else figure_of(metric, baseline)
    reason = current.reason
    if goal.relative:
        reason = reason or _no_reference(reference)
        bounds = goal.bounded_by(reference.value) if reference.value else None
    else:
        bounds = goal
    met = improvement = None
    if reason is None and bounds is not None and current.value is not None:
        met = bounds.is_met_by(current.value, more_is_better=metric.more_is_better)
        improvement = 0.0 if met else _change_to(bounds.edge(more_is_better=metric.more_is_better), current)
    return TargetResult(
        name=target.name,
        metric=metric.words,
        quantity=metric.quantity,
        more_is_better=metric.more_is_better,
        written=goal.written,
        current=current.value,
        low=None if bounds is None else bounds.low,
        high=None if bounds is None else bounds.high,
        exclusive=goal.exclusive,
        relative_to=relative_to,
        reference=reference.value,
        improvement=improvement,
        met=met,
        reason=reason,
    )


def _change_to(edge: float, current: Figure) -> float | None:
    ratio = per(edge, current.value)
    return None if ratio is None else ratio - 1


def _no_reference(reference: Figure) -> str | None:
    """Why there is nothing that a relative target could be measured from; None where there is."""
    if reference.value:
        return None
    why = "the figure there is 0" if reference.value == 0 else reference.reason
    return f"nothing to be relative to: {why}"
