"""The sections of a report of PyTorch work, in the order they are read."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.generation import CacheUse, GenerationResult, GrowthVerdict
from pyrometer.analysis.hotspots import (
    HIGH_SHARE,
    MEDIUM_SHARE,
    Hotspot,
    HotspotKind,
    Priority,
    Strength,
)
from pyrometer.analysis.loading import LoaderResult
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.torch_run import Compilation
from pyrometer.report import torch_wording
from pyrometer.report.blocks import (
    Block,
    Bullets,
    Column,
    Lines,
    Pairs,
    Row,
    Section,
    Table,
    notes,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.report.sparkline import bar, sparkline
from pyrometer.report.torch_modules import build_module_section
from pyrometer.report.torch_steps import build_step_sections, build_warmup_section
from pyrometer.report.torch_wording import format_rate, format_ratio, sentence, short
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_MOST_POSITIONS = 12
_POSITION_BAR_CELLS = 20


def build_torch_sections(
    results: TorchResults, memory: MemoryResult | None, style: Style, *, top: int
) -> Iterator[Section]:
    """Phases, hotspots, modules, data loading, generation, memory, warm-up, compilation."""
    yield from build_step_sections(results)
    if results.hotspots:
        yield _hotspots(results.hotspots, results.strengths, style)
    modules = build_module_section(results.modules, style, top=top)
    if modules is not None:
        yield modules
    if results.loaders:
        yield _loading(results.loaders, style)
    for generation in results.generations:
        yield _generation(generation, style)
    yield _memory(results, memory)
    warmup = build_warmup_section(results)
    if warmup is not None:
        yield warmup
    if results.compilation is not None:
        yield _compilation(results.compilation)


def _hotspots(hotspots: Sequence[Hotspot], strengths: Sequence[Strength], style: Style) -> Section:
    columns = (
        Column(heading="what", left=True),
        Column(heading="a step"),
        Column(heading="%"),
        Column(heading="priority", left=True),
    )
    rows = tuple(
        Row(
            name=f"{hotspot.rank}. {hotspot.name}",
            cells=(
                _kind(hotspot),
                format_duration(hotspot.ns_per_step),
                f"{100 * hotspot.share:.1f}",
                hotspot.priority.value,
            ),
            details=tuple(_details(hotspot)) if style.wordy or hotspot.priority is not Priority.LOW else (),
        )
        for hotspot in hotspots
    )
    rule = (
        f"Priority by share of the step: HIGH from {100 * HIGH_SHARE:.0f} %, "
        f"MEDIUM from {100 * MEDIUM_SHARE:.0f} %. A module's time is its own, and part of its phases'."
    )
    good: tuple[Block, ...] = ()
    if strengths:
        good = (
            Lines(lines=("Good already:",)),
            Bullets(lines=tuple(f"{sentence(strength.text)}." for strength in strengths)),
        )
    table = Table(names="hotspot", columns=columns, rows=rows, details="likely causes, and what to try")
    return Section(title="Hotspots", blocks=(table, *notes([rule]), *good))


def _kind(hotspot: Hotspot) -> str:
    if hotspot.kind is HotspotKind.PHASE:
        return "phase"
    return "module" if hotspot.module_kind is None else short(hotspot.module_kind)


def _details(hotspot: Hotspot) -> Iterator[str]:
    if hotspot.causes:
        yield f"Likely: {'; '.join(hotspot.causes)}."
    if hotspot.to_try:
        yield f"Try: {'; '.join(hotspot.to_try)}."


def _loading(loaders: Sequence[LoaderResult], style: Style) -> Section:
    columns = (
        Column(heading="workers"),
        Column(heading="batches"),
        Column(heading="wait", spelled="waited a batch"),
        Column(heading="%", spelled="% of the steps"),
        Column(heading="work", spelled="worked a batch"),
        Column(heading="fetch", spelled="of it fetch", dropped=1),
        Column(heading="transform", spelled="of it transform", dropped=1),
        Column(heading="collate", spelled="of it collate", dropped=1),
        Column(heading="ready", spelled="% ready when asked for", dropped=2),
        Column(heading="queue", spelled="waiting in the queue", dropped=2),
    )
    rows = tuple(
        Row(
            name=loader.name,
            cells=(
                style.count(loader.workers),
                style.count(loader.batches),
                write_known(loader.wait_ns_per_batch, style.duration),
                write_known(loader.wait_share, style.share),
                write_known(loader.work_ns_per_batch, style.duration),
                write_known(loader.fetch_ns_per_batch, style.duration),
                write_known(loader.transform_ns_per_batch, style.duration),
                write_known(loader.collate_ns_per_batch, style.duration),
                write_known(loader.ready_share, style.share),
                write_known(loader.average_queue, format_ratio),
            ),
        )
        for loader in loaders
    )
    lines = tuple(_describe_loader(loader) for loader in loaders)
    table = without_unknown_columns(Table(names="loader", columns=columns, rows=rows), (UNKNOWN_CELL,))
    return Section(title="Data loading, per batch", blocks=(table, Bullets(lines=lines)))


def _describe_loader(loader: LoaderResult) -> str:
    parts = [f"{short(loader.name)}: {loader.verdict.value}"]
    if loader.worker_busy_share is not None:
        parts.append(f"workers busy {format_share(loader.worker_busy_share)} of the time")
    if loader.start_ns_per_iterator is not None:
        started = f"starting an iteration took {format_duration(loader.start_ns_per_iterator)}"
        parts.append(f"{started} ({format_count(loader.iterators, 'iteration')})")
    if loader.first_batch_ns_per_iterator is not None:
        parts.append(f"its first batch came after {format_duration(loader.first_batch_ns_per_iterator)}")
    return f"{'; '.join(parts)}."


def _generation(generation: GenerationResult, style: Style) -> Section:
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
    speed = "" if rate is None else f"{format_rate(rate)} tokens/s: "
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
    ratio = format_ratio(growth.ratio)
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
        Column(heading="", left=True, dropped=1),
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


def _memory(results: TorchResults, memory: MemoryResult | None) -> Section:
    rows = [("host", torch_wording.describe_host_memory(memory))]
    if memory is not None and memory.series:
        rows.append(("over time", sparkline(memory.series)))
        rows.append(("growth", torch_wording.describe_growth(memory)))
    rows.append(("GPU", torch_wording.describe_gpu(results.gpu)))
    return Section(title="Memory", blocks=(Pairs(rows=tuple(rows)),))


def _compilation(compilation: Compilation) -> Section:
    figures = (
        f"{format_count(compilation.graphs, 'graph')}, "
        f"{format_count(compilation.graph_breaks, 'graph break')}, "
        f"{format_count(compilation.recompilations, 'recompilation')}, "
        f"{format_duration(compilation.compile_ns)} spent compiling."
    )
    reasons = tuple(
        f"Graph break{'' if number == 1 else f', {number:,} times'}: {reason}"
        for reason, number in compilation.break_reasons
    )
    return Section(
        title="Compilation", blocks=(Lines(lines=(figures,)), *([Bullets(lines=reasons)] if reasons else []))
    )
