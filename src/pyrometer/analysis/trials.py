"""What pairs of processes say about one metric: how many times as much the candidate takes."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from pyrometer.record.trials import Pair, ProcessTurns, Round

Ratios = list[list[float]]
"""Logarithms of candidate to baseline, a group for each pair: above 0 is worse."""


class Metric(StrEnum):
    """What is compared; of all, less is better."""

    THROUGHPUT = "throughput"
    """The time of a sample: one over samples a second."""
    LATENCY = "latency"
    """The time of a step."""
    PEAK_MEMORY = "peak_memory"
    INSTRUCTIONS = "instructions"

    @property
    def is_timed(self) -> bool:
        """Whether it varies from process to process although nothing has changed."""
        return self in {Metric.THROUGHPUT, Metric.LATENCY}


def knows_samples(pairs: Sequence[Pair]) -> bool:
    """Whether all turns say how many samples were worked on."""
    return all(turn.samples for pair in pairs for process in processes_of(pair) for turn in process.rounds)


def processes_of(pair: Pair) -> list[ProcessTurns]:
    """The baseline's, the candidate's, and the control if there is one."""
    return [process for process in (pair.baseline, pair.candidate, pair.control) if process is not None]


def candidate_ratios(pairs: Sequence[Pair], metric: Metric) -> Ratios:
    """The candidate's to the baseline's, in each pair."""
    return [_ratios(pair.candidate, pair.baseline, metric) for pair in pairs]


def control_ratios(pairs: Sequence[Pair], metric: Metric) -> Ratios:
    """The same of the control, which runs the baseline's code: about 0."""
    return [_ratios(pair.control, pair.baseline, metric) for pair in pairs if pair.control is not None]


def value_of(process: ProcessTurns, metric: Metric) -> float | None:
    """The metric of one process: the median over its turns, or its one count."""
    if metric.is_timed:
        values = sorted(filter(None, map(_TIMES[metric], process.rounds)))
        return values[(len(values) - 1) // 2] if values else None
    return _count(process, metric)


def _ratios(process: ProcessTurns, baseline: ProcessTurns, metric: Metric) -> list[float]:
    if metric.is_timed:
        a_time = _TIMES[metric]
        pairs = zip(map(a_time, process.rounds), map(a_time, baseline.rounds), strict=True)
    else:
        pairs = zip([_count(process, metric)], [_count(baseline, metric)], strict=True)
    # A turn without its figure, or of no time at all, says nothing.
    return [math.log(one / other) for one, other in pairs if one and other]


def _step_ns(turn: Round) -> float:
    return turn.duration_ns / turn.steps


def _sample_ns(turn: Round) -> float | None:
    return turn.duration_ns / turn.samples if turn.samples else None


_TIMES: dict[Metric, Callable[[Round], float | None]] = {
    Metric.LATENCY: _step_ns,
    Metric.THROUGHPUT: _sample_ns,
}


def _count(process: ProcessTurns, metric: Metric) -> float | None:
    if metric is Metric.INSTRUCTIONS:
        return process.instructions
    return process.peak_bytes if process.peak_live_bytes is None else process.peak_live_bytes
