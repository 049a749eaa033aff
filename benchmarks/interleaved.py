"""Many small things timed side by side, so that a busy neighbour slows them all alike.

Each round visits every subject once, in random order; a ratio is only ever taken between two
samples of the same round, and the figure given is the median of those ratios.
"""

import contextlib
import gc
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

CONFIDENCE = 0.99
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something to be timed: a function that does it as often as it is told.

    ``surroundings`` is entered before a sample and left after it, outside the timing: what a
    tool changes in the whole process then holds for its own samples only.
    """

    name: str
    loop: Callable[[int], object]
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long as its reference a subject takes, with a 99 % interval."""

    estimate: float
    low: float
    high: float


# The time of one iteration in ns for each subject, one value a round.
Timings = Mapping[str, Sequence[float]]


def pin_to_one_core() -> str:
    """Keep this process on one core where the system allows it; returns what was done."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned: this system cannot"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


def measure(
    subjects: Sequence[Subject], *, rounds: int, sample_ns: int, shuffler: random.Random
) -> dict[str, list[float]]:
    """One sample of every subject in every round, the garbage collector off."""
    timings: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    with _collector_off():
        iterations = {subject.name: _iterations_for(subject, sample_ns) for subject in subjects}
        for _ in range(rounds):
            gc.collect()
            for subject in shuffler.sample(subjects, len(subjects)):
                count = iterations[subject.name]
                timings[subject.name].append(_sample(subject, count) / count)
    return timings


def net_of(timings: Timings, overhead: str) -> dict[str, list[float]]:
    """The timings less those of the subject named ``overhead``, round by round."""
    return {
        name: [value - spent for value, spent in zip(values, timings[overhead], strict=True)]
        for name, values in timings.items()
        if name != overhead
    }


def ratio(timings: Timings, subject: str, reference: str) -> Ratio:
    """The median over rounds of subject to reference, and its bootstrap interval."""
    logarithms = [
        _log_ratio(value, base) for value, base in zip(timings[subject], timings[reference], strict=True)
    ]
    # Seeded: the same timings give the same interval.
    resampler = random.Random(0)
    medians = sorted(
        statistics.median_low(resampler.choices(logarithms, k=len(logarithms))) for _ in range(RESAMPLES)
    )
    tail = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Ratio(
        estimate=math.exp(statistics.median_low(logarithms)),
        low=math.exp(medians[tail]),
        high=math.exp(medians[-1 - tail]),
    )


def _log_ratio(value: float, base: float) -> float:
    """The logarithm of a ratio; where noise left nothing of a net time, beyond all others."""
    if value <= 0:
        return -math.inf
    return math.inf if base <= 0 else math.log(value / base)


def _sample(subject: Subject, iterations: int) -> int:
    with subject.surroundings():
        # What was just switched on is cold for the first few.
        subject.loop(iterations // 10 + 1)
        started_ns = time.perf_counter_ns()
        subject.loop(iterations)
        return time.perf_counter_ns() - started_ns


def _iterations_for(subject: Subject, sample_ns: int) -> int:
    """How many iterations make a sample of about ``sample_ns``, from the best of three tries."""
    iterations = 1
    while True:
        spent_ns = min(_sample(subject, iterations) for _ in range(3))
        if spent_ns >= sample_ns / 4:
            return max(round(iterations * sample_ns / spent_ns), 1)
        iterations *= 2 if spent_ns > sample_ns / 16 else 8


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
