"""Generation: what a token costs, and whether it costs more the longer the context is."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.torch_run import Generation

GROWING_RATIO = 1.10
FEWEST_BINS = 4


class CacheUse(Enum):
    """Whether passes after a sequence's first get only the newest token."""

    WITH = "with key-value cache"
    PARTLY = "partly with key-value cache"
    WITHOUT = "without key-value cache"
    CANNOT_TELL = "cannot tell"
    """No sequence has more than one pass."""


class GrowthVerdict(Enum):
    """Whether a token costs more at the end of the context than at its beginning."""

    GROWS = "grows with context"
    """The last quarter of positions costs 10 % more than the first, or more."""
    FLAT = "does not grow with context"
    CANNOT_TELL = "cannot tell"
    """Fewer than four positions apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionCost:
    """Tokens made at context lengths ``low`` to ``high`` (both included)."""

    low: int
    high: int
    tokens: int
    ns_per_token: float
    bytes_per_token: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Cost by position after the first token; figures are None where the verdict is "cannot tell"."""

    verdict: GrowthVerdict
    first_quarter_ns: float | None
    """Mean cost of a token over the first quarter of the positions."""
    last_quarter_ns: float | None
    ratio: float | None
    slope_ns_per_position: float | None
    """Least squares, weighted by tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationResult:
    """Sequences one model made token by token."""

    label: str
    sequences: int
    passes: int
    tokens: int
    total_ns: int
    tokens_per_second: float | None
    ns_per_token: float | None
    bytes_per_token: float | None
    first_token_ns: float | None
    """Average over the sequences."""
    prompt_tokens_per_sequence: float | None
    cache: CacheUse
    cached_share: float | None
    """Of the passes after each sequence's first."""
    positions: tuple[PositionCost, ...]
    growth: Growth


def build_generations(generations: Sequence[Generation]) -> tuple[GenerationResult, ...]:
    """Each model's generation, in the order of the record."""
    return tuple(build_generation(generation) for generation in generations)


def build_generation(generation: Generation) -> GenerationResult:
    """What a token costs."""
    ...
