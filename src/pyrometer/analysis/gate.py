"""By which rule a candidate passes: three verdicts, planned looks, and a control that may void them.

Each look at the data has its own part of one error rate, so that looking early costs nothing in
truth. FAIL and PASS are both told only when the opposite is ruled out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from pyrometer.stats.pooled import Interval, pooled_median, two_level_interval
from pyrometer.stats.sign_flip import above, below, sign_flip_p_value

LEAST_EFFECT = 0.01
"""Beyond what is allowed: less is not worth a failed build, however sure it is."""
MARGIN = 0.03
"""PASS rules out that it is slower by so much more than is allowed."""
CONFIDENCE = 0.99

LEAST_FOR_INTERVAL = 8
"""Of fewer pairs not even the least and the largest enclose the median with that confidence."""

COUNTED_PAIRS = 5
"""Of peaks of memory, which barely vary."""
INSTRUCTION_PAIRS = 3
"""Under valgrind a process takes minutes, and repeats itself to a tenth of a percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """After so many pairs there is a look, with this chance of error."""

    pairs: int
    alpha: float


LOOKS = (Look(pairs=10, alpha=0.002), Look(pairs=20, alpha=0.003), Look(pairs=40, alpha=0.005))
"""One in a hundred, all together."""


class Verdict(StrEnum):
    """What the gate says."""

    PASS = "PASS"  # noqa: S105 - a verdict, no password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    REFUSED = "REFUSED"


class Reason(StrEnum):
    """Why."""

    SLOWER = "slower than allowed"
    WITHIN = "not slower by more than the margin"
    UNDECIDED = "neither could be ruled out"
    UNEVEN = "slower on the average, though not in a usual turn"
    CONTROL = "the control differs, though it is the same code"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the pairs so far say; ``verdict`` None: more of them are needed.

    Changes are relative: 0.03 is 3 % more than the baseline.
    """

    verdict: Verdict | None
    reason: Reason
    pairs: int
    alpha: float | None
    """Of this look; None where the metric is counted, and no chance is involved."""
    fail_alpha: float | None
    """What FAIL had to stand against: less, where benchmarks share one chance."""
    change: float | None
    interval: Interval | None
    p_slower: float | None
    """How likely such pairs would be, were it slower by no more than is allowed."""
    p_within: float | None
    """How likely, were it slower by the margin more than is allowed."""
    p_control: float | None
    control_change: float | None
    average_change: float | None
    """Of the time of all turns together; ``change`` is that of a usual one."""

    @property
    def smallest_seen(self) -> float | None:
        """About the smallest change that such pairs could have told from none."""
        if self.interval is None or self.change is None:
            return None
        return max(self.interval.high - self.change, self.change - self.interval.low)


def judge(
    ratios: Sequence[Sequence[float]],
    control: Sequence[Sequence[float]],
    *,
    averages: Sequence[float] = (),
    max_slowdown: float,
    look: Look,
    is_last: bool,
    suite: int = 1,
    tests: int = 1,
    may_fail: bool = True,
) -> Judgement:
    """The verdict of one look at logarithms of ratios, a group a pair.

    ``averages`` are those of all time that a pair's turns took together: see ``is_slower_on_average``.
    ``suite``, ``tests`` and ``may_fail`` are of several benchmarks: see ``judge_suite``.
    """
    groups = [group for group in ratios if group]
    if not groups:
        return _not_measured(len(ratios))
    change = math.expm1(pooled_median(groups))
    p_slower = _p_slower(groups, max_slowdown)
    p_within = sign_flip_p_value(below(groups, math.log1p(max_slowdown + MARGIN)))
    p_control = two_sided_p_value(control)
    fail_alpha = look.alpha / tests
    verdict, reason = _decide(
        control_flags=p_control is not None and p_control <= look.alpha / suite,
        is_slower=may_fail and p_slower <= fail_alpha and change >= max_slowdown + LEAST_EFFECT,
        is_within=p_within <= look.alpha,
        is_uneven=is_slower_on_average(averages, max_slowdown=max_slowdown, alpha=look.alpha),
        is_last=is_last,
    )
    return Judgement(
        verdict=verdict,
        reason=reason,
        pairs=len(groups),
        alpha=look.alpha,
        fail_alpha=fail_alpha,
        change=change,
        interval=interval_of(groups),
        p_slower=p_slower,
        p_within=p_within,
        p_control=p_control,
        control_change=math.expm1(pooled_median(control)) if any(control) else None,
        average_change=math.expm1(median(averages)) if averages else None,
    )


def is_slower_on_average(averages: Sequence[float], *, max_slowdown: float, alpha: float) -> bool:
    """Whether all turns together take longer by the margin more than is allowed, and surely more than that.

    A usual turn does not show what is done every hundredth step only: a program that is twice as slow
    there would pass. By itself it fails nothing, since a few disturbed turns move an average; but such a
    program is not called as fast as before.
    """
    if not averages or math.expm1(median(averages)) < max_slowdown + MARGIN:
        return False
    return _p_slower([[average] for average in averages], max_slowdown) <= alpha


def judge_suite(
    ratios: Sequence[Sequence[Sequence[float]]],
    controls: Sequence[Sequence[Sequence[float]]],
    before: Sequence[Judgement | None],
    *,
    averages: Sequence[Sequence[float]] = (),
    max_slowdown: float,
    look: Look,
    is_last: bool,
) -> list[Judgement]:
    """One look at several benchmarks, which share one chance of a false alarm (Holm's correction).

    They share the control's as well, or one of many would be void most of the time. ``before`` is what
    earlier looks said of each: a verdict that was given stands.
    """
    open_tests = [index for index, known in enumerate(before) if known is None or known.verdict is None]
    p_values = {index: _p_slower(ratios[index], max_slowdown) for index in open_tests}
    # The smallest has to stand against all of them, the next against one less, until one does not stand.
    left = len(ratios) - sum(known is not None and known.verdict is Verdict.FAIL for known in before)
    judged = {index: known for index, known in enumerate(before) if known is not None}
    may_fail = True
    for index in sorted(open_tests, key=p_values.__getitem__):
        judged[index] = judge(
            ratios[index],
            controls[index],
            averages=averages[index] if averages else (),
            max_slowdown=max_slowdown,
            look=look,
            is_last=is_last,
            suite=len(ratios),
            tests=left,
            may_fail=may_fail,
        )
        may_fail = may_fail and p_values[index] <= look.alpha / left
        left -= may_fail
    return [judged[index] for index in range(len(ratios))]


def _p_slower(ratios: Sequence[Sequence[float]], max_slowdown: float) -> float:
    groups = [group for group in ratios if group]
    return sign_flip_p_value(above(groups, math.log1p(max_slowdown))) if groups else 1.0


def _decide(
    *, control_flags: bool, is_slower: bool, is_within: bool, is_uneven: bool, is_last: bool
) -> tuple[Verdict | None, Reason]:
    if control_flags:
        return Verdict.INCONCLUSIVE, Reason.CONTROL
    if is_slower:
        return Verdict.FAIL, Reason.SLOWER
    if is_within and is_uneven:
        return Verdict.INCONCLUSIVE, Reason.UNEVEN
    if is_within:
        return Verdict.PASS, Reason.WITHIN
    return (Verdict.INCONCLUSIVE if is_last else None), Reason.UNDECIDED


def judge_counts(
    ratios: Sequence[Sequence[float]],
    control: Sequence[Sequence[float]],
    *,
    max_slowdown: float,
    needed: int = 1,
) -> Judgement:
    """The verdict on a metric that barely varies: all pairs must agree, by more than the control varies.

    With fewer pairs than are ``needed`` nothing is told.
    """
    values = [value for group in ratios for value in group]
    if not values:
        return _not_measured(len(ratios))
    change = math.expm1(pooled_median([values]))
    controls = [math.expm1(value) for group in control for value in group]
    noise = max(map(abs, controls), default=0.0)
    verdict, reason = _decide(
        control_flags=bool(controls) and (min(controls) > LEAST_EFFECT or max(controls) < -LEAST_EFFECT),
        is_slower=len(values) >= needed
        and math.expm1(min(values)) > max_slowdown + noise
        and change >= max_slowdown + LEAST_EFFECT,
        is_within=len(values) >= needed and math.expm1(max(values)) + noise < max_slowdown + MARGIN,
        is_uneven=False,
        is_last=True,
    )
    return Judgement(
        verdict=verdict,
        reason=reason,
        pairs=len(values),
        alpha=None,
        fail_alpha=None,
        change=change,
        interval=relative(Interval(low=min(values), high=max(values))),
        p_slower=None,
        p_within=None,
        p_control=None,
        control_change=pooled_median([controls]) if controls else None,
        average_change=None,
    )


def two_sided_p_value(groups: Sequence[Sequence[float]]) -> float | None:
    """How likely such differences would be if there were none, either way; None without any."""
    known = [group for group in groups if group]
    if not known:
        return None
    return min(1.0, 2 * min(sign_flip_p_value(known), sign_flip_p_value(below(known, 0.0))))


def interval_of(groups: Sequence[Sequence[float]]) -> Interval | None:
    """In which the relative change lies, by logarithms of ratios; None where pairs are too few for one."""
    if len(groups) < LEAST_FOR_INTERVAL:
        return None
    return relative(two_level_interval(groups, confidence=CONFIDENCE))


def relative(interval: Interval) -> Interval:
    """An interval of logarithms as one of relative changes."""
    return Interval(low=math.expm1(interval.low), high=math.expm1(interval.high))


def _not_measured(pairs: int) -> Judgement:
    return Judgement(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.NOT_MEASURED,
        pairs=pairs,
        alpha=None,
        fail_alpha=None,
        change=None,
        interval=None,
        p_slower=None,
        p_within=None,
        p_control=None,
        control_change=None,
        average_change=None,
    )
