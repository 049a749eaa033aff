"""What a run must show to serve as a baseline, each point judged by a rule."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyrometer.analysis.hotspots import Priority
from pyrometer.analysis.steps import GroupResult, WarmupEnd
from pyrometer.analysis.targets import parse_target
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.run import Run
from pyrometer.record.torch_run import OTHER
from pyrometer.units import format_bytes, format_count, format_share

FEWEST_STEPS = 10
MOST_OTHER_SHARE = 0.10
MOST_OWN_COST_SHARE = 0.05

_IMPROVEMENTS = (
    ("throughput", "throughput", "+30%"),
    ("latency", "step_latency", "-20%"),
    ("throughput, in the long run", "throughput", "+100%"),
)
"""What later runs are to reach where the project sets no targets of its own: words, metric, goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A point of a checked list."""

    what: str
    met: bool | None
    """None: cannot be told."""
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a later run is to reach. ``change`` is relative: -0.2 is a fifth less."""

    what: str
    unit: str
    now: float
    change: float
    goal: float


def exit_criteria(run: Run, results: TorchResults, main: GroupResult) -> tuple[Criterion, ...]:
    """Whether the figures of a run can be relied on."""
    other = main.phase(OTHER)
    other_share = 0.0 if other is None else other.share
    high = sum(1 for hotspot in results.hotspots if hotspot.priority is Priority.HIGH)
    return (
        Criterion(
            what=f"at least {FEWEST_STEPS} steps are measured",
            met=main.steady.steps >= FEWEST_STEPS,
            evidence=f"{format_count(main.steady.steps, 'step')} after {main.warmup.steps:,} of warm-up",
        ),
        _steadiness(main),
        Criterion(
            what=f"no more than {format_share(MOST_OTHER_SHARE)} of a step is in no phase",
            met=other_share <= MOST_OTHER_SHARE,
            evidence=format_share(other_share),
        ),
        Criterion(
            what="the hotspots are ranked",
            met=bool(results.hotspots),
            evidence=f"{len(results.hotspots)} ranked, {high} of them HIGH",
        ),
        _own_cost(run),
        Criterion(
            what="nothing was lost",
            met=not run.losses,
            evidence=format_count(len(run.losses), "kind of loss", "kinds of loss"),
        ),
        Criterion(
            what="the program ended by itself",
            met=run.outcome.status == "finished",
            evidence=run.outcome.detail or run.outcome.status,
        ),
    )


def deliverables(run: Run, results: TorchResults, main: GroupResult) -> tuple[Criterion, ...]:
    """What a baseline consists of, and whether this run has it."""
    steady, modules = main.steady, results.modules
    causes = sum(1 for hotspot in results.hotspots if hotspot.causes and hotspot.to_try)
    return (
        Criterion(
            what="latency of a batch: min, average, max",
            met=True,
            evidence=format_count(steady.steps, "step"),
        ),
        Criterion(
            what="throughput",
            met=steady.samples_per_second is not None,
            evidence="batch size not told" if steady.samples is None else f"{steady.samples:,} samples",
        ),
        Criterion(
            what="phases of a batch, adding up to it",
            met=len(main.phases) > 1,
            evidence=format_count(len(main.phases), "phase"),
        ),
        Criterion(
            what="host memory",
            met=run.memory is not None,
            evidence="not recorded" if run.memory is None else f"peak {format_bytes(run.memory.peak_bytes)}",
        ),
        _gpu_memory(results),
        Criterion(
            what="time by module",
            met=bool(modules.rows),
            evidence=f"{format_count(len(modules.rows), 'module')}, timed in "
            f"{modules.timed_backward_passes:,} of {modules.backward_passes:,} backward passes",
        ),
        Criterion(
            what="hotspots with likely causes and what to try",
            met=bool(results.hotspots) and causes == len(results.hotspots),
            evidence=f"{causes} of {len(results.hotspots)}",
        ),
        Criterion(
            what="strengths with their evidence",
            met=bool(results.strengths),
            evidence=format_count(len(results.strengths), "strength"),
        ),
    )


def improvement_targets(main: GroupResult) -> Iterator[Target]:
    """What later runs are measured against."""
    now = {
        "throughput": ("samples/s", main.steady.samples_per_second),
        "step_latency": ("ms", main.steady.mean_ns / 1e6),
    }
    for what, name, written in _IMPROVEMENTS:
        unit, figure = now[name]
        if figure is not None:
            target = parse_target(name, written, where="the baseline")
            factor = target.goal.edge(more_is_better=target.metric.more_is_better)
            yield Target(what=what, unit=unit, now=figure, change=factor - 1, goal=factor * figure)


def _steadiness(main: GroupResult) -> Criterion:
    met = {WarmupEnd.STEADY: True, WarmupEnd.GIVEN: True, WarmupEnd.NOT_REACHED: False}
    evidence = {
        WarmupEnd.GIVEN: "the warm-up was given",
        WarmupEnd.STEADY: f"after {format_count(main.warmup.steps, 'step')}",
        WarmupEnd.NOT_REACHED: "not reached",
        WarmupEnd.TOO_SHORT: "too few steps to tell",
    }
    return Criterion(
        what="the steps are steady", met=met.get(main.warmup.end), evidence=evidence[main.warmup.end]
    )


def _own_cost(run: Run) -> Criterion:
    what = f"the profiler itself cost no more than {format_share(MOST_OWN_COST_SHARE)} of the run"
    if run.cost.hook_ns is None or not run.profiled_ns:
        return Criterion(what=what, met=None, evidence="not measured")
    share = (run.cost.hook_ns + run.cost.scopes_ns) / run.profiled_ns
    return Criterion(what=what, met=share <= MOST_OWN_COST_SHARE, evidence=format_share(share))


def _gpu_memory(results: TorchResults) -> Criterion:
    if results.gpu is None:
        return Criterion(what="GPU memory", met=None, evidence="no GPU (CPU only)")
    peak = results.gpu.peak_bytes
    return Criterion(
        what="GPU memory",
        met=peak is not None,
        evidence="not measured" if peak is None else f"peak {format_bytes(peak)}",
    )
