"""By which rules other tools call a program slower, given the times of one process of each side.

The rules are theirs, the samples are the gate's: 24 turns of a process that ran before, and of one that ran
after. The tools themselves take longer samples, and asv two processes. What they say of "faster" is not
counted here: it fails no build.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from pyrometer.stats.label_permutation import label_p_value

Samples = Sequence[float]

THRESHOLD = 0.05
BENCHSTAT_ALPHA = 0.05
ASV_ALPHA = 0.002
ASV_FACTOR = 1.1


def mean_is_slower(before: Samples, after: Samples) -> bool:
    """pytest-benchmark with ``--benchmark-compare-fail=mean:5%``."""
    return fmean(after) / fmean(before) - 1 > THRESHOLD


def minimum_is_slower(before: Samples, after: Samples) -> bool:
    """pytest-benchmark with ``--benchmark-compare-fail=min:5%``."""
    return min(after) / min(before) - 1 > THRESHOLD


def benchstat_is_slower(before: Samples, after: Samples) -> bool:
    """What benchstat does: it shows a difference of medians where Mann-Whitney's test has p < 0.05."""
    return median(after) > median(before) and label_p_value(before, after) < BENCHSTAT_ALPHA


def asv_is_slower(before: Samples, after: Samples) -> bool:
    """What asv compare does: Mann-Whitney's p < 0.002, and a median more than 1.1 times as long."""
    return median(before) < median(after) / ASV_FACTOR and label_p_value(before, after) < ASV_ALPHA


RULES: Mapping[str, Callable[[Samples, Samples], bool]] = {
    "mean:5%": mean_is_slower,
    "min:5%": minimum_is_slower,
    "benchstat": benchstat_is_slower,
    "asv": asv_is_slower,
}
