"""Steps by group: what a steady one takes, phase by phase, with the warm-up kept apart.

Steady figures are the record's exact totals less the warm-up steps, which the record keeps one
by one: steady and warm-up together are the group, to the nanosecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from pyrometer.analysis.call_tree import difference, sum_known
from pyrometer.analysis.step_kinds import GroupNature, any_trains, nature_of
from pyrometer.record.torch_run import OTHER, Step, StepGroup, TorchRun
from pyrometer.stats.buckets import Buckets, bucket_bounds, quantile, subtract_buckets
from pyrometer.stats.rates import per, per_second

LEAST_WARMUP_STEPS = 3
WARMUP_WINDOW_STEPS = 5
WARMUP_AGREEMENT = 0.02
"""Two consecutive windows of steps are alike when their medians differ by no more than this."""

_BASELINE = ("data", "forward", "backward", "optimizer", OTHER)
_FOLDED = {
    "data": "data", "copies": "data", "forward": "forward", "loss": "forward", "backward": "backward",
    "optimizer": "optimizer", "clearing": "optimizer", "clipping": "optimizer",
}  # fmt: skip


class WarmupEnd(Enum):
    """How the end of the warm-up was found."""

    GIVEN = "given"
    """The user said how many steps."""
    STEADY = "steady"
    """From there on two consecutive windows of steps agree."""
    NOT_REACHED = "not reached"
    """No two windows agree among the steps that were kept one by one."""
    TOO_SHORT = "too short"
    """The group has too few steps to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """The steps left out at the start of a group. There is always at least one left in."""

    steps: int
    total_ns: int
    end: WarmupEnd
    asked_steps: int | None
    """What the user asked for; more than ``steps`` where the group, or what was kept of it, is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFigures:
    """One phase of a group's steady steps.

    Summed over the phases, ``total_ns`` is the steps' total exactly, and ``share`` is 1.
    """

    name: str
    total_ns: int
    mean_ns: float
    """Per step."""
    share: float
    """Of the steps' time; 0 where the steps took no time at all."""
    allocated_bytes_per_step: float | None
    """Of torch's CPU tensors, over all steps of the group: the record has it by phase only so."""
    allocations_per_step: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadySteps:
    """A group's steps after its warm-up. Exact, but for percentiles, which are within 1.6 %."""

    steps: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: int
    p95_ns: int
    max_ns: int
    extremes_are_exact: bool
    """False when the shortest or longest step fell into the warm-up of a group too long to be kept
    whole: ``min_ns`` or ``max_ns`` is then within 1.6 %, as the percentiles are."""
    samples: int | None
    """None where not known, and of generation, which has tokens only."""
    tokens: int | None
    """That the steps got; of generation those they made."""
    samples_per_second: float | None
    tokens_per_second: float | None
    steps_per_second: float | None
    """None where the steps took no time at all; likewise the other rates."""
    batches_per_second: float | None
    """None when no batch came from a loader."""
    allocated_bytes_per_step: float | None
    worker_ns_per_step: float | None
    """What the loader's worker processes took to make a step's batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """The group's first step beside the steady ones."""

    duration_ns: int
    extra_ns: float
    """Over the steady mean; negative when it was shorter."""
    ratio: float | None
    """To the steady mean; None where that is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """Steps of one kind. ``warmup`` and ``steady`` make ``steps`` and ``total_ns`` exactly."""

    label: str
    nature: GroupNature
    steps: int
    total_ns: int
    warmup: Warmup
    steady: SteadySteps
    phases: tuple[PhaseFigures, ...]
    """Of the steady steps, in the order of the record, ``other`` last."""
    first_step: FirstStep
    batches_per_step: float
    """Like the three below over all steps of the group, warm-up too."""
    forward_calls_per_step: float
    backward_passes_per_step: float
    allocations_per_step: float | None
    grad_forward_share: float | None
    """The share of root calls made while gradients were recorded; None without root calls."""
    records_unused_gradients: bool
    """Only forward passes, yet some recorded gradients: memory and time for nothing."""
    steady_from_ns: int
    """When the warm-up ended, since recording began."""
    series: tuple[Step, ...]
    """The steps kept one by one, in order: the first ones and a choice of the later ones."""

    @property
    def biggest_phase(self) -> PhaseFigures:
        """The phase with the most time, ``other`` where that is what has it."""
        return max(self.phases, key=lambda phase: phase.total_ns)

    def phase(self, name: str) -> PhaseFigures | None:
        """The phase of this name, None if it did not occur."""
        return next((phase for phase in self.phases if phase.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedPhase:
    """A row of the Baseline table."""

    name: str
    mean_ns: float
    share: float


def build_groups(torch: TorchRun) -> tuple[GroupResult, ...]:
    """Each group that has steps, in the order of the record."""
    run_trains = any_trains(torch.groups)
    return tuple(
        _build_group(group, asked_steps=torch.warmup, nature=nature_of(group, run_trains=run_trains))
        for group in torch.groups
        if group.first
    )


def chosen_steps(torch: TorchRun) -> str:
    """Which steps the user chose to look at: ``all``, or ``at most 50, 10:20, warm-up 3``."""
    chosen = []
    if torch.max_steps is not None:
        chosen.append(f"at most {torch.max_steps}")
    if torch.window is not None:
        first, end = torch.window
        chosen.append(f"{first}:{'' if end is None else end}")
    if torch.warmup is not None:
        chosen.append(f"warm-up {torch.warmup}")
    return ", ".join(chosen) or "all"


def main_group(groups: Sequence[GroupResult]) -> GroupResult | None:
    """The group a report speaks of first: the one with most time of those that train, else of all."""
    training = [group for group in groups if group.nature.trains]
    return max(training or groups, key=lambda group: group.total_ns, default=None)


def find_warmup(group: StepGroup, *, asked_steps: int | None) -> Warmup:
    """The steps to leave out at the start: as asked, else until they are steady."""
    # Only what was kept step by step can be left out.
    most = min(group.steps - 1, len(group.first))
    durations_ns = [step.duration_ns for step in group.first]
    if asked_steps is not None:
        end, steps = WarmupEnd.GIVEN, asked_steps
    elif len(durations_ns) < LEAST_WARMUP_STEPS + 2 * WARMUP_WINDOW_STEPS:
        end, steps = WarmupEnd.TOO_SHORT, LEAST_WARMUP_STEPS
    else:
        steady_from = _steady_from(durations_ns)
        end = WarmupEnd.NOT_REACHED if steady_from is None else WarmupEnd.STEADY
        steps = LEAST_WARMUP_STEPS if steady_from is None else steady_from
    steps = max(min(steps, most), 0)
    return Warmup(steps=steps, total_ns=sum(durations_ns[:steps]), end=end, asked_steps=asked_steps)


def fold_phases(phases: Sequence[PhaseFigures]) -> tuple[FoldedPhase, ...]:
    """The five phases of the Baseline table, always all of them; means and shares add up as before.

    Copies count as data, the loss as forward, clearing and clipping as optimizer, and what the
    program named itself as other.
    """
    folded = {name: [phase for phase in phases if folded_name(phase.name) == name] for name in _BASELINE}
    return tuple(
        FoldedPhase(
            name=name,
            mean_ns=sum(phase.mean_ns for phase in parts),
            share=sum(phase.share for phase in parts),
        )
        for name, parts in folded.items()
    )


def folded_name(phase: str) -> str:
    """The row of the Baseline table that a phase counts in."""
    return _FOLDED.get(phase, OTHER)


def _steady_from(durations_ns: Sequence[int]) -> int | None:
    """The first step from which on two consecutive windows agree."""
    for start in range(LEAST_WARMUP_STEPS, len(durations_ns) - 2 * WARMUP_WINDOW_STEPS + 1):
        middle = start + WARMUP_WINDOW_STEPS
        one_ns = median(durations_ns[start:middle])
        other_ns = median(durations_ns[middle : middle + WARMUP_WINDOW_STEPS])
        if abs(one_ns - other_ns) <= WARMUP_AGREEMENT * max(one_ns, other_ns):
            return start
    return None


def _build_group(group: StepGroup, *, asked_steps: int | None, nature: GroupNature) -> GroupResult:
    warmup = find_warmup(group, asked_steps=asked_steps)
    steady = _build_steady(group, warmup)
    left_out = group.first[: warmup.steps]
    return GroupResult(
        label=group.label,
        nature=nature,
        steps=group.steps,
        total_ns=group.total_ns,
        warmup=warmup,
        steady=steady,
        phases=_build_phases(group, warmup, steady),
        first_step=_build_first_step(group.first[0].duration_ns, steady.mean_ns),
        batches_per_step=group.batches / group.steps,
        forward_calls_per_step=group.forward_calls / group.steps,
        backward_passes_per_step=group.backward_passes / group.steps,
        allocations_per_step=per(_sum(group.phase_allocations), group.steps),
        grad_forward_share=per(group.grad_forward_calls, group.forward_calls),
        records_unused_gradients=group.grad_forward_calls > 0 and not nature.trains,
        steady_from_ns=left_out[-1].started_ns + left_out[-1].duration_ns if left_out else 0,
        series=(*group.first, *sorted(group.sampled, key=lambda step: step.index)),
    )


def _build_steady(group: StepGroup, warmup: Warmup) -> SteadySteps:
    left_out = group.first[: warmup.steps]
    steps = group.steps - warmup.steps
    total_ns = group.total_ns - warmup.total_ns
    # A group's sums are over the steps that have the figure.
    samples = difference(group.samples, sum(step.samples or 0 for step in left_out))
    tokens = difference(group.tokens, sum(step.tokens or 0 for step in left_out))
    worker_ns = difference(group.worker_ns, sum(step.worker_ns or 0 for step in left_out))
    allocated = difference(_sum(group.phase_bytes), sum_known([step.allocated_bytes for step in left_out]))
    buckets = subtract_buckets(group.buckets, [step.duration_ns for step in left_out])
    min_ns, max_ns, exact = _extremes(group, warmup, buckets)
    p50_ns, p95_ns = (
        quantile(buckets, q, min_ns=min_ns, max_ns=max_ns) if buckets else max_ns for q in (0.50, 0.95)
    )
    if group.kind == "generation":
        # The record counts what a pass gets, which without a cache is all of the context again.
        samples, tokens = None, samples
    batches = group.batches / group.steps * steps if group.batches else None
    return SteadySteps(
        steps=steps,
        total_ns=total_ns,
        mean_ns=total_ns / steps,
        min_ns=min_ns,
        p50_ns=p50_ns,
        p95_ns=p95_ns,
        max_ns=max_ns,
        extremes_are_exact=exact,
        samples=samples,
        tokens=tokens,
        samples_per_second=per_second(samples, total_ns),
        tokens_per_second=per_second(tokens, total_ns),
        steps_per_second=per_second(steps, total_ns),
        batches_per_second=per_second(batches, total_ns),
        allocated_bytes_per_step=per(allocated, steps),
        worker_ns_per_step=per(worker_ns, steps),
    )


def _extremes(group: StepGroup, warmup: Warmup, buckets: Buckets) -> tuple[int, int, bool]:
    """Shortest and longest steady step, and whether both are exact."""
    left_out_ns = [step.duration_ns for step in group.first[: warmup.steps]]
    kept_ns = [step.duration_ns for step in (*group.first[warmup.steps :], *group.sampled)]
    if kept_ns and len(kept_ns) == group.steps - warmup.steps:
        return min(kept_ns), max(kept_ns), True
    min_is_steady = min(left_out_ns, default=group.min_ns + 1) > group.min_ns
    max_is_steady = max(left_out_ns, default=group.max_ns - 1) < group.max_ns
    if not buckets:
        return group.min_ns, group.max_ns, False
    lowest_ns, highest_ns = (_middle_ns(bucket) for bucket, _ in (buckets[0], buckets[-1]))
    return (
        group.min_ns if min_is_steady else min([lowest_ns, *kept_ns]),
        group.max_ns if max_is_steady else max([highest_ns, *kept_ns]),
        min_is_steady and max_is_steady,
    )


def _middle_ns(bucket: int) -> int:
    low_ns, high_ns = bucket_bounds(bucket)
    return (low_ns + high_ns - 1) // 2


def _build_phases(group: StepGroup, warmup: Warmup, steady: SteadySteps) -> tuple[PhaseFigures, ...]:
    phases = []
    for index, name in enumerate(group.phases):
        total_ns = group.phase_ns[index] - sum(step.phase_ns[index] for step in group.first[: warmup.steps])
        phases.append(
            PhaseFigures(
                name=name,
                total_ns=total_ns,
                mean_ns=total_ns / steady.steps,
                share=total_ns / steady.total_ns if steady.total_ns else 0.0,
                allocated_bytes_per_step=per(_at(group.phase_bytes, index), group.steps),
                allocations_per_step=per(_at(group.phase_allocations, index), group.steps),
            )
        )
    return tuple(phases)


def _build_first_step(duration_ns: int, steady_mean_ns: float) -> FirstStep:
    return FirstStep(
        duration_ns=duration_ns,
        extra_ns=duration_ns - steady_mean_ns,
        ratio=per(duration_ns, steady_mean_ns),
    )


def _sum(counts: tuple[int, ...] | None) -> int | None:
    return None if counts is None else sum(counts)


def _at(counts: tuple[int, ...] | None, index: int) -> int | None:
    return None if counts is None else counts[index]
