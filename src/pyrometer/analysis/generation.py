"""Generation: what a token costs, and whether it costs more the longer the context is."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.torch_run import Generation, PositionBin
from pyrometer.stats.rates import per, per_second, slope

GROWING_RATIO = 1.10
FEWEST_BINS = 4
CACHED_SHARE = 0.9


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


_UNKNOWN_GROWTH = Growth(
    verdict=GrowthVerdict.CANNOT_TELL,
    first_quarter_ns=None,
    last_quarter_ns=None,
    ratio=None,
    slope_ns_per_position=None,
)


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
    later_passes = generation.passes - generation.sequences
    cached_share = per(generation.cached_passes, later_passes) if later_passes > 0 else None
    return GenerationResult(
        label=generation.label,
        sequences=generation.sequences,
        passes=generation.passes,
        tokens=generation.tokens,
        total_ns=generation.total_ns,
        tokens_per_second=per_second(generation.tokens, generation.total_ns),
        ns_per_token=per(generation.total_ns, generation.tokens),
        bytes_per_token=per(generation.allocated_bytes, generation.tokens),
        first_token_ns=per(generation.first_token_ns, generation.sequences),
        prompt_tokens_per_sequence=per(generation.prompt_tokens, generation.sequences),
        cache=_cache_use(cached_share),
        cached_share=None if cached_share is None else min(cached_share, 1.0),
        positions=tuple(
            PositionCost(
                low=position.low,
                high=position.high,
                tokens=position.tokens,
                ns_per_token=position.total_ns / position.tokens,
                bytes_per_token=per(position.allocated_bytes, position.tokens),
            )
            for position in generation.positions
            if position.tokens
        ),
        growth=_find_growth(generation),
    )


def _cache_use(cached_share: float | None) -> CacheUse:
    if cached_share is None:
        return CacheUse.CANNOT_TELL
    if cached_share >= CACHED_SHARE:
        return CacheUse.WITH
    return CacheUse.WITHOUT if cached_share <= 1 - CACHED_SHARE else CacheUse.PARTLY


def _find_growth(generation: Generation) -> Growth:
    bins = _after_first_tokens(generation)
    span = bins[-1].high - bins[0].low + 1 if bins else 0
    if len(bins) < FEWEST_BINS:
        return _UNKNOWN_GROWTH
    first_ns = _mean_ns([position for position in bins if _middle(position) < bins[0].low + span / 4])
    last_ns = _mean_ns([position for position in bins if _middle(position) > bins[-1].high - span / 4])
    if first_ns is None or last_ns is None or not first_ns:
        return _UNKNOWN_GROWTH
    ratio = last_ns / first_ns
    return Growth(
        verdict=GrowthVerdict.GROWS if ratio >= GROWING_RATIO else GrowthVerdict.FLAT,
        first_quarter_ns=first_ns,
        last_quarter_ns=last_ns,
        ratio=ratio,
        slope_ns_per_position=slope(
            [(_middle(position), position.total_ns / position.tokens, position.tokens) for position in bins]
        ),
    )


def _after_first_tokens(generation: Generation) -> list[PositionBin]:
    """The positions without the one at which all sequences begin: it takes in the prompt too.

    Prompts of different lengths begin all over the positions, and none is left out then.
    """
    bins = [position for position in generation.positions if position.tokens]
    begun = per(generation.tokens * generation.sequences, generation.passes)
    return bins[1:] if begun is not None and bins and bins[0].tokens <= begun else bins


def _middle(position: PositionBin) -> float:
    return (position.low + position.high) / 2


def _mean_ns(bins: Sequence[PositionBin]) -> float | None:
    return per(sum(position.total_ns for position in bins), sum(position.tokens for position in bins))
