"""What pairs of processes say about one metric: how many times as much the candidate takes."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from pyrometer.record.trials import Pair, ProcessTurns, Round

Ratios = list[list[float]]
"""Logarithms of candidate to baseline, a group for each pair: above 0 is worse."""


LEAST_UNDISTURBED = 3
"""With fewer turns that nobody disturbed, all turns of a pair count."""


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
        pairs = [(a_time(one), a_time(other)) for one, other in undisturbed(process, baseline)]
    else:
        pairs = [(_count(process, metric), _count(baseline, metric))]
    # A turn without its figure, or of no time at all, says nothing.
    return [math.log(one / other) for one, other in pairs if one and other]


def undisturbed(process: ProcessTurns, baseline: ProcessTurns) -> list[tuple[Round, Round]]:
    """The turns of both, side by side, in which neither lost its core; all of them, where those are too few.

    On a busy machine half of the turns hold a stretch of somebody else's work, on one side or the other.
    Which ones is told by the system, and not by how long they took: both sides are treated alike.
    """
    rounds = list(zip(process.rounds, baseline.rounds, strict=True))
    quiet = [(one, other) for one, other in rounds if not (one.preemptions or other.preemptions)]
    return quiet if len(quiet) >= LEAST_UNDISTURBED else rounds


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
