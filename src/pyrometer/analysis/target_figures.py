"""The figures that targets are set for: what a run, or a baseline file, says of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyrometer.analysis.baseline import Measurement
from pyrometer.analysis.call_tree import CallTree
from pyrometer.analysis.generation import GenerationResult
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.step_kinds import GroupKind
from pyrometer.analysis.steps import GroupResult, fold_phases, folded_name
from pyrometer.analysis.target_goals import Quantity
from pyrometer.stats.rates import per

PREPROCESSING_NAMES = ("preprocess", "transform")
"""What the names of the program's own phases and scopes begin with that prepare its data."""

_MILLISECOND_NS = 1e6
_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a run; without a value, ``reason`` says why."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Something that a target can be set for."""

    name: str
    """The key in ``[tool.pyrometer.targets]``."""
    words: str
    quantity: Quantity
    read: Callable[[Observed], Figure]

    @property
    def more_is_better(self) -> bool:
        """Rates are to rise; times and sizes are to fall."""
        return self.quantity in {Quantity.SAMPLES_RATE, Quantity.TOKENS_RATE}


def figure_of(metric: Metric, source: Observed | Measurement) -> Figure:
    """What a run, or the baseline of one, says of a metric."""
    if isinstance(source, Observed):
        return metric.read(source)
    return _measured(metric.name, source)


def _known(value: float | None, reason: str) -> Figure:
    return Figure(value=value, reason=reason if value is None else None)


def _unknown(reason: str) -> Figure:
    return Figure(value=None, reason=reason)


# Steps.


def _main(observed: Observed) -> GroupResult | str:
    """The main group, or why there is none."""
    if observed.torch is None:
        return "the program did not use PyTorch, or it was not watched"
    return "no step was found" if observed.torch.main is None else observed.torch.main


def _largest(observed: Observed, fits: Callable[[GroupResult], bool]) -> GroupResult | None:
    groups = () if observed.torch is None else observed.torch.groups
    return max(filter(fits, groups), key=lambda group: group.total_ns, default=None)


def _throughput(observed: Observed) -> Figure:
    main = _main(observed)
    if isinstance(main, str):
        return _unknown(main)
    return _known(main.steady.samples_per_second, "the samples of a step could not be told")


def _step_latency(observed: Observed) -> Figure:
    main = _main(observed)
    return _unknown(main) if isinstance(main, str) else Figure(value=main.steady.mean_ns)


def _training_step(observed: Observed) -> Figure:
    group = _largest(observed, lambda group: group.nature.trains)
    return _known(None if group is None else group.steady.mean_ns, "no step of the run trains")


def _inference_latency(observed: Observed) -> Figure:
    forward = {GroupKind.EVALUATION, GroupKind.INFERENCE}
    group = _largest(observed, lambda group: group.nature.kind in forward)
    return _known(
        None if group is None else group.steady.mean_ns,
        "no step of the run has forward passes only (what makes tokens one by one is no such step)",
    )


def _data_loading(observed: Observed) -> Figure:
    main = _main(observed)
    if isinstance(main, str):
        return _unknown(main)
    if not any(folded_name(phase.name) == "data" for phase in main.phases):
        return _unknown("no phase of a step is data loading: no loader was waited for, nothing was copied")
    [mean_ns] = [phase.mean_ns for phase in fold_phases(main.phases) if phase.name == "data"]
    return Figure(value=mean_ns)


def _preprocessing(observed: Observed) -> Figure:
    """Of the program's own phases in a main step, else of its scopes, else of the loader's transform."""
    torch = observed.torch
    main = None if torch is None else torch.main
    phases = [] if main is None else [phase for phase in main.phases if _prepares(phase.name)]
    if phases:
        return Figure(value=sum(phase.mean_ns for phase in phases))
    scopes_ns, calls = _preprocessing_scopes(observed.merged.tree)
    if calls:
        loaders = () if torch is None else torch.loaders
        batches = sum(loader.batches for loader in loaders) or (0 if main is None else main.steps)
        return Figure(value=scopes_ns / (batches or calls))
    loaders = () if torch is None else torch.loaders
    timed = [loader for loader in loaders if loader.transform_ns_per_batch is not None]
    largest = max(timed, key=lambda loader: loader.batches, default=None)
    return _known(
        None if largest is None else largest.transform_ns_per_batch,
        "no phase or scope is named preprocess… or transform…, and no loader has a transform that was timed",
    )


def _prepares(name: str) -> bool:
    return name.strip().lower().startswith(PREPROCESSING_NAMES)


def _preprocessing_scopes(tree: CallTree) -> tuple[int, int]:
    """Time and calls of the scopes so named, those inside another of them left out."""
    total_ns = calls = 0
    inside_from: int | None = None
    for depth, node in tree.walk():
        if inside_from is not None and depth > inside_from:
            continue
        inside_from = depth if _prepares(node.name) else None
        if inside_from is not None:
            total_ns += node.total_ns
            calls += node.calls + node.open_calls
    return total_ns, calls


# Memory, and the run as a whole.


def _peak_host_memory(observed: Observed) -> Figure:
    memory = observed.memory
    return _known(None if memory is None else memory.peak_bytes, "the memory of the process was not recorded")


def _peak_gpu_memory(observed: Observed) -> Figure:
    gpu = None if observed.torch is None else observed.torch.gpu
    if gpu is None:
        return _unknown("no GPU")
    return _known(gpu.peak_bytes, "the memory of the GPU was not measured")


def _total_allocations(observed: Observed) -> Figure:
    allocations = observed.allocations
    return _known(None if allocations is None else allocations.bytes, "allocations were not counted")


def _end_to_end(observed: Observed) -> Figure:
    # What a program that broke off took is no time to be proud of.
    finished = observed.run.outcome.status == "finished"
    return _known(observed.run.profiled_ns if finished else None, "the program did not end by itself")


# Generation.


def _of_generation(read: Callable[[GenerationResult], float | None]) -> Callable[[Observed], Figure]:
    def figure(observed: Observed) -> Figure:
        generations: Sequence[GenerationResult] = () if observed.torch is None else observed.torch.generations
        largest = max(generations, key=lambda generation: generation.total_ns, default=None)
        if largest is None:
            return _unknown("nothing was made token by token")
        return _known(read(largest), "not measured")

    return figure


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="throughput",
            words="samples a second, in the main group of steps",
            quantity=Quantity.SAMPLES_RATE,
            read=_throughput,
        ),
        Metric(
            name="step_latency",
            words="a steady step of the main group, on average",
            quantity=Quantity.DURATION,
            read=_step_latency,
        ),
        Metric(
            name="peak_host_memory",
            words="the most memory the process had",
            quantity=Quantity.SIZE,
            read=_peak_host_memory,
        ),
        Metric(
            name="peak_gpu_memory",
            words="the most memory of the GPU in use",
            quantity=Quantity.SIZE,
            read=_peak_gpu_memory,
        ),
        Metric(
            name="inference_latency",
            words="a steady step that only calls forward",
            quantity=Quantity.DURATION,
            read=_inference_latency,
        ),
        Metric(
            name="training_step",
            words="a steady step that trains",
            quantity=Quantity.DURATION,
            read=_training_step,
        ),
        Metric(
            name="data_loading",
            words="waiting for data and copying it, in a step of the main group",
            quantity=Quantity.DURATION,
            read=_data_loading,
        ),
        Metric(
            name="preprocessing",
            words="preparing the data of a batch",
            quantity=Quantity.DURATION,
            read=_preprocessing,
        ),
        Metric(
            name="end_to_end",
            words="the whole run, while it was profiled",
            quantity=Quantity.DURATION,
            read=_end_to_end,
        ),
        Metric(
            name="tokens_per_s",
            words="tokens made a second",
            quantity=Quantity.TOKENS_RATE,
            read=_of_generation(lambda generation: generation.tokens_per_second),
        ),
        Metric(
            name="latency_per_token",
            words="making a token",
            quantity=Quantity.DURATION,
            read=_of_generation(lambda generation: generation.ns_per_token),
        ),
        Metric(
            name="memory_per_token",
            words="allocated for a token",
            quantity=Quantity.SIZE,
            read=_of_generation(lambda generation: generation.bytes_per_token),
        ),
        Metric(
            name="total_allocations",
            words="allocated in all, tensors and heap",
            quantity=Quantity.SIZE,
            read=_total_allocations,
        ),
    )
}
"""All that a target can be set for, by key."""


# A baseline file.


def _measured(name: str, baseline: Measurement) -> Figure:
    """What a baseline file says: it has the main group's figures only."""
    kind = baseline.configuration.steps.partition(":")[0]
    step_ns = baseline.batch_latency_ms.avg * _MILLISECOND_NS
    figures = {
        "throughput": baseline.data_throughput_samples_per_s,
        "step_latency": step_ns,
        "training_step": step_ns if kind == GroupKind.TRAINING.value else None,
        "inference_latency": step_ns
        if kind in {GroupKind.EVALUATION.value, GroupKind.INFERENCE.value}
        else None,
        "data_loading": baseline.phases.data_loading.ms * _MILLISECOND_NS,
        "peak_host_memory": per(baseline.peak_host_memory_gb, 1 / _GIB),
        "peak_gpu_memory": per(baseline.peak_gpu_memory_gb, 1 / _GIB),
    }
    return _known(figures.get(name), "a baseline file does not have it")
