"""What a gate found, lane by lane, before any words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pyrometer.analysis.attribution import changed_rows
from pyrometer.analysis.comparison.model import PartChange, PartsTable
from pyrometer.analysis.gate import Judgement, Reason, Verdict
from pyrometer.analysis.trials import Metric, Peaks, peaks_of, value_of
from pyrometer.record.trials import ProcessTurns, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedLane:
    """One metric of one program, or of one function."""

    metric: Metric
    judgement: Judgement
    max_slowdown: float
    trials: Trials
    tables: tuple[PartsTable, ...] = ()
    subject: str | None = None
    """The benchmark, where a file has several."""
    unchecked: tuple[str, ...] = ()
    """What of the benchmark could not be made sure to be the same on both sides, and why."""
    new: tuple[str, ...] = ()
    """Benchmarks that were asked for with it, and that the baseline does not have."""
    gone: tuple[str, ...] = ()
    """The same of the candidate."""

    @property
    def verdict(self) -> Verdict:
        """The lane's; one that was stopped before a verdict is undecided."""
        return self.judgement.verdict or Verdict.INCONCLUSIVE

    @property
    def before(self) -> float | None:
        """The baseline's value, of a benchmark that of a call: the median over its processes."""
        return self._middle([pair.baseline for pair in self.trials.pairs])

    @property
    def after(self) -> float | None:
        """The candidate's: the baseline's with the change from pair to pair, by which it is judged."""
        change = self.judgement.change
        if self.before is None or change is None:
            return self._middle([pair.candidate for pair in self.trials.pairs])
        return self.before * (1 + change)

    @property
    def peaks(self) -> Peaks | None:
        """Which peak of memory was judged; None where another metric was, or nothing could be."""
        is_known = self.metric is Metric.PEAK_MEMORY and self.judgement.reason is not Reason.NOT_MEASURED
        return peaks_of(self.trials.pairs) if is_known else None

    def _middle(self, processes: Sequence[ProcessTurns]) -> float | None:
        peaks = peaks_of(self.trials.pairs)
        values = (value_of(process, self.metric, peaks=peaks) for process in processes)
        known = [value for value in values if value is not None]
        parts = 1 if self.metric is Metric.PEAK_MEMORY else self.trials.plan.calls_per_step
        return median(known) / parts if known else None

    @property
    def changed(self) -> tuple[PartChange, ...]:
        """The places that changed for sure, the most telling first."""
        return tuple(row for _, row in changed_rows(self.tables))


def least_pairs(alpha: float) -> int:
    """With fewer, not even pairs that all agree are unlikely enough."""
    return math.ceil(-math.log2(alpha))


def overall(lanes: Sequence[GatedLane]) -> Verdict:
    """One word for all: what failed goes before what is not known, and that before what passed."""
    verdicts = {lane.verdict for lane in lanes}
    for verdict in (Verdict.REFUSED, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS):
        if verdict in verdicts:
            return verdict
    return Verdict.INCONCLUSIVE
