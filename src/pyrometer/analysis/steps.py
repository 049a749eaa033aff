"""Steps by group: what a steady one takes, phase by phase, with the warm-up kept apart.

Steady figures are the record's exact totals less the warm-up steps, which the record keeps one
by one: steady and warm-up together are the group, to the nanosecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from pyrometer.analysis.step_kinds import GroupNature, nature_of
from pyrometer.record.torch_run import OTHER, Step, StepGroup, TorchRun
from pyrometer.stats.buckets import bucket_bounds, bucket_of, quantile, subtract_buckets

LEAST_WARMUP_STEPS = 3
WARMUP_WINDOW_STEPS = 5
WARMUP_AGREEMENT = 0.02
"""Two consecutive windows of steps are alike when their medians differ by no more than this."""

SECOND_NS = 1_000_000_000


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
    """One phase of a group's steady steps. Summed over the phases, ``total_ns`` is the steps' total
    exactly, and ``share`` is 1."""

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
    tokens: int | None
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
        """The phase with the most time; ``other`` only where nothing else took any."""
        return max(
            self.phases, key=lambda phase: (phase.name != OTHER and phase.total_ns > 0, phase.total_ns)
        )

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
    ...


def main_group(groups: Sequence[GroupResult]) -> GroupResult | None:
    """The group a report speaks of first: the one with most time of those that train, else of all."""
    training = [group for group in groups if group.nature.trains]
    return max(training or groups, key=lambda group: group.total_ns, default=None)


def find_warmup(group: StepGroup, *, asked_steps: int | None) -> Warmup:
    """The steps to leave out at the start: as asked, else until they are steady."""
    ...


def fold_phases(phases: Sequence[PhaseFigures]) -> tuple[FoldedPhase, ...]:
    """The five phases of the Baseline table, always all of them; means and shares add up as before.

    Copies count as data, the loss as forward, clearing and clipping as optimizer, and what the
    program named itself as other.
    """
    ...
