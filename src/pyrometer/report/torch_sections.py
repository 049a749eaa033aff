"""The sections of a report of PyTorch work, in the order they are read."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.loading import LoaderResult
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.torch_run import Compilation
from pyrometer.report import torch_wording
from pyrometer.report.blocks import (
    Bullets,
    Column,
    Lines,
    Pairs,
    Row,
    Section,
    Table,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.report.sparkline import sparkline
from pyrometer.report.torch_generation import build_generation_section
from pyrometer.report.torch_modules import build_module_section
from pyrometer.report.torch_operators import build_operator_sections
from pyrometer.report.torch_roofline import build_roofline_section
from pyrometer.report.torch_steps import build_warmup_section
from pyrometer.report.torch_wording import format_figure, sentence
from pyrometer.units import format_count, format_duration, format_share


def build_model_sections(
    results: TorchResults,
    style: Style,
    *,
    top: int,
    top_placed: int | None = None,
    top_operators: int | None = None,
) -> Iterator[Section]:
    """What the model is made of and does: modules, roofline, operators."""
    for section in (
        build_module_section(results.modules, style, top=top),
        build_roofline_section(results.roofline, style, top=top_placed or top),
    ):
        if section is not None:
            yield section
    yield from build_operator_sections(results.operators, style, top=top_operators or top)


def build_flow_sections(
    results: TorchResults, memory: MemoryResult | None, style: Style
) -> Iterator[Section]:
    """What goes in and comes out, and what it takes to get going: loading, generation, memory, warm-up."""
    if results.loaders:
        yield _loading(results.loaders, style)
    for generation in results.generations:
        yield build_generation_section(generation, style)
    yield build_memory_section(results, memory)
    warmup = build_warmup_section(results)
    if warmup is not None:
        yield warmup
    if results.compilation is not None:
        yield _compilation(results.compilation)


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
            ),
            details=(describe_loader(loader),),
        )
        for loader in loaders
    )
    table = Table(names="loader", columns=columns, rows=rows, details="verdict")
    return Section(title="Data loading, per batch", blocks=(without_unknown_columns(table, (UNKNOWN_CELL,)),))


def describe_loader(loader: LoaderResult) -> str:
    """Who waits for whom, with the figures behind it."""
    parts = [sentence(loader.verdict.value)]
    if loader.ready_share is not None:
        queue = (
            "" if loader.average_queue is None else f", {format_figure(loader.average_queue)} in the queue"
        )
        parts.append(f"batch ready at {format_share(loader.ready_share)} of the requests{queue}")
    if loader.worker_busy_share is not None:
        parts.append(f"workers busy {format_share(loader.worker_busy_share)} of the time")
    if loader.start_ns_per_iterator is not None:
        started = f"starting an iteration took {format_duration(loader.start_ns_per_iterator)}"
        parts.append(f"{started} ({format_count(loader.iterators, 'iteration')})")
    if loader.first_batch_ns_per_iterator is not None:
        parts.append(f"its first batch came after {format_duration(loader.first_batch_ns_per_iterator)}")
    return f"{'; '.join(parts)}."


def build_memory_section(results: TorchResults, memory: MemoryResult | None) -> Section:
    """Peak, growth and the GPU's."""
    rows = [("host", torch_wording.describe_host_memory(memory))]
    if memory is not None and memory.series:
        rows.append(("over time", sparkline(memory.series)))
        rows.append(("growth", torch_wording.describe_growth(memory)))
    rows.append(("GPU", torch_wording.describe_gpu(results.gpu)))
    if results.gpu is not None and results.gpu.phase_peak_bytes:
        rows.append(("GPU peaks", torch_wording.describe_phase_peaks(results.gpu)))
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
