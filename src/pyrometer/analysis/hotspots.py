"""Hotspots of the main group of steps, ranked, and what is efficient already."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from heapq import nlargest

from pyrometer.analysis.generation import GenerationResult
from pyrometer.analysis.hotspot_texts import (
    HIDDEN_MODULE_ADVICE,
    MODULE_ADVICE,
    OWN_PHASE_ADVICE,
    PHASE_ADVICE,
)
from pyrometer.analysis.loading import LoaderResult
from pyrometer.analysis.modules import ModuleRow, ModuleTable
from pyrometer.analysis.steps import GroupResult, PhaseFigures
from pyrometer.record.torch_run import OTHER
from pyrometer.stats.rates import per
from pyrometer.units import format_share

MOST_HOTSPOTS = 5
HIGH_SHARE = 0.30
MEDIUM_SHARE = 0.10
FEWEST_EVEN_STEPS = 20
"""From this many steady steps on, their 95th percentile says something."""


class Priority(Enum):
    """How much there is to gain.

    A hotspot's is by its share of the step, see ``priority_of``; a finding's by what could be gained
    at most, see ``findings.model``. Only findings are ever critical.
    """

    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class HotspotKind(Enum):
    """What a hotspot is."""

    PHASE = "phase"
    MODULE = "module"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hotspot:
    """A place where a step's time goes. A module's time is part of its phases' time."""

    rank: int
    """From 1."""
    kind: HotspotKind
    name: str
    module_kind: str | None
    """The module's class."""
    ns_per_step: float
    """Of a module its self time, forward and backward."""
    share: float
    """Of the step."""
    priority: Priority
    causes: tuple[str, ...]
    """Likely ones; see ``hotspot_texts``."""
    to_try: tuple[str, ...]


class StrengthKind(Enum):
    """What is efficient already."""

    DATA_READY = "data ready"
    """Waiting for data takes less than ``limit`` of a step."""
    LITTLE_OTHER = "little other"
    """Less than ``limit`` of a step is in no phase."""
    EVEN_STEPS = "even steps"
    """The 95th percentile is less than ``limit`` times the median."""
    WORKERS_AHEAD = "workers ahead"
    """At least ``limit`` of the batches were ready when asked for."""
    CACHE_USED = "cache used"
    """Generation takes at least ``limit`` of its passes from a key-value cache."""
    NO_UNUSED_GRADIENTS = "no unused gradients"
    """At most ``limit`` of the forward passes outside training record gradients."""
    NEAR_THE_ROOF = "near the roof"
    """The work reaches at least ``limit`` of what the machine can do of it."""
    STEADY_MEMORY = "steady memory"
    """Memory grows by less than ``limit`` of its peak after the warm-up."""
    LITTLE_GARBAGE = "little garbage"
    """Collecting garbage takes less than ``limit`` of the steps."""


LIMITS = {
    StrengthKind.DATA_READY: 0.05,
    StrengthKind.LITTLE_OTHER: 0.05,
    StrengthKind.EVEN_STEPS: 1.2,
    StrengthKind.WORKERS_AHEAD: 0.9,
    StrengthKind.CACHE_USED: 0.9,
    StrengthKind.NO_UNUSED_GRADIENTS: 0.0,
    StrengthKind.NEAR_THE_ROOF: 0.6,
    StrengthKind.STEADY_MEMORY: 0.01,
    StrengthKind.LITTLE_GARBAGE: 0.01,
}

STRENGTH_TEXTS = {
    StrengthKind.DATA_READY: "the steps hardly wait for data: {} of their time",
    StrengthKind.LITTLE_OTHER: "hardly any time goes by outside the phases: {} of a step",
    StrengthKind.EVEN_STEPS: "the steps are even: 95 % of them take at most {} times the median",
    StrengthKind.WORKERS_AHEAD: "the workers are ahead: {} of the batches were ready when asked for",
    StrengthKind.CACHE_USED: "generation uses a key-value cache, in {} of the passes that can",
    StrengthKind.NO_UNUSED_GRADIENTS: "forward passes outside training record no gradients",
    StrengthKind.NEAR_THE_ROOF: "{subject} reaches {} of what the machine can do",
    StrengthKind.STEADY_MEMORY: "memory does not grow after the warm-up: by {} of its peak",
    StrengthKind.LITTLE_GARBAGE: "hardly any time goes into collecting garbage: {} of the steps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """Something efficient, with its evidence: the figure and the rule's limit."""

    kind: StrengthKind
    subject: str
    """The group, loader or model it is said of."""
    value: float
    limit: float

    @property
    def text(self) -> str:
        """In a sentence, with the figure."""
        is_ratio = self.kind is StrengthKind.EVEN_STEPS
        figure = f"{self.value:.2f}" if is_ratio else format_share(self.value)
        return STRENGTH_TEXTS[self.kind].format(figure, subject=self.subject)


def priority_of(share: float) -> Priority:
    """HIGH from 30 %, MEDIUM from 10 %, else LOW."""
    if share >= HIGH_SHARE:
        return Priority.HIGH
    return Priority.MEDIUM if share >= MEDIUM_SHARE else Priority.LOW


def find_hotspots(
    main: GroupResult | None, modules: ModuleTable, *, most: int = MOST_HOTSPOTS
) -> tuple[Hotspot, ...]:
    """The phases and modules of the main group with the largest shares, largest first."""
    if main is None:
        return ()
    # Of each only as many as can be among the first: a model may have thousands of modules.
    largest_phases = nlargest(most, main.phases, key=lambda phase: phase.share)
    largest_rows = nlargest(most, modules.rows, key=lambda row: row.self_share or 0.0)
    found = [*map(_phase_hotspot, largest_phases), *map(_module_hotspot, largest_rows)]
    largest = sorted((spot for spot in found if spot.share > 0), key=lambda spot: -spot.share)[:most]
    return tuple(replace(spot, rank=rank) for rank, spot in enumerate(largest, start=1))


def _phase_hotspot(phase: PhaseFigures) -> Hotspot:
    advice = PHASE_ADVICE.get(phase.name, OWN_PHASE_ADVICE)
    return Hotspot(
        rank=0,
        kind=HotspotKind.PHASE,
        name=phase.name,
        module_kind=None,
        ns_per_step=phase.mean_ns,
        share=phase.share,
        priority=priority_of(phase.share),
        causes=advice.causes,
        to_try=advice.to_try,
    )


def _module_hotspot(row: ModuleRow) -> Hotspot:
    advice = MODULE_ADVICE if row.hidden is None else HIDDEN_MODULE_ADVICE
    share = row.self_share or 0.0
    return Hotspot(
        rank=0,
        kind=HotspotKind.MODULE,
        name=row.name,
        module_kind=row.kind,
        ns_per_step=row.self_ns_per_step,
        share=share,
        priority=priority_of(share),
        causes=advice.causes,
        to_try=advice.to_try,
    )


def find_strengths(
    main: GroupResult | None,
    groups: Sequence[GroupResult],
    loaders: Sequence[LoaderResult],
    generations: Sequence[GenerationResult],
) -> tuple[Strength, ...]:
    """What is efficient already, each by its rule."""
    return (
        *_strengths_of_steps(main),
        *(
            strength_of(StrengthKind.WORKERS_AHEAD, loader.name, loader.ready_share)
            for loader in loaders
            if loader.workers
            and loader.ready_share is not None
            and loader.ready_share >= LIMITS[StrengthKind.WORKERS_AHEAD]
        ),
        *(
            strength_of(StrengthKind.CACHE_USED, generation.label, generation.cached_share)
            for generation in generations
            if generation.cached_share is not None
            and generation.cached_share >= LIMITS[StrengthKind.CACHE_USED]
        ),
        *(
            strength_of(StrengthKind.NO_UNUSED_GRADIENTS, group.label, group.grad_forward_share)
            for group in groups
            if not group.nature.trains and group.grad_forward_share == 0
        ),
    )


def _strengths_of_steps(main: GroupResult | None) -> Iterator[Strength]:
    if main is None or not main.steady.total_ns:
        return
    # A phase that never occurred is no achievement.
    for kind, name in ((StrengthKind.DATA_READY, "data"), (StrengthKind.LITTLE_OTHER, OTHER)):
        phase = main.phase(name)
        if phase is not None and phase.share < LIMITS[kind]:
            yield strength_of(kind, main.label, phase.share)
    spread = per(main.steady.p95_ns, main.steady.p50_ns)
    enough = main.steady.steps >= FEWEST_EVEN_STEPS
    if enough and spread is not None and spread < LIMITS[StrengthKind.EVEN_STEPS]:
        yield strength_of(StrengthKind.EVEN_STEPS, main.label, spread)


def strength_of(kind: StrengthKind, subject: str, value: float) -> Strength:
    """A strength with the limit of its kind."""
    return Strength(kind=kind, subject=subject, value=value, limit=LIMITS[kind])
