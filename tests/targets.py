"""Targets made by hand, for tests."""

from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import TargetResult, judge_targets, parse_target
from pyrometer.record.run import Run


def judged(run: Run, name: str, value: object, *, baseline: Observed | None = None) -> TargetResult:
    """One target beside a run."""
    [result] = judge_targets(observe(run), [parse_target(name, value, where="[t]")], baseline=baseline)
    return result
