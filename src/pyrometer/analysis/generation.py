"""Generation: what a token costs, and whether it costs more the longer the context is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyrometer.record.torch_run import Generation, PositionBin
from pyrometer.stats.rates import per, per_second, slope

GROWING_RATIO = 1.10
FEWEST_PASSES = 8
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
    """The last quarter of the tokens, by position, costs 10 % more each than the first, or more."""
    FLAT = "does not grow with context"
    CANNOT_TELL = "cannot tell"
    """Fewer than eight passes after the first ones, or all of them in one stretch of positions."""


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
    """Mean cost of a token over the quarter of them at the lowest positions."""
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
    """The length of a prompt."""
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
        prompt_tokens_per_sequence=_prompt_length(generation),
        cache=_cache_use(cached_share),
        cached_share=None if cached_share is None else min(cached_share, 1.0),
        positions=tuple(_cost(position) for position in generation.positions if position.tokens),
        growth=_find_growth(generation),
    )


def _cache_use(cached_share: float | None) -> CacheUse:
    if cached_share is None:
        return CacheUse.CANNOT_TELL
    if cached_share >= CACHED_SHARE:
        return CacheUse.WITH
    return CacheUse.WITHOUT if cached_share <= 1 - CACHED_SHARE else CacheUse.PARTLY


def _first_tokens(generation: Generation) -> float:
    """How many tokens are the first of their sequence: one for each of a batch."""
    return generation.sequences * (per(generation.tokens, generation.passes) or 0)


def _prompt_length(generation: Generation) -> float | None:
    return per(generation.prompt_tokens, _first_tokens(generation))


def _find_growth(generation: Generation) -> Growth:
    costs = _after_first_tokens(generation)
    tokens = sum(cost.tokens for cost in costs)
    passes = generation.passes - generation.sequences
    first_ns = _mean_of_first(costs, tokens / 4)
    last_ns = _mean_of_first(costs[::-1], tokens / 4)
    if len(costs) < 2 or passes < FEWEST_PASSES or not first_ns:
        return _UNKNOWN_GROWTH
    ratio = last_ns / first_ns
    return Growth(
        verdict=GrowthVerdict.GROWS if ratio >= GROWING_RATIO else GrowthVerdict.FLAT,
        first_quarter_ns=first_ns,
        last_quarter_ns=last_ns,
        ratio=ratio,
        slope_ns_per_position=slope(
            [((cost.low + cost.high) / 2, cost.ns_per_token, cost.tokens) for cost in costs]
        ),
    )


def _after_first_tokens(generation: Generation) -> list[PositionCost]:
    """Cost by position without the first token of each sequence, which takes in the prompt too.

    The first tokens are taken out of the lowest positions, when the prompts end there. Prompts of
    very different lengths end all over the positions, and nothing is taken out then.
    """
    costs = [_cost(position) for position in generation.positions if position.tokens]
    prompt_length = _prompt_length(generation)
    if not costs or prompt_length is None or prompt_length > costs[0].high:
        return costs
    lowest, *others = costs
    tokens = round(lowest.tokens - _first_tokens(generation))
    total_ns = lowest.ns_per_token * lowest.tokens - generation.first_token_ns
    if tokens <= 0 or total_ns < 0:
        return others
    return [replace(lowest, tokens=tokens, ns_per_token=total_ns / tokens), *others]


def _cost(position: PositionBin) -> PositionCost:
    return PositionCost(
        low=position.low,
        high=position.high,
        tokens=position.tokens,
        ns_per_token=position.total_ns / position.tokens,
        bytes_per_token=per(position.allocated_bytes, position.tokens),
    )


def _mean_of_first(costs: Sequence[PositionCost], tokens: float) -> float:
    """What each of the first so many tokens costs."""
    left, total_ns = tokens, 0.0
    for cost in costs:
        taken = min(left, cost.tokens)
        total_ns += taken * cost.ns_per_token
        left -= taken
    return per(total_ns, tokens) or 0.0
