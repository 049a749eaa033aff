"""The gate: measures until a planned look gives a verdict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyrometer.analysis.attribution import find_changed_places
from pyrometer.analysis.gate import (
    COUNTED_PAIRS,
    INSTRUCTION_PAIRS,
    LOOKS,
    Judgement,
    Look,
    Reason,
    Verdict,
    judge_counts,
    judge_suite,
)
from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import (
    Metric,
    average_ratios,
    candidate_ratios,
    control_ratios,
    default_metric,
)
from pyrometer.experiment.experiment import Conditions, Contender, Experiment

INSTRUCTION_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the gate is to judge."""

    max_slowdown: float = 0.0
    most_pairs: int = LOOKS[-1].pairs

    @property
    def looks(self) -> Sequence[Look]:
        """The planned ones that fit; with fewer pairs than the first needs, one that decides nothing.

        Half of the first one's chance is out of reach for them. With all of it nine pairs could decide, and
        their control, which is asked both ways, could never object.
        """
        return [look for look in LOOKS if look.pairs <= self.most_pairs] or [
            Look(pairs=self.most_pairs, alpha=LOOKS[0].alpha / 2)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One program, or one benchmark of a suite, against its baseline."""

    baseline: Contender
    candidate: Contender
    conditions: Conditions
    tell: Callable[[str], None]
    subject: str | None = None

    def experiment(self) -> Experiment:
        """Its measurement, from the beginning."""
        return Experiment(self.baseline, self.candidate, self.conditions, tell=self.tell)


def gate_times(candidates: Sequence[Candidate], metric: Metric | None, rule: Rule) -> Iterator[GatedLane]:
    """Measure and judge the time of each; they share one chance of a false alarm.

    ``metric`` None: that of a sample, or of a step where the baseline does not tell its samples.
    """
    experiments = [candidate.experiment() for candidate in candidates]
    metrics = [metric or Metric.LATENCY for _ in candidates]
    judgements: list[Judgement | None] = [None] * len(candidates)
    looks = rule.looks
    for look in looks:
        for index, experiment in enumerate(experiments):
            if not _is_decided(judgements[index]):
                pairs = experiment.measure(look.pairs)
                metrics[index] = metric or default_metric(pairs)
        judgements = [
            *judge_suite(
                [candidate_ratios(one.pairs, by) for one, by in zip(experiments, metrics, strict=True)],
                [control_ratios(one.pairs, by) for one, by in zip(experiments, metrics, strict=True)],
                judgements,
                averages=[
                    average_ratios(one.pairs, by) for one, by in zip(experiments, metrics, strict=True)
                ],
                max_slowdown=rule.max_slowdown,
                look=look,
                is_last=look is looks[-1],
            )
        ]
        if all(map(_is_decided, judgements)):
            break
    for candidate, experiment, by, judgement in zip(
        candidates, experiments, metrics, judgements, strict=True
    ):
        if judgement is not None:
            yield _lane(candidate, experiment, by, judgement, rule)


def gate_counts(candidate: Candidate, metric: Metric, rule: Rule) -> GatedLane:
    """Measure and judge a metric that barely varies."""
    conditions = candidate.conditions
    if metric is Metric.INSTRUCTIONS:
        wanted = replace(conditions.wanted, rounds=INSTRUCTION_ROUNDS)
        conditions = replace(conditions, wanted=wanted, count_instructions=True)
        pairs = INSTRUCTION_PAIRS
    else:
        conditions = replace(conditions, count_live_bytes=True)
        pairs = COUNTED_PAIRS
    experiment = replace(candidate, conditions=conditions).experiment()
    measured = experiment.measure(min(pairs, rule.most_pairs))
    judgement = judge_counts(
        candidate_ratios(measured, metric),
        control_ratios(measured, metric),
        max_slowdown=rule.max_slowdown,
        needed=pairs,
    )
    return _lane(candidate, experiment, metric, judgement, rule)


def _alpha_of_places(judgement: Judgement) -> float:
    """With which chance of error places are told.

    That of the look, once the program has failed against its share of it. Else the share itself, since
    nothing below is surer than the whole; where nothing was judged, that of the first look.
    """
    alpha = judgement.alpha if judgement.verdict is Verdict.FAIL else judgement.fail_alpha
    return alpha or LOOKS[0].alpha


def _is_decided(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.verdict is not None


def _lane(
    candidate: Candidate, experiment: Experiment, metric: Metric, judgement: Judgement, rule: Rule
) -> GatedLane:
    trials = experiment.trials()
    return GatedLane(
        metric=metric,
        judgement=judgement,
        max_slowdown=rule.max_slowdown,
        trials=trials,
        tables=find_changed_places(
            trials.pairs,
            unit=trials.plan.unit,
            calls_per_step=trials.plan.calls_per_step,
            alpha=_alpha_of_places(judgement),
            is_void=judgement.reason is Reason.CONTROL,
        )
        # Places are told by their time, which counting changes.
        if metric.is_timed
        else (),
        subject=candidate.subject,
    )
