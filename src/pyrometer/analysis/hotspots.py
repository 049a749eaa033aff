"""Hotspots of the main group of steps, ranked, and what is efficient already."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.generation import GenerationResult
from pyrometer.analysis.loading import LoaderResult
from pyrometer.analysis.modules import ModuleTable
from pyrometer.analysis.steps import GroupResult

MOST_HOTSPOTS = 5
HIGH_SHARE = 0.30
MEDIUM_SHARE = 0.10


class Priority(Enum):
    """How much there is to gain: by the share of the step."""

    HIGH = "HIGH"
    """30 % or more."""
    MEDIUM = "MEDIUM"
    """10 % or more."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """Something efficient, with its evidence: the figure and the rule's limit."""

    kind: StrengthKind
    subject: str
    """The group, loader or model it is said of."""
    value: float
    limit: float
    text: str
    """In a sentence, with the figure."""


def priority_of(share: float) -> Priority:
    """HIGH from 30 %, MEDIUM from 10 %, else LOW."""
    if share >= HIGH_SHARE:
        return Priority.HIGH
    return Priority.MEDIUM if share >= MEDIUM_SHARE else Priority.LOW


def find_hotspots(
    main: GroupResult | None, modules: ModuleTable, *, most: int = MOST_HOTSPOTS
) -> tuple[Hotspot, ...]:
    """The phases and modules of the main group with the largest shares, largest first."""
    ...


def find_strengths(
    main: GroupResult | None,
    groups: Sequence[GroupResult],
    loaders: Sequence[LoaderResult],
    generations: Sequence[GenerationResult],
) -> tuple[Strength, ...]:
    """What is efficient already, each by its rule."""
    ...
