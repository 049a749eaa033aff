"""The sentences of a report of PyTorch work. Names from the run stay as they are: a renderer cleans them."""

from collections.abc import Iterator

from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.modules import ModuleTable
from pyrometer.analysis.step_kinds import GroupKind
from pyrometer.analysis.steps import (
    WARMUP_AGREEMENT,
    WARMUP_WINDOW_STEPS,
    GroupResult,
    SteadySteps,
    Warmup,
    WarmupEnd,
)
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.torch_run import MAX_FIRST_STEPS, Gpu
from pyrometer.report.safe_text import shorten_middle, visible
from pyrometer.units import format_bytes, format_count, format_duration

NO_GPU = "no GPU"
NO_STEPS = "No step was found: no optimizer stepped, no batch was fetched and no root module was called."

_LONGEST_NAME = 60
_MOST_PEAKS = 8


def short(name: str) -> str:
    """A name from the run as part of a sentence."""
    return shorten_middle(visible(name), _LONGEST_NAME)


def describe_headline(results: TorchResults) -> str:
    """The main group of steps in one line."""
    headline, main = results.headline, results.main
    if headline is None or main is None:
        return ""
    steps = f"{format_count(main.steps, 'step')}{describe_left_out(results)}"
    parts = [steps, f"{format_duration(headline.step_ns)} a step"]
    parts += describe_rates(main.steady, only_throughput=True)
    if headline.peak_host_bytes is not None:
        parts.append(f"peak {format_bytes(headline.peak_host_bytes)}")
    if results.gpu is None:
        parts.append(NO_GPU)
    elif headline.peak_gpu_bytes is None:
        parts.append("GPU memory not measured")
    else:
        parts.append(f"GPU peak {format_bytes(headline.peak_gpu_bytes)}")
    biggest = headline.biggest_phase
    return f"{', '.join(parts)}; {short(biggest.name)} takes {100 * biggest.share:.0f} %"


def left_out_steps(results: TorchResults) -> int:
    """How many steps were slowed by looking at their operators, and are in no group."""
    return 0 if results.operators is None else results.operators.left_out_steps


def describe_left_out(results: TorchResults) -> str:
    """Steps that are in no group, after those that are: `` (and 22 looked at closely)``."""
    left_out = left_out_steps(results)
    return f" (and {left_out:,} looked at closely)" if left_out else ""


def describe_rates(steady: SteadySteps, *, only_throughput: bool = False) -> list[str]:
    """Steps, batches, samples and tokens a second, as far as they are known."""
    rates = [("samples", steady.samples_per_second), ("tokens", steady.tokens_per_second)]
    if not only_throughput:
        # One batch a step is the common case, and the same figure twice says nothing.
        batches = steady.batches_per_second
        steps = [("steps", steady.steps_per_second)] if batches != steady.steps_per_second else []
        rates = [*steps, ("batches", batches), *rates]
    return [f"{format_figure(rate)} {what}/s" for what, rate in rates if rate is not None]


def format_figure(figure: float) -> str:
    """A number with at least three digits: ``1.06``, ``25.8``, ``1,234``."""
    return f"{figure:,.0f}" if figure >= 99.95 else f"{figure:.1f}" if figure >= 9.995 else f"{figure:.2f}"


def name_group(group: GroupResult) -> str:
    """A group by its kind and what made it."""
    marked = group.nature.kind is GroupKind.MARKED
    return f"{'marked by the program' if marked else group.nature.kind.value}, {short(group.label)}"


def describe_group(group: GroupResult) -> str:
    """What the steps of a group are, as a title."""
    nature = group.nature
    parts = [name_group(group)]
    if nature.kind is GroupKind.EVALUATION:
        parts.append("between training steps")
    if nature.kind is GroupKind.GENERATION:
        parts.append("a step a token")
    if len(nature.optimizers) > 1:
        parts.append("all in one step")
    if nature.accumulates is not None:
        parts.append(f"gradients accumulated over {nature.accumulates} batches")
    if nature.closure:
        parts.append("a closure that the optimizer calls several times a step")
    if group.records_unused_gradients:
        parts.append("gradients are tracked although nothing is trained")
    return ", ".join(parts)


def describe_step_times(steady: SteadySteps) -> str:
    """The step as a whole."""
    figures = (
        ("min", steady.min_ns),
        ("avg", steady.mean_ns),
        ("p50", steady.p50_ns),
        ("p95", steady.p95_ns),
        ("max", steady.max_ns),
    )
    text = " · ".join(f"{name} {format_duration(value)}" for name, value in figures)
    about = "" if steady.extremes_are_exact else " (min and max within 1.6 %)"
    return f"A step: {text}{about}"


def describe_which_steps(group: GroupResult) -> str:
    """The steps that the figures are over, and their rates."""
    steady, warmup = group.steady, group.warmup
    counted = f"over {format_count(steady.steps, 'step')}"
    if warmup.steps:
        counted += f", after {warmup.steps:,} of warm-up"
    return " · ".join([*describe_rates(steady), counted])


def describe_window(window: tuple[int, int | None] | None) -> Iterator[str]:
    """Which steps were recorded, if not all."""
    if window is not None:
        first, end = window
        last = "on" if end is None else f"to {end - 1:,}"
        yield f"Only steps {first:,} {last} were recorded, as told; steps are counted from 0."


def sentence(text: str) -> str:
    """The text with a large first letter."""
    return text[:1].upper() + text[1:]


def describe_warmup(group: GroupResult) -> str:
    """The first step against the steady ones, and how long it took to get there."""
    first, warmup = group.first_step, group.warmup
    if first.ratio is None:
        text = f"first step {format_duration(first.duration_ns)}"
    elif format_figure(first.ratio) == "1.00":
        text = f"first step {format_duration(first.duration_ns)}, as long as a steady one"
    else:
        side = "more" if first.extra_ns >= 0 else "less"
        text = (
            f"first step {format_duration(first.duration_ns)}, {format_figure(first.ratio)} × a steady one "
            f"({format_duration(abs(first.extra_ns))} {side})"
        )
    return f"{text}. {sentence(_describe_end(warmup, kept=min(group.steps, MAX_FIRST_STEPS)))}"


def _describe_end(warmup: Warmup, *, kept: int) -> str:
    taking = "no step left out as warm-up"
    if warmup.steps:
        left_out = f"{format_count(warmup.steps, 'step')} left out as warm-up"
        taking = f"{left_out}, {format_duration(warmup.total_ns)} in all"
    if warmup.end is WarmupEnd.GIVEN:
        asked = "" if warmup.asked_steps == warmup.steps else f" ({warmup.asked_steps} asked for)"
        return f"{taking}, as told{asked}."
    if warmup.end is WarmupEnd.STEADY:
        return f"{taking}, steady from there on."
    if warmup.end is WarmupEnd.TOO_SHORT:
        return f"{taking}; too few steps to tell whether steady."
    return (
        f"{taking}; steady state not reached: no two windows of {WARMUP_WINDOW_STEPS} steps agree within "
        f"{100 * WARMUP_AGREEMENT:.0f} % among the first {kept}."
    )


def describe_module_steps(modules: ModuleTable) -> Iterator[str]:
    """What the figures of modules are over."""
    if modules.steps:
        yield f"Averages over {format_count(modules.steps, 'step')}, warm-up too; % is of their time."
    if any(place.recomputed.calls for _, place in modules.walk()):
        yield "Forward counts what the backward pass computes again (activation checkpointing)."


def describe_timed_backward(modules: ModuleTable) -> Iterator[str]:
    """In how many backward passes modules were timed."""
    if not modules.backward_passes:
        return
    passes = format_count(modules.backward_passes, "backward pass", "backward passes")
    if modules.timed_backward_passes >= modules.backward_passes:
        yield f"Modules were timed in all {passes}."
    elif modules.timed_backward_passes:
        timed = f"{modules.timed_backward_passes:,} of {passes}"
        yield f"Backward: modules were timed in {timed}, chosen at random."
    else:
        yield f"Backward: modules were timed in none of {passes}."


def describe_host_memory(memory: MemoryResult | None) -> str:
    """Peak, now, at the start and growth."""
    if memory is None:
        return "not recorded"
    parts = [f"peak {format_bytes(memory.peak_bytes)}"]
    if memory.first_bytes is not None and memory.last_bytes is not None:
        parts.append(f"{format_bytes(memory.first_bytes)} at the start")
        parts.append(f"{format_bytes(memory.last_bytes)} at the end")
    return ", ".join(parts)


def describe_growth(memory: MemoryResult) -> str:
    """How memory changes after the warm-up."""
    if memory.growth_bytes_per_second is None:
        return "too few samples to tell"
    rate = _signed_bytes(memory.growth_bytes_per_second)
    per_step = (
        ""
        if memory.growth_bytes_per_step is None
        else f", {_signed_bytes(memory.growth_bytes_per_step)} a step"
    )
    samples = format_count(memory.growth_samples, "sample")
    return f"{rate} a second{per_step}, after the warm-up (a line through {samples})"


def describe_gpu(gpu: Gpu | None) -> str:
    """The GPU's memory and use."""
    if gpu is None:
        return NO_GPU
    figures = (
        ("peak", gpu.peak_bytes),
        ("now", gpu.current_bytes),
        ("reserved", gpu.reserved_bytes),
    )
    parts = [f"{what} {format_bytes(size)}" for what, size in figures if size is not None]
    if gpu.utilisation_percent is not None:
        parts.append(f"{gpu.utilisation_percent:.0f} % used on average")
    return f"{short(gpu.name)}: {', '.join(parts) or 'not measured'}"


def describe_phase_peaks(gpu: Gpu) -> str:
    """The GPU's memory by phase, highest first."""
    peaks = sorted(gpu.phase_peak_bytes.items(), key=lambda peak: -peak[1])[:_MOST_PEAKS]
    return ", ".join(f"{short(phase)} {format_bytes(size)}" for phase, size in peaks)


def _signed_bytes(size_bytes: float) -> str:
    sign = "-" if size_bytes < 0 else "+"
    return f"{sign}{format_bytes(abs(size_bytes))}"
