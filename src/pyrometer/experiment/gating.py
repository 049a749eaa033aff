"""The gate: measures until a planned look gives a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyrometer.analysis.attribution import find_changed_places
from pyrometer.analysis.gate import COUNTED_PAIRS, LOOKS, Judgement, Look, judge, judge_counts
from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import Metric, candidate_ratios, control_ratios, knows_samples
from pyrometer.experiment.experiment import Conditions, Contender, Experiment

INSTRUCTION_PAIRS = 3
"""Under valgrind a process takes minutes, and repeats itself to a tenth of a percent."""
INSTRUCTION_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the gate is to judge."""

    max_slowdown: float = 0.0
    most_pairs: int = LOOKS[-1].pairs

    @property
    def looks(self) -> Sequence[Look]:
        """The planned ones that fit; with fewer pairs than the first needs, that one, cut short."""
        return [look for look in LOOKS if look.pairs <= self.most_pairs] or [
            replace(LOOKS[0], pairs=self.most_pairs)
        ]


def gate(
    baseline: Contender,
    candidate: Contender,
    metric: Metric | None,
    *,
    rule: Rule,
    conditions: Conditions,
    tell: Callable[[str], None],
) -> GatedLane:
    """Measure one metric and judge it; None: samples a second, or the time of a step where none are known."""
    if metric is None or metric.is_timed:
        return _gate_time(Experiment(baseline, candidate, conditions, tell=tell), metric, rule)
    return _gate_counts(baseline, candidate, metric, rule=rule, conditions=conditions, tell=tell)


def _gate_time(experiment: Experiment, metric: Metric | None, rule: Rule) -> GatedLane:
    looks = rule.looks
    for look in looks:
        pairs = experiment.measure(look.pairs)
        measured = metric or (Metric.THROUGHPUT if knows_samples(pairs) else Metric.LATENCY)
        judgement = judge(
            candidate_ratios(pairs, measured),
            control_ratios(pairs, measured),
            max_slowdown=rule.max_slowdown,
            look=look,
            is_last=look is looks[-1],
        )
        if judgement.verdict is not None:
            break
    return _lane(measured, judgement, experiment, rule)


def _gate_counts(
    baseline: Contender,
    candidate: Contender,
    metric: Metric,
    *,
    rule: Rule,
    conditions: Conditions,
    tell: Callable[[str], None],
) -> GatedLane:
    if metric is Metric.INSTRUCTIONS:
        wanted = replace(conditions.wanted, rounds=INSTRUCTION_ROUNDS)
        conditions = replace(conditions, wanted=wanted, count_instructions=True)
        pairs = INSTRUCTION_PAIRS
    else:
        conditions = replace(conditions, count_live_bytes=True)
        pairs = COUNTED_PAIRS
    experiment = Experiment(baseline, candidate, conditions, tell=tell)
    measured = experiment.measure(min(pairs, rule.most_pairs))
    judgement = judge_counts(
        candidate_ratios(measured, metric), control_ratios(measured, metric), max_slowdown=rule.max_slowdown
    )
    return _lane(metric, judgement, experiment, rule)


def _lane(metric: Metric, judgement: Judgement, experiment: Experiment, rule: Rule) -> GatedLane:
    trials = experiment.trials()
    return GatedLane(
        metric=metric,
        judgement=judgement,
        max_slowdown=rule.max_slowdown,
        trials=trials,
        tables=find_changed_places(
            trials.pairs, unit=trials.plan.unit, calls_per_step=trials.plan.calls_per_step
        ),
    )
