"""What pairs of processes say about one metric: how many times as much the candidate takes."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from pyrometer.analysis.gate import LOOKS
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
    """Of a step."""

    @property
    def is_timed(self) -> bool:
        """Whether it varies from process to process although nothing has changed."""
        return self in {Metric.THROUGHPUT, Metric.LATENCY}


class Peaks(StrEnum):
    """Which peak of memory is compared."""

    ALLOCATED = "allocated"
    """The most that was allocated at once."""
    RESIDENT = "resident"
    """The most that was resident."""


def default_metric(pairs: Sequence[Pair]) -> Metric:
    """What is judged unless told: the time of a sample, where the baseline's steps tell how many there are.

    The pairs of the first look decide, so that later ones cannot change what is judged; and never the
    candidate, which could otherwise choose by what it is measured.
    """
    baselines = [pair.baseline for pair in pairs[: LOOKS[0].pairs]]
    return Metric.THROUGHPUT if tell_samples(baselines) else Metric.LATENCY


def tell_samples(processes: Sequence[ProcessTurns]) -> bool:
    """Whether all turns say how many samples were worked on."""
    return all(turn.samples for process in processes for turn in process.rounds)


def loses_samples(pairs: Sequence[Pair]) -> bool:
    """Whether the candidate does not tell its samples in a turn in which the baseline does."""
    return any(
        other.samples and not one.samples
        for pair in pairs
        for one, other in zip(pair.candidate.rounds, pair.baseline.rounds, strict=True)
    )


def peaks_of(pairs: Sequence[Pair]) -> Peaks:
    """Which peak of memory is known of all processes.

    Not what was allocated, where it is not counted in one of them; nor where one comes to 0, since a program
    whose small Python objects are not counted has memory all the same.
    """
    live = [process.peak_live_bytes for pair in pairs for process in processes_of(pair)]
    return Peaks.ALLOCATED if all(live) else Peaks.RESIDENT


def processes_of(pair: Pair) -> list[ProcessTurns]:
    """The baseline's, the candidate's, and the control if there is one."""
    return [process for process in (pair.baseline, pair.candidate, pair.control) if process is not None]


def candidate_ratios(pairs: Sequence[Pair], metric: Metric) -> Ratios:
    """The candidate's to the baseline's, in each pair."""
    if metric is Metric.THROUGHPUT and loses_samples(pairs):
        return [[] for _ in pairs]  # of a few turns, it would have chosen which
    peaks = peaks_of(pairs)
    return [_ratios(pair.candidate, pair.baseline, metric, peaks) for pair in pairs]


def average_ratios(pairs: Sequence[Pair], metric: Metric) -> list[float]:
    """Logarithms of the candidate's to the baseline's time of all turns together, one for each pair.

    Of the turns that ``candidate_ratios`` are of. Nothing where the metric is not a time.
    """
    if not metric.is_timed or (metric is Metric.THROUGHPUT and loses_samples(pairs)):
        return []
    found: list[float] = []
    for pair in pairs:
        turns = undisturbed(pair.candidate, pair.baseline)
        one, other = (_average_ns([turn[side] for turn in turns], metric) for side in (0, 1))
        found += [math.log(one / other)] if one and other else []
    return found


def _average_ns(turns: Sequence[Round], metric: Metric) -> float | None:
    units = sum((turn.samples or 0) if metric is Metric.THROUGHPUT else turn.steps for turn in turns)
    return sum(turn.duration_ns for turn in turns) / units if units else None


def control_ratios(pairs: Sequence[Pair], metric: Metric) -> Ratios:
    """The same of the control, which runs the baseline's code: about 0."""
    peaks = peaks_of(pairs)
    return [_ratios(pair.control, pair.baseline, metric, peaks) for pair in pairs if pair.control is not None]


def value_of(process: ProcessTurns, metric: Metric, *, peaks: Peaks = Peaks.RESIDENT) -> float | None:
    """The metric of one process: the median over its turns, its peak, or its instructions a step."""
    if metric.is_timed:
        values = sorted(filter(None, map(_TIMES[metric], process.rounds)))
        return values[(len(values) - 1) // 2] if values else None
    return _count(process, metric, peaks)


def _ratios(process: ProcessTurns, baseline: ProcessTurns, metric: Metric, peaks: Peaks) -> list[float]:
    if metric.is_timed:
        a_time = _TIMES[metric]
        pairs = [(a_time(one), a_time(other)) for one, other in undisturbed(process, baseline)]
    else:
        pairs = [(_count(process, metric, peaks), _count(baseline, metric, peaks))]
    # A turn without its figure, or of no time at all, says nothing; nor does a count of nothing.
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


def _count(process: ProcessTurns, metric: Metric, peaks: Peaks) -> float | None:
    if metric is Metric.PEAK_MEMORY:
        return process.peak_live_bytes if peaks is Peaks.ALLOCATED else process.peak_bytes
    # A turn may have more steps than were ordered: two sides are compared by those they made.
    steps = sum(turn.steps for turn in process.rounds)
    return None if process.instructions is None or not steps else process.instructions / steps
