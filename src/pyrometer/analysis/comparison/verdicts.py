"""By which rules a change is called one.

Counts are exact, and may be judged from one run a side. Times are not: a machine with neighbours makes
the same code 10 % slower for minutes. So they are judged only where enough processes of both sides ran by
turns, by how the processes differ, and never by the steps within one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pyrometer.analysis import gate
from pyrometer.analysis.comparison.model import Change, Doubt, Quantity, Verdict
from pyrometer.stats.label_permutation import (
    change_interval,
    change_of_medians,
    holm_adjusted,
    label_p_value,
)
from pyrometer.stats.pooled import Interval

LEAST_RUNS = 8
"""On each side, to judge a time."""
ALPHA = 0.01
"""How often a table of times that did not change may call one of them changed."""
CONFIDENCE = 0.99
LEAST_EFFECT = gate.LEAST_EFFECT
"""A smaller change does not matter, however sure it is."""
SAME_WITHIN = gate.MARGIN
"""No change: the whole interval is within so much of none."""
LEAST_TESTED_SHARE = 0.01
"""Of the whole, on the average of all runs: smaller parts are shown and not tested."""
EVEN_TURNS = (0.25, 0.75)
"""Runs take turns where, of all pairs of one from each side, that of A is the earlier in such a share;
and where in the order of time the side changes so often that blocks of runs of the smaller side are of
about two at most, on the average."""

# Means over steps are the same only as far as floating-point numbers go.
COUNT_TOLERANCE = 1e-6
BYTES_TOLERANCE = 0.001
"""Of bytes that are counted: buffers of a library may come and go."""
PEAK_TOLERANCE = 0.02
"""Of the most that a process held: where its pages lie differs from start to start."""
INSTRUCTIONS_TOLERANCE = 0.005
"""With one hash seed, simulated counts repeat to 0.07 %."""
UNSEEDED_INSTRUCTIONS_TOLERANCE = 0.1
"""Between hash seeds, the instructions of a program in Python moved by 8.5 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One figure in all runs of both sides; None in a run in which it was not measured.

    ``shown`` is what columns show of both sides, where that is not the median over the runs: medians of
    parts do not add up to the median of the whole.
    """

    quantity: Quantity
    before: Sequence[float | None]
    after: Sequence[float | None]
    shown: tuple[float | None, float | None] | None = None
    is_tested: bool = True
    """Whether it is large enough to be."""


def find_doubt(
    before_started_s: Sequence[float | None],
    after_started_s: Sequence[float | None],
    *,
    same_machine: bool,
) -> Doubt | None:
    """Why times of these runs cannot be judged; None where they can. Both by when each run began."""
    if not same_machine:
        return Doubt.OTHER_MACHINE
    if min(len(before_started_s), len(after_started_s)) < LEAST_RUNS:
        return Doubt.FEW_RUNS
    return None if take_turns(before_started_s, after_started_s) else Doubt.NOT_INTERLEAVED


def take_turns(before_started_s: Sequence[float | None], after_started_s: Sequence[float | None]) -> bool:
    """Whether runs of both sides lie between each other in time; not where that is not known.

    Being early as often as late is not enough: a busy stretch in the middle of AAAABBBBBBBBAAAA lands on
    B alone.
    """
    before = [started_s for started_s in before_started_s if started_s is not None]
    after = [started_s for started_s in after_started_s if started_s is not None]
    if len(before) < len(before_started_s) or len(after) < len(after_started_s) or not before or not after:
        return False
    earlier = sum((one < other) + (one == other) / 2 for one in before for other in after)
    low, high = EVEN_TURNS
    is_even = low <= earlier / (len(before) * len(after)) <= high
    return is_even and _blocks(before, after) >= min(len(before), len(after))


def _blocks(before: Sequence[float], after: Sequence[float]) -> int:
    """How many stretches of runs of one side there are in the order of time."""
    ordered = sorted([(started_s, 0) for started_s in before] + [(started_s, 1) for started_s in after])
    return 1 + sum(one != other for (_, one), (_, other) in pairwise(ordered))


def judge_times(pairings: Sequence[Pairing], doubt: Doubt | None) -> list[Change]:
    """The changes of one table of times, which share one chance of error."""
    tested = [index for index, one in enumerate(pairings) if doubt is None and _is_judged(one)]
    p_values = holm_adjusted([_p_value(pairings[index]) for index in tested])
    sure = {index for index, p_value in zip(tested, p_values, strict=True) if p_value <= ALPHA}
    return [
        _judge_time(one, is_sure=index in sure) if index in tested else _untold(one, doubt)
        for index, one in enumerate(pairings)
    ]


def judge_counts(one: Pairing, *, tolerance: float) -> Change:
    """A change of counts: definite where all runs of a side say the same."""
    before, after = _known(one.before), _known(one.after)
    if not before or not after:
        return _change(one, Verdict.CANNOT_TELL, Doubt.NOT_MEASURED)
    if _agree([*before, *after], tolerance):
        return _change(one, Verdict.SAME, None)
    if max(before) < min(after) and not _agree([max(before), min(after)], tolerance):
        return _change(one, Verdict.MORE, None)
    if max(after) < min(before) and not _agree([max(after), min(before)], tolerance):
        return _change(one, Verdict.FEWER, None)
    return _change(one, Verdict.CANNOT_TELL, Doubt.VARIES)


def middle(values: Sequence[float | None]) -> float | None:
    """The median of those that were measured; None without any."""
    known = _known(values)
    return median(known) if known else None


def _agree(values: Sequence[float], tolerance: float) -> bool:
    return max(values) - min(values) <= tolerance * max(map(abs, values))


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _is_judged(one: Pairing) -> bool:
    enough = min(len(_known(one.before)), len(_known(one.after))) >= LEAST_RUNS
    return one.is_tested and enough


def _p_value(one: Pairing) -> float:
    before, after = _known(one.before), _known(one.after)
    change = change_of_medians(before, after)
    if change is not None and abs(change) < LEAST_EFFECT:
        return 1.0  # It could not be called a change: what it says only has to count among the others.
    return label_p_value(before, after)


def _judge_time(one: Pairing, *, is_sure: bool) -> Change:
    before, after = _known(one.before), _known(one.after)
    interval = change_interval(before, after, confidence=CONFIDENCE)
    change = change_of_medians(before, after)
    grew = median(after) > median(before)
    if is_sure and (change is None or abs(change) >= LEAST_EFFECT):
        verdict: Verdict = _DIRECTIONS[one.quantity][grew]
    elif interval is not None and interval.low >= -SAME_WITHIN and interval.high <= SAME_WITHIN:
        verdict = Verdict.NO_CHANGE
    else:
        verdict = Verdict.CANNOT_TELL
    doubt = Doubt.UNDECIDED if verdict is Verdict.CANNOT_TELL else None
    return _change(one, verdict, doubt, interval)


_DIRECTIONS = {
    Quantity.DURATION: (Verdict.FASTER, Verdict.SLOWER),
    Quantity.RATE: (Verdict.SLOWER, Verdict.FASTER),
    Quantity.SHARE: (Verdict.FEWER, Verdict.MORE),
}


def _untold(one: Pairing, doubt: Doubt | None) -> Change:
    if not _known(one.before) or not _known(one.after):
        return _change(one, Verdict.CANNOT_TELL, Doubt.NOT_MEASURED)
    if doubt is None:
        # A figure may be missing in some of the runs.
        doubt = Doubt.TOO_SMALL if not one.is_tested else Doubt.FEW_RUNS
    return _change(one, Verdict.CANNOT_TELL, doubt)


def _change(one: Pairing, verdict: Verdict, doubt: Doubt | None, interval: Interval | None = None) -> Change:
    before, after = one.shown or (middle(one.before), middle(one.after))
    return Change(
        quantity=one.quantity,
        before=before,
        after=after,
        verdict=verdict,
        doubt=doubt,
        interval=interval,
    )
