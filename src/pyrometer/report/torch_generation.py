"""Generation: what a token costs, by position too."""

from pyrometer.analysis.generation import CacheUse, GenerationResult, GrowthVerdict
from pyrometer.report.blocks import (
    Block,
    Column,
    Pairs,
    Row,
    Section,
    Table,
    notes,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.report.sparkline import bar
from pyrometer.report.torch_wording import format_figure, short
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_MOST_POSITIONS = 12
_POSITION_BAR_CELLS = 20


def build_generation_section(generation: GenerationResult, style: Style) -> Section:
    """Tokens a second, what one costs, and whether that grows with the context."""
    rows = [
        ("tokens", _describe_tokens(generation)),
        ("a token", _describe_token(generation)),
        ("first token", _describe_first_token(generation)),
        ("cache", _describe_cache(generation)),
        ("growth", _describe_growth(generation)),
    ]
    return Section(
        title=f"Generation: {short(generation.label)}",
        blocks=(Pairs(rows=tuple(rows)), *_positions(generation, style)),
    )


def _describe_tokens(generation: GenerationResult) -> str:
    rate = generation.tokens_per_second
    speed = "" if rate is None else f"{format_figure(rate)} tokens/s: "
    return (
        f"{speed}{format_count(generation.tokens, 'token')} in {format_duration(generation.total_ns)}, "
        f"{format_count(generation.sequences, 'sequence')}, "
        f"{format_count(generation.passes, 'forward pass', 'forward passes')}"
    )


def _describe_token(generation: GenerationResult) -> str:
    time = "time unknown" if generation.ns_per_token is None else format_duration(generation.ns_per_token)
    size = generation.bytes_per_token
    allocated = "bytes not counted" if size is None else f"{format_bytes(size)} allocated"
    return f"{time}, {allocated}"


def _describe_first_token(generation: GenerationResult) -> str:
    if generation.first_token_ns is None:
        return "unknown"
    prompt = generation.prompt_tokens_per_sequence
    after = "" if prompt is None else f", for a prompt of {prompt:,.0f} tokens"
    return f"{format_duration(generation.first_token_ns)}{after}"


def _describe_cache(generation: GenerationResult) -> str:
    if generation.cache is CacheUse.PARTLY and generation.cached_share is not None:
        return f"{generation.cache.value} ({format_share(generation.cached_share)} of the passes)"
    return generation.cache.value


def _describe_growth(generation: GenerationResult) -> str:
    growth = generation.growth
    if growth.verdict is GrowthVerdict.CANNOT_TELL or growth.ratio is None:
        return f"{GrowthVerdict.CANNOT_TELL.value}: too few positions"
    quarters = (growth.first_quarter_ns or 0.0, growth.last_quarter_ns or 0.0)
    first, last = (format_duration(value) for value in quarters)
    ratio = format_figure(growth.ratio)
    return f"{growth.verdict.value}: {first} in the first quarter, {last} in the last ({ratio} ×)"


def _positions(generation: GenerationResult, style: Style) -> tuple[Block, ...]:
    if not generation.positions:
        return ()
    every = -(-len(generation.positions) // _MOST_POSITIONS)
    shown = generation.positions[::every]
    most = max(position.ns_per_token for position in generation.positions)
    columns = (
        Column(heading="tokens"),
        Column(heading="a token"),
        Column(heading="", spelled="beside the longest", left=True, color="cyan", dropped=1),
        Column(heading="allocated"),
    )
    rows = tuple(
        Row(
            name=f"{position.low:,}"
            if position.low == position.high
            else f"{position.low:,}–{position.high:,}",
            cells=(
                style.count(position.tokens),
                style.duration(position.ns_per_token),
                bar(position.ns_per_token / most if most else 0, cells=_POSITION_BAR_CELLS),
                write_known(position.bytes_per_token, style.size),
            ),
        )
        for position in shown
    )
    left_out = len(generation.positions) - len(shown)
    table = without_unknown_columns(Table(names="context", columns=columns, rows=rows), (UNKNOWN_CELL,))
    return (
        table,
        *notes([f"Every {every}. of {len(generation.positions)} ranges is shown."] if left_out else []),
    )
