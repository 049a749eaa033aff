"""What a report says in a line: memory, tokens, the profiler's own cost, losses."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.generation import GenerationResult
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.run import Run
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.document import Document
from pyrometer.report.targets_section import describe_target
from pyrometer.report.torch_wording import describe_gpu, describe_host_memory, format_figure, short
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_MOST_LOSSES = 3
_MOST_TARGETS = 4


def memory_line(document: Document) -> str:
    """The most memory there was, on the host and on the GPU; what was allocated, if counted."""
    parts = [f"Memory: {describe_host_memory(document.memory)}"]
    if document.torch is not None:
        parts.append(describe_gpu(document.torch.gpu))
    allocations = document.allocations
    if allocations is not None:
        counted = format_count(allocations.allocations, "allocation")
        parts.append(f"{format_bytes(allocations.bytes)} allocated in {counted}")
    return f"{'; '.join(parts)}."


def cost_line(run: Run) -> str:
    """What the profiler itself took of the program's time."""
    cost = run.cost
    spent_ns = cost.scopes_ns + (cost.hook_ns or 0) + cost.window_ns
    share = f" ({format_share(spent_ns / run.profiled_ns)})" if run.profiled_ns else ""
    text = f"Own cost: {format_duration(spent_ns)} of {format_duration(run.profiled_ns)} profiled{share}"
    if run.samples is not None:
        text += f", {format_duration(run.samples.sampler_cpu_ns)} CPU time on the sampler's own thread"
    startup = UNKNOWN_CELL if cost.startup_ns is None else format_duration(cost.startup_ns)
    return f"{text}; start-up {startup}."


def loss_line(document: Document) -> str:
    """What could not be seen or kept."""
    if not document.run.losses:
        return "Losses: none."
    told = [line.rstrip(".") for line in document.losses[:_MOST_LOSSES]]
    more = len(document.losses) - _MOST_LOSSES
    return f"Losses: {'; '.join(told)}{f' and {more} more' if more > 0 else ''}."


def target_lines(results: Sequence[TargetResult]) -> Iterator[str]:
    """How many of the project's targets are met, and which are not; nothing where it sets none."""
    if not results:
        return
    met = sum(result.met is True for result in results)
    open_ones = [describe_target(result) for result in results if result.met is not True]
    told = "; ".join(open_ones[:_MOST_TARGETS])
    more = len(open_ones) - _MOST_TARGETS
    yield (
        f"Targets: {met:,} of {len(results):,} met{'; not ' if told else ''}{told}"
        f"{f' and {more} more' if more > 0 else ''}."
    )


def generation_lines(document: Document) -> Iterator[str]:
    """Tokens a second, and what a token takes, of each model that generates."""
    for generation in () if document.torch is None else document.torch.generations:
        yield _generation_line(generation)


def _generation_line(generation: GenerationResult) -> str:
    rate = write_known(generation.tokens_per_second, format_figure)
    milliseconds = write_known(generation.ns_per_token, lambda value: format_figure(value / 1e6))
    size = write_known(generation.bytes_per_token, lambda value: format_figure(value / 1e6))
    return (
        f"Generation, {short(generation.label)}: {rate} tokens/s, {milliseconds} ms and {size} MB a token, "
        f"{generation.cache.value}, cost a token {generation.growth.verdict.value}."
    )
