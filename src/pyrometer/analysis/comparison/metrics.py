"""The figures of whole runs, side by side."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pyrometer.analysis.comparison.figures import (
    all_steps_ns,
    calls_are_about_right,
    lengths_differ,
    lengths_mix_calls,
    root_calls,
    steady_median,
)
from pyrometer.analysis.comparison.model import (
    Change,
    Doubt,
    Metric,
    MetricChange,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.verdicts import (
    BYTES_TOLERANCE,
    COUNT_TOLERANCE,
    INSTRUCTIONS_TOLERANCE,
    PEAK_TOLERANCE,
    UNSEEDED_INSTRUCTIONS_TOLERANCE,
    Pairing,
    judge_counts,
    judge_times,
)
from pyrometer.analysis.module_calls import per_step_of
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import LEAST_WARMUP_STEPS, GroupResult
from pyrometer.record.counters import CacheSimulation
from pyrometer.record.torch_run import StepGroup, TorchRun

_HASH_SEED = "PYTHONHASHSEED"
_A_STEP = frozenset({Metric.FORWARD_CALLS, Metric.BACKWARD_PASSES, Metric.BATCHES})
"""Counts of the whole run for each step of the main group; told where there are any."""
_OF_EQUAL_STEPS = frozenset({Metric.SAMPLES, Metric.TENSOR_BYTES})
"""Means over steps that are alike but for the last ones of epochs, whose batches may be smaller."""
_BY_LENGTH = frozenset(
    {
        Metric.TENSOR_ALLOCATIONS,
        Metric.GRAPHS,
        Metric.GRAPH_BREAKS,
        Metric.RECOMPILATIONS,
        Metric.SIMULATED_INSTRUCTIONS,
        Metric.HARDWARE_INSTRUCTIONS,
    }
)
"""Counts of the whole run, or that hold what is done once."""
_WITH_OWN_COST = frozenset(
    {
        Metric.TENSOR_BYTES,
        Metric.TENSOR_ALLOCATIONS,
        Metric.PEAK_HOST_BYTES,
        Metric.PEAK_GPU_BYTES,
        Metric.SIMULATED_INSTRUCTIONS,
        Metric.HARDWARE_INSTRUCTIONS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    metric: Metric
    quantity: Quantity
    of: Callable[[Observed], float | None]
    tolerance: float = COUNT_TOLERANCE
    subject: str | None = None


def compare_metrics(
    before: Sequence[Observed], after: Sequence[Observed], doubt: Doubt | None, *, watched_alike: bool = True
) -> tuple[MetricChange, ...]:
    """Each figure that any run has: times, rates and shares first, then counts and bytes.

    Those that have what the profiler took for itself in them are not judged unless ``watched_alike``.
    """
    figures = [*_FIGURES, *_generation_figures((*before, *after)), *_instructions(before, after)]
    if not any(_main(run) for run in (*before, *after)):
        figures.insert(0, _Figure(metric=Metric.PROFILED, quantity=Quantity.DURATION, of=_profiled))
    if any(_has_several_kinds(run) for run in (*before, *after)):
        # Of one kind it is the step, which is told already.
        figures.insert(1, _Figure(metric=Metric.ALL_STEPS, quantity=Quantity.DURATION, of=_all_steps_ns))
    pairings = [
        Pairing(
            quantity=figure.quantity,
            before=[figure.of(run) for run in before],
            after=[figure.of(run) for run in after],
        )
        for figure in figures
    ]
    open_figures = _open_figures((*before, *after), watched_alike=watched_alike)
    by_length, least = frozenset[Metric](), 0.0
    if lengths_differ((*before, *after)):
        by_length = _BY_LENGTH
        # Where runs end in the middle of an epoch, one has so much more of its last batches than the other.
        steps = [main.steps for run in (*before, *after) if (main := _main(run)) is not None]
        least = 1 / min(steps, default=1)
    if lengths_mix_calls((*before, *after)):
        by_length |= _A_STEP
    timed = [index for index, figure in enumerate(figures) if figure.quantity.is_timed]
    changes = dict(zip(timed, judge_times([pairings[index] for index in timed], doubt), strict=True))
    for index, figure in enumerate(figures):
        if index not in changes:
            tolerance = max(figure.tolerance, least if figure.metric in _OF_EQUAL_STEPS else 0.0)
            changes[index] = judge_counts(pairings[index], tolerance=tolerance)
            if figure.metric in open_figures:
                changes[index] = leave_open(changes[index], open_figures[figure.metric])
            elif figure.metric in by_length:
                changes[index] = leave_changed_open(changes[index], Doubt.VARIES)
    return tuple(
        MetricChange(metric=figures[index].metric, subject=figures[index].subject, change=changes[index])
        for index in sorted(changes, key=lambda index: (not figures[index].quantity.is_timed, index))
        if _is_told(figures[index], pairings[index])
    )


def _open_figures(runs: Iterable[Observed], *, watched_alike: bool) -> dict[Metric, Doubt]:
    """The counts that are not judged, and why."""
    why = {} if watched_alike else dict.fromkeys(_WITH_OWN_COST, Doubt.WATCHED_OTHERWISE)
    if any(map(calls_are_about_right, runs)):
        why |= dict.fromkeys(_A_STEP, Doubt.VARIES)
    return why


def leave_open(change: Change, doubt: Doubt) -> Change:
    """The same figures without a verdict, for that reason unless there is one already."""
    return replace(change, verdict=Verdict.CANNOT_TELL, doubt=change.doubt or doubt)


def leave_changed_open(change: Change, doubt: Doubt) -> Change:
    """The same, but what is the same on both sides stays so."""
    return change if change.verdict is Verdict.SAME else leave_open(change, doubt)


def _is_told(figure: _Figure, pairing: Pairing) -> bool:
    """Whether any run has it; of what there need not be, whether any has some."""
    values = (*pairing.before, *pairing.after)
    return any(values) if figure.metric in _A_STEP else any(value is not None for value in values)


def _main(run: Observed) -> GroupResult | None:
    return None if run.torch is None else run.torch.main


def _profiled(run: Observed) -> float:
    return run.run.profiled_ns


def _of_main(figure: Callable[[GroupResult], float | None]) -> Callable[[Observed], float | None]:
    def of(run: Observed) -> float | None:
        main = _main(run)
        return None if main is None else figure(main)

    return of


def _median_step_ns(run: Observed) -> float | None:
    # Of the steps themselves: a percentile from buckets is off by more than the change that matters.
    main, recorded = _main(run), run.run.torch
    if main is None or recorded is None:
        return None
    return steady_median(recorded, main, lambda step: step.duration_ns)


def _data_share(main: GroupResult) -> float | None:
    data = main.phase("data")
    return None if data is None else data.share


def _allocated_bytes(main: GroupResult) -> float | None:
    """Bytes a step, after as many first steps in each run, however long its warm-up.

    Found by the clock, a warm-up ends elsewhere each time: where steps are unequal, as a smaller last
    batch makes them, that alone would move the mean.
    """
    steady = main.steady
    if steady.allocated_bytes_per_step is None or main.warmup.asked_steps is not None:
        return steady.allocated_bytes_per_step
    later = main.series[LEAST_WARMUP_STEPS : main.warmup.steps]
    allocated_bytes = steady.allocated_bytes_per_step * steady.steps
    allocated_bytes += sum(step.allocated_bytes or 0 for step in later)
    return allocated_bytes / (steady.steps + len(later))


def _all_steps_ns(run: Observed) -> float | None:
    torch = run.torch
    return None if torch is None or torch.main is None else all_steps_ns(torch.groups, torch.main)


def _has_several_kinds(run: Observed) -> bool:
    return run.torch is not None and len(run.torch.groups) > 1


def _batches(run: Observed) -> float | None:
    """Batches a step, of the steps of all kinds."""
    main, recorded = _main(run), run.run.torch
    if main is None or recorded is None:
        return None
    return sum(group.batches for group in recorded.groups) / main.steps


def _samples(run: Observed) -> float | None:
    """Samples a step, of all steps of the main group: where a warm-up ends differs from run to run."""
    main, recorded = _main(run), run.run.torch
    if main is None or recorded is None:
        return None
    [group] = [group for group in recorded.groups if group.label == main.label]
    return None if group.samples is None else group.samples / group.steps


def _a_step(
    of_run: Callable[[TorchRun], int], of_steps: Callable[[StepGroup], int]
) -> Callable[[Observed], float | None]:
    """A count over the whole run, for each step of the main group.

    What comes after the last step is in no group of steps, and counts: so it does in the table of modules.
    Where the run does not tell, as it is without modules, the groups do.
    """

    def of(run: Observed) -> float | None:
        main, recorded = _main(run), run.run.torch
        if main is None or recorded is None:
            return None
        whole = of_run(recorded)
        if whole:
            scale = per_step_of(recorded)
            return whole / (main.steps + scale.called_steps - scale.steps)
        return sum(map(of_steps, recorded.groups)) / main.steps

    return of


def _peak_host_bytes(run: Observed) -> float | None:
    return None if run.memory is None else run.memory.peak_bytes


def _peak_gpu_bytes(run: Observed) -> float | None:
    gpu = None if run.torch is None else run.torch.gpu
    return None if gpu is None else gpu.peak_bytes


def _compiled(name: str) -> Callable[[Observed], float | None]:
    def of(run: Observed) -> float | None:
        compilation = None if run.torch is None else run.torch.compilation
        return None if compilation is None else getattr(compilation, name)

    return of


_FIGURES = (
    _Figure(metric=Metric.STEP, quantity=Quantity.DURATION, of=_median_step_ns),
    _Figure(
        metric=Metric.SAMPLES_PER_SECOND,
        quantity=Quantity.RATE,
        of=_of_main(lambda main: main.steady.samples_per_second),
    ),
    _Figure(
        metric=Metric.TOKENS_PER_SECOND,
        quantity=Quantity.RATE,
        of=_of_main(lambda main: main.steady.tokens_per_second),
    ),
    _Figure(metric=Metric.DATA_SHARE, quantity=Quantity.SHARE, of=_of_main(_data_share)),
    _Figure(
        metric=Metric.FORWARD_CALLS,
        quantity=Quantity.COUNT,
        of=_a_step(root_calls, lambda group: group.forward_calls),
    ),
    _Figure(
        metric=Metric.BACKWARD_PASSES,
        quantity=Quantity.COUNT,
        of=_a_step(lambda torch: torch.backward_passes, lambda group: group.backward_passes),
    ),
    _Figure(metric=Metric.BATCHES, quantity=Quantity.COUNT, of=_batches),
    _Figure(metric=Metric.SAMPLES, quantity=Quantity.COUNT, of=_samples),
    _Figure(
        metric=Metric.TENSOR_BYTES,
        quantity=Quantity.BYTES,
        of=_of_main(_allocated_bytes),
        tolerance=BYTES_TOLERANCE,
    ),
    _Figure(
        metric=Metric.TENSOR_ALLOCATIONS,
        quantity=Quantity.COUNT,
        of=_of_main(lambda main: main.allocations_per_step),
        tolerance=BYTES_TOLERANCE,
    ),
    _Figure(
        metric=Metric.PEAK_HOST_BYTES, quantity=Quantity.BYTES, of=_peak_host_bytes, tolerance=PEAK_TOLERANCE
    ),
    _Figure(
        metric=Metric.PEAK_GPU_BYTES, quantity=Quantity.BYTES, of=_peak_gpu_bytes, tolerance=PEAK_TOLERANCE
    ),
    _Figure(metric=Metric.GRAPHS, quantity=Quantity.COUNT, of=_compiled("graphs")),
    _Figure(metric=Metric.GRAPH_BREAKS, quantity=Quantity.COUNT, of=_compiled("graph_breaks")),
    _Figure(metric=Metric.RECOMPILATIONS, quantity=Quantity.COUNT, of=_compiled("recompilations")),
)


def _generation_figures(runs: Iterable[Observed]) -> list[_Figure]:
    """What each model that generates text does."""
    labels = dict.fromkeys(
        generation.label for run in runs if run.torch is not None for generation in run.torch.generations
    )
    return [
        _Figure(metric=metric, quantity=quantity, of=_generated(label, name), subject=label)
        for label in labels
        for metric, quantity, name in (
            (Metric.GENERATED_PER_SECOND, Quantity.RATE, "tokens_per_second"),
            (Metric.FIRST_TOKEN, Quantity.DURATION, "first_token_ns"),
        )
    ]


def _generated(label: str, name: str) -> Callable[[Observed], float | None]:
    def of(run: Observed) -> float | None:
        generations = () if run.torch is None else run.torch.generations
        found = next((generation for generation in generations if generation.label == label), None)
        return None if found is None else getattr(found, name)

    return of


def _instructions(before: Sequence[Observed], after: Sequence[Observed]) -> list[_Figure]:
    simulations = [_simulation(run) for run in (*before, *after)]
    seeds = {None if one is None else one.environment.get(_HASH_SEED) for one in simulations}
    seeded = len(seeds) == 1 and None not in seeds
    return [
        _Figure(
            metric=Metric.SIMULATED_INSTRUCTIONS,
            quantity=Quantity.INSTRUCTIONS,
            of=_simulated_instructions,
            tolerance=INSTRUCTIONS_TOLERANCE if seeded else UNSEEDED_INSTRUCTIONS_TOLERANCE,
        ),
        _Figure(
            metric=Metric.HARDWARE_INSTRUCTIONS,
            quantity=Quantity.INSTRUCTIONS,
            of=_hardware_instructions,
            tolerance=UNSEEDED_INSTRUCTIONS_TOLERANCE,
        ),
    ]


def _simulation(run: Observed) -> CacheSimulation | None:
    counters = run.run.counters
    return None if counters is None else counters.simulated


def _simulated_instructions(run: Observed) -> float | None:
    simulated = None if run.counters is None else run.counters.simulated
    return None if simulated is None else simulated.instructions


def _hardware_instructions(run: Observed) -> float | None:
    hardware = None if run.counters is None else run.counters.hardware
    counter = None if hardware is None else hardware.process["instructions"]
    return None if counter is None else counter.count
