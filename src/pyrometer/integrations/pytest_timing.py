"""How many times as long as a reference a function takes, measured in turns within one process.

A block of rounds is the unit: in each round both are timed once, in random order, for a few
milliseconds. So what is established holds for this process: its hash seed and where its memory lies
are the same in all blocks, and another process may have others.
"""

import asyncio
import gc
import inspect
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from typing import Any

from pyrometer.analysis.gate import LEAST_EFFECT, MARGIN
from pyrometer.stats.pooled import pooled_median, two_level_interval
from pyrometer.stats.sign_flip import above, below, sign_flip_p_value

ERROR_RATE = 0.01
"""How often what is not so may be taken for established, over all looks."""
_LOOKS = {1: (0.01,), 2: (0.002, 0.008), 3: (0.002, 0.003, 0.005)}
"""By number of looks the part of the error rate that each may use."""
_BLOCKS = (10, 20, 40)
_LONGEST_NS = 10_000_000_000
"""More blocks than the first ten only as far as that allows."""
_SAMPLE_NS = 4_000_000
_BLOCK_NS = 250_000_000
_MOST_ROUNDS = 5
_MOST_CALLS = 1_000_000
_TRIES = 5
_TRY_NS = 500_000
_WARM_NS = 200_000_000
_SAME_WITHIN = math.log1p(MARGIN)

Timed = Callable[[int], int]
"""Makes so many calls, and says how many nanoseconds they took."""
Blocks = Sequence[Sequence[float]]
"""By block the logarithms of the ratios of its rounds."""


class Verdict(Enum):
    """What is established; ``CANNOT_TELL`` where nothing is."""

    SLOWER = "slower"
    FASTER = "faster"
    NO_CHANGE = "no change"
    WITHIN = "within the limit"
    CANNOT_TELL = "cannot tell"


Judge = Callable[[Blocks, float], Verdict]
"""From blocks and an error rate to what they establish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How many times as long as the reference it takes: the median over all rounds.

    ``low`` and ``high`` hold 99 % of what other blocks of this process would have given.
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    blocks: int
    duration_ns: float
    """Of one call, the median."""
    reference_ns: float

    def __str__(self) -> str:
        return f"{self.ratio:.3g} × the reference ({self.low:.3g}–{self.high:.3g}): {self.verdict.value}"


def against_limit(ratio: float) -> Judge:
    """Whether it is established that it takes more than ``ratio`` times as long, or that it does not."""
    threshold = math.log(ratio)

    def judge(blocks: Blocks, error_rate: float) -> Verdict:
        if sign_flip_p_value(above(blocks, threshold)) <= error_rate:
            return Verdict.SLOWER
        if sign_flip_p_value(below(blocks, threshold)) <= error_rate:
            return Verdict.WITHIN
        return Verdict.CANNOT_TELL

    return judge


def either_way(blocks: Blocks, error_rate: float) -> Verdict:
    """Whether it is established to be slower or faster, and by 1 % or more, or to be the same to 3 %."""
    change = math.expm1(pooled_median(blocks))
    if change >= LEAST_EFFECT and sign_flip_p_value(blocks) <= error_rate / 2:
        return Verdict.SLOWER
    if change <= -LEAST_EFFECT and sign_flip_p_value(below(blocks, 0)) <= error_rate / 2:
        return Verdict.FASTER
    same = (below(blocks, _SAME_WITHIN), above(blocks, -_SAME_WITHIN))
    if all(sign_flip_p_value(values) <= error_rate for values in same):
        return Verdict.NO_CHANGE
    return Verdict.CANNOT_TELL


def compare(timed: Timed, reference: Timed, *, judge: Judge, chooser: random.Random) -> Comparison:
    """Both timed in turns, until something is established or all looks are used up."""
    sides = (_Side(timed), _Side(reference))
    sample_ns = max(_SAMPLE_NS, *(side.call_ns for side in sides))
    for side in sides:
        side.take_samples_of(sample_ns)
    rounds = max(1, min(_MOST_ROUNDS, int(_BLOCK_NS / (2 * sample_ns))))
    # Odd: the middle one of a block speaks for it.
    rounds -= rounds % 2 == 0
    looks = _planned_looks(2 * sample_ns * rounds)
    blocks: list[list[float]] = []
    verdict = Verdict.CANNOT_TELL
    for number, error_rate in zip(_BLOCKS, _LOOKS[looks], strict=False):
        while len(blocks) < number:
            blocks.append([_round(sides, chooser) for _ in range(rounds)])
            # Only what is young: what the calls left behind since the last block.
            gc.collect(0)
        verdict = judge(blocks, error_rate)
        if verdict is not Verdict.CANNOT_TELL:
            break
    interval = two_level_interval(blocks, confidence=1 - ERROR_RATE)
    return Comparison(
        verdict=verdict,
        ratio=math.exp(pooled_median(blocks)),
        low=math.exp(interval.low),
        high=math.exp(interval.high),
        blocks=len(blocks),
        duration_ns=sides[0].median_ns,
        reference_ns=sides[1].median_ns,
    )


@contextmanager
def timing(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    positional: Sequence[Any] = (),
    *,
    clock_ns: Callable[[], int] = time.perf_counter_ns,
) -> Iterator[Timed]:
    """What times calls of the function; a coroutine function's run in one loop, which is not timed."""
    if not inspect.iscoroutinefunction(function):

        def timed(calls: int) -> int:
            began_ns = clock_ns()
            for _ in repeat(None, calls):
                function(*positional, **arguments)
            return clock_ns() - began_ns

        yield timed
        return
    # Given its loops, the runner leaves alone the one that the thread has as its current.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:

        async def awaited(calls: int) -> int:
            began_ns = clock_ns()
            for _ in repeat(None, calls):
                await function(*positional, **arguments)
            return clock_ns() - began_ns

        yield lambda calls: runner.run(awaited(calls))


@contextmanager
def without_collections() -> Iterator[None]:
    """The garbage collector stands still, and is as before afterwards."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Side:
    """One of the two, with how many calls make a sample."""

    def __init__(self, timed: Timed) -> None:
        self._timed = timed
        self._seen_ns: list[float] = []
        self._calls = 1
        self.call_ns = self._warm_up()

    def _warm_up(self) -> float:
        """How long a call takes, after some that start up what there is to start.

        By the quickest of several tries, each so short that few are interrupted: whoever seems slower
        here would get shorter samples than the other.
        """
        calls, spent_ns = 1, 0
        while True:
            tries_ns: list[int] = []
            while len(tries_ns) < _TRIES and not (tries_ns and spent_ns >= _WARM_NS):
                tries_ns.append(max(self._timed(calls), 1))
                spent_ns += tries_ns[-1]
            quickest_ns = min(tries_ns)
            if quickest_ns >= _TRY_NS / 2 or calls >= _MOST_CALLS:
                return quickest_ns / calls
            wanted = round(calls * _TRY_NS / quickest_ns)
            calls = min(wanted, 10 * calls, _MOST_CALLS)

    def take_samples_of(self, sample_ns: float) -> None:
        """Samples are to take about so long.

        As long as the other's: of two that are alike, the one with longer samples would be interrupted
        more often, and seem slower on a busy machine.
        """
        self._calls = min(max(1, round(sample_ns / self.call_ns)), _MOST_CALLS)

    def sample(self) -> float:
        """Nanoseconds a call."""
        seen_ns = max(self._timed(self._calls), 1) / self._calls
        self._seen_ns.append(seen_ns)
        return seen_ns

    @property
    def median_ns(self) -> float:
        return pooled_median([self._seen_ns])


def _round(sides: tuple[_Side, _Side], chooser: random.Random) -> float:
    if chooser.random() < 0.5:
        first_ns = sides[0].sample()
        return math.log(first_ns / sides[1].sample())
    second_ns = sides[1].sample()
    return math.log(sides[0].sample() / second_ns)


def _planned_looks(per_block_ns: float) -> int:
    """How often the blocks are looked at: chosen from how long they take, before any is there."""
    return max(1, sum(number * per_block_ns <= _LONGEST_NS for number in _BLOCKS))
