"""A comparison that was measured: pairs of processes by turns, judged at planned looks."""

import math
from collections.abc import Sequence
from statistics import median

from pyrometer.analysis.attribution import find_changed_places
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    Metric,
    MetricChange,
    Quantity,
    SideFacts,
    Verdict,
)
from pyrometer.analysis.comparison.verdicts import LEAST_EFFECT, PEAK_TOLERANCE, SAME_WITHIN, Pairing
from pyrometer.analysis.comparison.verdicts import judge_counts as judge_peaks
from pyrometer.analysis.gate import Look, interval_of, is_slower_on_average, two_sided_p_value
from pyrometer.analysis.identity import Comparability
from pyrometer.analysis.trials import Metric as TrialMetric
from pyrometer.analysis.trials import (
    average_ratios,
    candidate_ratios,
    control_ratios,
    default_metric,
    value_of,
)
from pyrometer.record.trials import Pair, Trials, TrialSide
from pyrometer.stats.pooled import pooled_median
from pyrometer.stats.sign_flip import above, below, sign_flip_p_value


def judge_change(pairs: Sequence[Pair], look: Look) -> tuple[Verdict, Doubt | None]:
    """What a look at the time of a sample says, or of a step where A does not tell its samples; either way.

    ``CANNOT_TELL`` with the doubt ``UNDECIDED`` means that more pairs may tell.
    """
    metric = default_metric(pairs)
    ratios = [group for group in candidate_ratios(pairs, metric) if group]
    if not ratios:
        return Verdict.CANNOT_TELL, Doubt.NOT_MEASURED
    control = two_sided_p_value(control_ratios(pairs, metric))
    if control is not None and control <= look.alpha:
        return Verdict.CANNOT_TELL, Doubt.CONTROL
    change = math.expm1(pooled_median(ratios))
    # Either way, so that each has half of the chance of error.
    if change >= LEAST_EFFECT and sign_flip_p_value(ratios) <= look.alpha / 2:
        return Verdict.SLOWER, None
    if change <= -LEAST_EFFECT and sign_flip_p_value(below(ratios, 0.0)) <= look.alpha / 2:
        return Verdict.FASTER, None
    limit = math.log1p(SAME_WITHIN)
    if max(sign_flip_p_value(below(ratios, limit)), sign_flip_p_value(above(ratios, -limit))) <= look.alpha:
        is_even = not _differs_on_average(pairs, metric, look)
        return (Verdict.NO_CHANGE, None) if is_even else (Verdict.CANNOT_TELL, Doubt.UNEVEN)
    return Verdict.CANNOT_TELL, Doubt.UNDECIDED


def _differs_on_average(pairs: Sequence[Pair], metric: TrialMetric, look: Look) -> bool:
    averages = average_ratios(pairs, metric)
    either_way = (averages, [-average for average in averages])
    return any(is_slower_on_average(one, max_slowdown=0.0, alpha=look.alpha / 2) for one in either_way)


def build_measured(trials: Trials, look: Look, comparability: Comparability) -> Comparison:
    """The comparison that the pairs give at their last look."""
    verdict, doubt = judge_change(trials.pairs, look)
    return Comparison(
        before=_facts(trials, trials.baseline),
        after=_facts(trials, trials.candidate),
        comparability=comparability,
        doubt=doubt if doubt in {Doubt.CONTROL, Doubt.UNEVEN} else None,
        metrics=tuple(_metrics(trials, verdict, doubt)),
        tables=find_changed_places(
            trials.pairs,
            unit=trials.plan.unit,
            calls_per_step=trials.plan.calls_per_step,
            alpha=look.alpha,
            is_void=doubt is Doubt.CONTROL,
        ),
        trials=trials,
        look=look,
    )


def _metrics(trials: Trials, verdict: Verdict, doubt: Doubt | None) -> list[MetricChange]:
    pairs = trials.pairs
    is_program = trials.plan.unit == "program"
    judged = default_metric(pairs)
    has_equal_steps = have_equal_samples(pairs)
    found = [
        MetricChange(
            metric=Metric.PROFILED if is_program else Metric.STEP,
            subject=None,
            change=_time_change(
                pairs,
                TrialMetric.LATENCY,
                verdict,
                doubt,
                is_judged=judged is TrialMetric.LATENCY or has_equal_steps,
            ),
        )
    ]
    if judged is TrialMetric.THROUGHPUT:
        rate = _time_change(pairs, judged, verdict, doubt, is_judged=True)
        # What was judged comes first: of steps on other numbers of samples, that is the rate alone.
        found.insert(
            1 if has_equal_steps else 0,
            MetricChange(metric=Metric.SAMPLES_PER_SECOND, subject=None, change=_as_rate(rate)),
        )
    peaks = Pairing(
        quantity=Quantity.BYTES,
        before=[pair.baseline.peak_bytes for pair in pairs],
        after=[pair.candidate.peak_bytes for pair in pairs],
    )
    found.append(
        MetricChange(
            metric=Metric.PEAK_HOST_BYTES, subject=None, change=judge_peaks(peaks, tolerance=PEAK_TOLERANCE)
        )
    )
    return found


def _time_change(
    pairs: Sequence[Pair], metric: TrialMetric, verdict: Verdict, doubt: Doubt | None, *, is_judged: bool
) -> Change:
    """Before is the median over processes; after is that with the change of turns side by side."""
    ratios = [group for group in candidate_ratios(pairs, metric) if group]
    values = [value for value in (value_of(pair.baseline, metric) for pair in pairs) if value is not None]
    before = median(values) if values else None
    change = math.exp(pooled_median(ratios)) if ratios else None
    if not is_judged:
        verdict, doubt = Verdict.CANNOT_TELL, Doubt.UNDECIDED
    return Change(
        quantity=Quantity.DURATION,
        before=before,
        after=None if before is None or change is None else before * change,
        verdict=verdict,
        doubt=doubt,
        interval=interval_of(ratios),
    )


def have_equal_samples(pairs: Sequence[Pair]) -> bool:
    """Whether steps of both sides work on as many samples: then a step's time and a sample's are one."""
    return all(
        one.samples is not None
        and other.samples is not None
        and one.samples * other.steps == other.samples * one.steps
        for pair in pairs
        for one, other in zip(pair.candidate.rounds, pair.baseline.rounds, strict=True)
    )


def _as_rate(change: Change) -> Change:
    """Times of a sample as samples a second; faster is more of them."""
    interval = change.interval
    return Change(
        quantity=Quantity.RATE,
        before=None if not change.before else 1e9 / change.before,
        after=None if not change.after else 1e9 / change.after,
        verdict=change.verdict,
        doubt=change.doubt,
        interval=None
        if interval is None
        else type(interval)(low=1 / (1 + interval.high) - 1, high=1 / (1 + interval.low) - 1),
    )


def _facts(trials: Trials, side: TrialSide) -> SideFacts:
    processes = [pair.baseline if side is trials.baseline else pair.candidate for pair in trials.pairs]
    warmup = sum(trials.plan.warmup_turns) * len(processes)
    timed = sum(turn.steps for process in processes for turn in process.rounds)
    return SideFacts(
        name=side.name,
        program=trials.program,
        runs=len(processes),
        commit=side.commit,
        dirty=side.is_dirty,
        started_at=trials.started_at,
        steps_label=None,
        steps=timed + warmup,
        warmup_steps=warmup,
        is_steady=True,
        step_kinds=(),
        unfinished=(),
    )
