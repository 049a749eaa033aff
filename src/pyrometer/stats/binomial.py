"""How sure a rate is that was counted."""

import math

from pyrometer.stats.pooled import Interval

_HALVINGS = 60


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """The rates that fit so many successes in so many trials: exact, and never too short."""
    tail = (1 - confidence) / 2
    return Interval(
        low=0.0 if successes == 0 else _lowest_rate(successes, trials, tail),
        high=1.0 if successes == trials else 1 - _lowest_rate(trials - successes, trials, tail),
    )


def _lowest_rate(successes: int, trials: int, tail: float) -> float:
    """The rate at which so many successes or more have the probability ``tail``."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        rate = (low + high) / 2
        if _at_least(successes, trials, rate) < tail:
            low = rate
        else:
            high = rate
    return low


def _at_least(successes: int, trials: int, rate: float) -> float:
    if rate in {0.0, 1.0}:
        return rate
    logarithm, opposite = math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(_log_ways(trials, count) + count * logarithm + (trials - count) * opposite)
        for count in range(successes, trials + 1)
    )


def _log_ways(trials: int, count: int) -> float:
    return math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
