"""What finders are made of: the question each asks of a run, and the answers there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyrometer.analysis.findings.advice import ADVICE
from pyrometer.analysis.findings.model import (
    Evidence,
    Finding,
    FindingKind,
    Gain,
    GainOf,
    Place,
    Remedy,
    Risk,
)
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult

FEWEST_STEPS = 5
"""Of fewer steady steps no share is told."""
WORTH_TELLING = 0.01
"""Below this share of the time there is nothing to find."""

COMPUTING = ("forward", "loss", "backward", "clipping", "optimizer", "clearing")
"""The phases in which a step computes."""

NO_STEPS = "the run has no steps of PyTorch to look at"
FEW_STEPS = f"fewer than {FEWEST_STEPS} steps were measured after the warm-up"
NO_SAMPLES = "no stacks were sampled: leave --sample-hz 0 out"


class See(StrEnum):
    """Sections of a report, as their titles begin."""

    PHASES = "Phases"
    LOADING = "Data loading"
    MODULES = "Modules"
    OPERATORS = "Operators"
    ROOFLINE = "Roofline"
    GENERATION = "Generation"
    MEMORY = "Memory"
    ALLOCATIONS = "Allocations"
    FIRST_STEP = "First step against steady"
    COMPILATION = "Compilation"
    TIME = "Where the time goes"
    FUNCTIONS = "Functions"
    OUTSIDE = "Outside any phase"
    COUNTERS = "Simulated caches"
    GARBAGE = "Garbage collection"
    FACTS = "Machine and software"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The answer that this run cannot tell, and what is missing."""

    reason: str


Answer = Sequence[Finding] | Missing
"""What was found; nothing found is an answer too."""
Finder = Callable[[Observed], Answer]


def main_group_of(observed: Observed) -> GroupResult | Missing:
    """The steps that findings are about."""
    main = None if observed.torch is None else observed.torch.main
    if main is None or not main.steady.total_ns:
        return Missing(reason=NO_STEPS)
    return main if main.steady.steps >= FEWEST_STEPS else Missing(reason=FEW_STEPS)


def finding(
    kind: FindingKind,
    what: str,
    *evidence: Evidence,
    place: Place,
    share: float | None = None,
    duration_ns: float | None = None,
    size_bytes: float | None = None,
    gain: Gain | None = None,
    remedies: tuple[Remedy, ...] = (),
    risk: Risk | None = None,
) -> Finding:
    """A finding with what is always said of its kind; ``remedies`` that fit this program come first."""
    advice = ADVICE[kind]
    return Finding(
        rank=0,
        kind=kind,
        what=what,
        place=place,
        share=share,
        duration_ns=duration_ns,
        size_bytes=size_bytes,
        gain=gain,
        evidence=evidence,
        causes=advice.causes,
        remedies=(*remedies, *advice.remedies),
        effort=advice.effort,
        risk=advice.risk if risk is None else risk,
        knob=advice.knob,
    )


def computing_share(main: GroupResult) -> float:
    """The share of a step in which it computes."""
    return sum(phase.share for phase in main.phases if phase.name in COMPUTING)


def at_most(share: float, basis: str, *, of: GainOf = GainOf.STEP) -> Gain:
    """The bound of a gain; no more than everything can be gained, and no less than nothing."""
    return Gain(share=min(max(share, 0.0), 1.0), of=of, basis=basis)
