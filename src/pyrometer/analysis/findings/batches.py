"""Findings about batches: too small to keep the machine busy."""

from dataclasses import dataclass
from statistics import median
from typing import TypedDict

from pyrometer.analysis.findings.drafting import (
    COMPUTING,
    WORTH_TELLING,
    Answer,
    Missing,
    See,
    at_most,
    computing_share,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, FindingKind, Place, Remedy, Risk
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.roofline import Bound
from pyrometer.analysis.steps import GroupResult
from pyrometer.units import format_count, format_duration, format_share

FEWEST_OF_A_SIZE = 3
SIZES_APART = 1.5
FIXED_SHARE = 0.5


def find_small_batch(observed: Observed) -> Answer:
    """Whether a step costs about the same whatever its batch size."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    fit = _FixedCost.of(main)
    if fit is not None:
        return _fixed_cost_found(fit, main) if fit.fixed_share >= FIXED_SHARE else ()
    return _below_the_limits(main, observed)


def _below_the_limits(main: GroupResult, observed: Observed) -> Answer:
    """Whether a step is too small to keep the machine busy, where all batches have one size."""
    roofline = None if observed.torch is None else observed.torch.roofline
    if roofline is None:
        return Missing(
            reason="all batches have about the same size, and the machine's limits are not known; "
            "pyrometer limits measures them, once, before the run"
        )
    if roofline.step is None or roofline.step.roof_share is None:
        return Missing(
            reason="all batches have about the same size, and a step cannot be placed below the machine's "
            "limits"
        )
    if roofline.step.bound is not Bound.OVERHEAD or main.steady.samples is None:
        return ()
    computing = sum(phase.share for phase in main.phases if phase.name in ("forward", "backward"))
    idle = computing * (1 - roofline.step.roof_share)
    if idle < WORTH_TELLING:
        return ()
    return (
        finding(
            FindingKind.SMALL_BATCH,
            "the batch is too small to keep the machine busy",
            Evidence(
                text=f"a step of {_batch(main)} reaches {format_share(roofline.step.roof_share)} of what the "
                "machine can do, in calls too short to do more",
                see=See.ROOFLINE,
            ),
            place=Place(group=main.label),
            share=idle,
            duration_ns=idle * main.steady.mean_ns,
            gain=at_most(idle, "if forward and backward came up to the machine's limits"),
            **_larger_batch(main),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FixedCost:
    """A line through the steps of two batch sizes: what does not grow with the batch."""

    small: int
    small_ns: float
    large: int
    large_ns: float
    steps: int

    @property
    def fixed_share(self) -> float:
        """Of a step of the larger size, what a step of no samples would take."""
        per_sample_ns = max(self.large_ns - self.small_ns, 0.0) / (self.large - self.small)
        return max(1 - per_sample_ns * self.large / self.large_ns, 0.0) if self.large_ns else 0.0

    @classmethod
    def of(cls, main: GroupResult) -> "_FixedCost | None":
        """None where the steps do not have two sizes far enough apart, each several times."""
        computing = [index for index, phase in enumerate(main.phases) if phase.name in COMPUTING]
        by_size: dict[int, list[int]] = {}
        for step in main.series[main.warmup.steps :]:
            if step.samples:
                computed_ns = sum(step.phase_ns[index] for index in computing)
                by_size.setdefault(step.samples, []).append(computed_ns)
        sizes = sorted(size for size, times in by_size.items() if len(times) >= FEWEST_OF_A_SIZE)
        if len(sizes) < 2 or sizes[-1] < SIZES_APART * sizes[0]:
            return None
        small, large = sizes[0], max(sizes, key=lambda size: (len(by_size[size]), size))
        if large < SIZES_APART * small:
            large = sizes[-1]
        return cls(
            small=small,
            small_ns=median(by_size[small]),
            large=large,
            large_ns=median(by_size[large]),
            steps=len(by_size[small]) + len(by_size[large]),
        )


def _fixed_cost_found(fit: _FixedCost, main: GroupResult) -> Answer:
    share = fit.fixed_share * computing_share(main)
    if share < WORTH_TELLING:
        return ()
    return (
        finding(
            FindingKind.SMALL_BATCH,
            f"a batch of {fit.large:,} is far from where more samples cost more time",
            Evidence(
                text=f"a step of {format_count(fit.small, 'sample')} computes for "
                f"{format_duration(fit.small_ns)} and one of {fit.large:,} for "
                f"{format_duration(fit.large_ns)} (medians of {format_count(fit.steps, 'step')})",
                see=See.PHASES,
            ),
            Evidence(
                text=f"{format_share(fit.fixed_share)} of that does not depend on the batch", see=See.PHASES
            ),
            place=Place(group=main.label),
            share=share,
            duration_ns=share * main.steady.mean_ns,
            gain=at_most(
                share, "if the part that does not depend on the batch were shared by far more samples"
            ),
            **_larger_batch(main),
        ),
    )


class _Batching(TypedDict):
    remedies: tuple[Remedy, ...]
    risk: Risk


def _larger_batch(main: GroupResult) -> _Batching:
    """What to try, and what it can do: only training learns from its batches."""
    if main.nature.trains:
        snippet = "DataLoader(dataset, batch_size=4 * batch_size)" if main.batches_per_step else None
        return {"remedies": (Remedy(text="a larger batch", snippet=snippet),), "risk": Risk.LEARNING}
    return {
        "remedies": (
            Remedy(
                text="several inputs in one call",
                snippet="outputs = model(torch.stack(inputs))  # instead of one call for each",
            ),
        ),
        "risk": Risk.ROUNDING,
    }


def _batch(main: GroupResult) -> str:
    size = None if main.steady.samples is None else main.steady.samples / main.steady.steps
    return "one batch" if size is None else format_count(round(size), "sample")
