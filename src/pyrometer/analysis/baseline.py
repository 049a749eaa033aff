"""The baseline of a program: what a steady batch takes, batch by batch, to compare later runs with.

A baseline describes one or more configurations of a program, one run each. Its file is read with a
plain ``json.load``, so each figure stands under a name that has its unit: times in milliseconds,
memory in GiB (``_gb``), shares in percent. What was not measured is null, never 0.
"""

import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from pyrometer.analysis.hotspots import Hotspot
from pyrometer.analysis.identity import identity_of, known_facts
from pyrometer.analysis.steps import GroupResult, fold_phases, folded_name
from pyrometer.analysis.torch_results import TorchResults, build_memory_results, build_torch_results
from pyrometer.errors import UsageError
from pyrometer.record.run import Memory, Program, Run
from pyrometer.record.torch_run import TorchRun
from pyrometer.record.values import Count
from pyrometer.stats.rates import per_second

BASELINE_FORMAT: Literal["pyrometer-baseline"] = "pyrometer-baseline"
BASELINE_VERSION: Literal[1] = 1

_DEFAULT_SAMPLES_PER_S = 100
_MILLISECOND_NS = 1_000_000
_GIB = 1 << 30

Measured = Annotated[float, msgspec.Meta(ge=0)]
Part = TypeVar("Part")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file; every key is always there."""


class Spread(Figures, frozen=True, kw_only=True):
    """A figure over the batches."""

    min: Measured
    avg: Measured
    max: Measured


class Latency(Figures, frozen=True, kw_only=True):
    """The time of a batch, in milliseconds."""

    min: Measured
    avg: Measured
    p50: Measured
    p95: Measured
    max: Measured


class PhaseShare(Figures, frozen=True, kw_only=True):
    """A phase of the average batch."""

    ms: Measured
    percent: Measured
    """Of the batch; the five phases make 100."""


class Phases(Figures, Generic[Part], frozen=True, kw_only=True):
    """The five phases of a batch, which exclude each other and make up all of it.

    Copies count as data loading, the loss as forward, clearing and clipping of gradients as
    optimizer, and what the program named itself as other.
    """

    data_loading: Part
    forward: Part
    backward: Part
    optimizer: Part
    other: Part


class Batch(Figures, frozen=True, kw_only=True):
    """One batch: one step of the program's main group of steps."""

    index: Count
    """Of the step, counted over the whole run from 0."""
    latency_ms: Measured
    phases_ms: Phases[Measured]
    samples_per_s: Measured | None
    host_memory_gb: Measured | None
    """The last value read before the batch ended."""


class Aggregates(Figures, frozen=True, kw_only=True):
    """Each per-batch figure over all batches after the warm-up.

    Averages are exact. So are ``min`` and ``max`` unless the run was too long to keep every batch:
    then those of the phases, the rate and the memory are over the batches in ``per_batch``.
    """

    latency_ms: Spread
    phases_ms: Phases[Spread]
    samples_per_s: Spread | None
    host_memory_gb: Spread | None


class Ranked(Figures, frozen=True, kw_only=True):
    """A hotspot: where the time of a batch goes."""

    rank: Count
    kind: str
    """``phase`` or ``module``; a module's time is part of its phases' time."""
    name: str
    ms: Measured
    percent: Measured
    priority: str
    """``HIGH`` from 30 %, ``MEDIUM`` from 10 %, else ``LOW``."""
    likely_causes: tuple[str, ...]
    to_try: tuple[str, ...]


class Configuration(Figures, frozen=True, kw_only=True):
    """What was run."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    commit: str | None
    """Of the program's source; with ``+`` behind it when that had changes."""
    steps: str
    """What the batches are: ``training: Adam``."""
    batch_size: Count | None
    """Samples in most of the batches."""
    batches: Count
    """After the warm-up."""
    loader_batches_per_step: Measured
    """Above 1 where gradients are accumulated: then a batch here is all of one optimizer step."""
    parameters: Count | None
    threads: Count | None
    """Those torch may use inside an operator."""


class System(Figures, frozen=True, kw_only=True):
    """The machine and the software."""

    system: str
    architecture: str
    cpu_model: str | None
    physical_cores: Count | None
    logical_cores: Count | None
    usable_cores: Count | None
    memory_gb: Measured | None
    gpu: str | None
    """None: no GPU."""
    python_version: str
    torch_version: str | None
    """None: not used."""
    pyrometer_version: str
    packages: dict[str, str]


class Measurement(Figures, frozen=True, kw_only=True):
    """One configuration, as one run measured it."""

    timestamp: str
    """When the run began: ISO 8601 with the offset to UTC."""
    configuration: Configuration
    system: System
    batch_latency_ms: Latency
    data_throughput_samples_per_s: Measured | None
    data_throughput_batches_per_s: Measured | None
    gpu_util_avg_percent: Measured | None
    current_gpu_memory_gb: Measured | None
    peak_gpu_memory_gb: Measured | None
    current_host_memory_gb: Measured | None
    """At the end of the run."""
    peak_host_memory_gb: Measured | None
    phases: Phases[PhaseShare]
    warmup_batches: Count
    """Left out of all figures."""
    aggregates: Aggregates
    per_batch: tuple[Batch, ...]
    """Every batch after the warm-up; of a long run the first ones, and a random choice of the rest."""
    hotspots: tuple[Ranked, ...]
    commands: tuple[str, ...]
    """What to type, in the working directory, to measure it again."""
    identity: dict[str, str | None] | None = None
    """What the run was a run of, fact by fact; a fact that was not recorded is null."""


class Baseline(Measurement, frozen=True, kw_only=True):
    """The file: the first configuration's figures at the top, and those of each in ``configurations``."""

    format: Literal["pyrometer-baseline"] = BASELINE_FORMAT
    version: Literal[1] = BASELINE_VERSION
    configurations: dict[str, Measurement]
    """By program and arguments, in the order they were first measured."""


def measure(run: Run, *, file_name: str, results: TorchResults | None = None) -> Measurement:
    """The configuration a run measured; ``file_name`` is the baseline's, for the commands.

    ``results`` spares working them out from the run again.
    """
    if results is None:
        results = build_torch_results(run)
    if results is None or results.main is None:
        raise UsageError(
            f"there is no baseline of {run.program.name}: no step of a PyTorch program was recorded in it"
        )
    group, gpu = results.main, results.gpu
    memory = build_memory_results(run, group)
    batches = tuple(_batches(group, run.memory))
    steady = group.steady
    return Measurement(
        timestamp=run.started_at,
        configuration=_configuration(run, results, group),
        system=system_of(run),
        batch_latency_ms=Latency(
            min=_ms(steady.min_ns),
            avg=_ms(steady.mean_ns),
            p50=_ms(steady.p50_ns),
            p95=_ms(steady.p95_ns),
            max=_ms(steady.max_ns),
        ),
        data_throughput_samples_per_s=steady.samples_per_second,
        data_throughput_batches_per_s=steady.batches_per_second or steady.steps_per_second,
        gpu_util_avg_percent=None if gpu is None else gpu.utilisation_percent,
        current_gpu_memory_gb=None if gpu is None else gb(gpu.current_bytes),
        peak_gpu_memory_gb=None if gpu is None else gb(gpu.peak_bytes),
        current_host_memory_gb=None if memory is None else gb(memory.last_bytes),
        peak_host_memory_gb=None if memory is None else gb(memory.peak_bytes),
        phases=Phases(
            **{
                _KEYS[phase.name]: PhaseShare(ms=_ms(phase.mean_ns), percent=100 * phase.share)
                for phase in fold_phases(group.phases)
            }
        ),
        warmup_batches=group.warmup.steps,
        aggregates=_aggregates(group, batches),
        per_batch=batches,
        hotspots=tuple(_ranked(hotspot) for hotspot in results.hotspots),
        commands=(command_of(run, file_name=file_name),),
        identity=known_facts(identity_of(run)),
    )


def add_measurements(known: Baseline | None, measured: Sequence[tuple[Program, Measurement]]) -> Baseline:
    """The baseline with these configurations; one of the same program and arguments is replaced."""
    configurations = {} if known is None else dict(known.configurations)
    configurations |= {key_of(program): measurement for program, measurement in measured}
    return baseline_of(configurations)


def baseline_of(configurations: dict[str, Measurement]) -> Baseline:
    """The baseline of one or more configurations."""
    first = next(iter(configurations.values()))
    fields = {name: getattr(first, name) for name in Measurement.__struct_fields__}
    return Baseline(**fields, configurations=configurations)


def key_of(program: Program) -> str:
    """What tells configurations apart: the program and its arguments, as they are typed."""
    script, *arguments = program.argv or (program.name,)
    # A module stands as one word, "-m name".
    is_module = script.startswith("-m ")
    named = f"-m {shlex.quote(script.removeprefix('-m '))}" if is_module else shlex.quote(script)
    return " ".join([named, *map(shlex.quote, arguments)])


def commit_of(program: Program) -> str | None:
    """The commit of the program's source, with ``+`` behind it when that had changes."""
    return None if program.git is None else program.git.commit + ("+" if program.git.dirty else "")


def system_of(run: Run) -> System:
    """The machine and the software of a run."""
    machine = run.machine
    gpu = None if run.torch is None else run.torch.gpu
    return System(
        system=machine.system,
        architecture=machine.architecture,
        cpu_model=machine.cpu_model,
        physical_cores=machine.physical_cores,
        logical_cores=machine.logical_cores,
        usable_cores=machine.usable_cores,
        memory_gb=gb(machine.memory_bytes),
        gpu=None if gpu is None else gpu.name,
        python_version=run.software.python_version,
        torch_version=None if run.torch is None else run.torch.torch_version,
        pyrometer_version=run.pyrometer_version,
        packages=run.software.packages,
    )


def command_of(run: Run, *, file_name: str) -> str:
    """What to type to measure the same again."""
    options = ["--baseline", shlex.quote(file_name), *recording_options(run)]
    return f"pyrometer run {' '.join(options)} {key_of(run.program)}"


def recording_options(run: Run) -> list[str]:
    """The options that decide which steps the figures are of, and what was watched meanwhile."""
    return [*_step_options(run.torch), *_watching_options(run)]


def _step_options(torch: TorchRun | None) -> Iterator[str]:
    if torch is None:
        return
    if torch.warmup is not None:
        yield f"--warmup {torch.warmup}"
    if torch.window is not None:
        first, end = torch.window
        yield f"--steps {first}:{'' if end is None else end}"
    if torch.max_steps is not None:
        yield f"--max-steps {torch.max_steps}"


def _watching_options(run: Run) -> Iterator[str]:
    """What ``watched_in`` tells, as it is asked for, and as it is turned off."""
    samples, counters = run.samples, run.counters
    if run.torch is not None and run.torch.operators is not None:
        yield f"--ops {run.torch.operators.asked_steps}"
    if samples is not None and samples.samples_per_s != _DEFAULT_SAMPLES_PER_S:
        yield f"--sample-hz {samples.samples_per_s:g}"
    if samples is not None and samples.native_functions:
        yield "--native"
    if samples is None and _was_turned_off(run, "sampler"):
        yield "--sample-hz 0"
    if run.allocations is not None and run.allocations.python_bytes is not None:
        yield "--python-memory"
    if run.allocations is None and _was_turned_off(run, "memory"):
        yield "--no-memory"
    if counters is not None and counters.hardware is not None:
        yield "--counters"
    elif counters is not None and counters.simulated is not None:
        scope = counters.simulated.scope
        yield "--cachegrind" if scope is None else f"--cachegrind-scope {shlex.quote(scope)}"


def _was_turned_off(run: Run, collector: str) -> bool:
    """Whether what this collector did not leave was not wanted.

    Where it was not possible, a loss says so. An older Pyrometer did not know of it, and under valgrind it
    is never on: such runs have no garbage collections either, which no option turns off.
    """
    return run.garbage is not None and all(loss.collector != collector for loss in run.losses)


_KEYS = {
    "data": "data_loading",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "other": "other",
}
"""The folded phases, and what they are called in the file."""


def _batches(group: GroupResult, memory: Memory | None) -> Iterator[Batch]:
    names = [_KEYS[folded_name(phase.name)] for phase in group.phases]
    read_ns = [] if memory is None else [at_ns for at_ns, _ in memory.series]
    for step in group.series[group.warmup.steps :]:
        phase_ns = dict.fromkeys(_KEYS.values(), 0)
        for name, spent_ns in zip(names, step.phase_ns, strict=True):
            phase_ns[name] += spent_ns
        read = bisect_right(read_ns, step.started_ns + step.duration_ns) - 1
        yield Batch(
            index=step.index,
            latency_ms=_ms(step.duration_ns),
            phases_ms=Phases(**{name: _ms(spent_ns) for name, spent_ns in phase_ns.items()}),
            samples_per_s=per_second(step.samples, step.duration_ns),
            host_memory_gb=None if memory is None or read < 0 else gb(memory.series[read][1]),
        )


def _aggregates(group: GroupResult, batches: Sequence[Batch]) -> Aggregates:
    steady = group.steady
    rates = [batch.samples_per_s for batch in batches if batch.samples_per_s is not None]
    memory = [batch.host_memory_gb for batch in batches if batch.host_memory_gb is not None]
    phases = {}
    for phase in fold_phases(group.phases):
        name = _KEYS[phase.name]
        phases[name] = _spread([getattr(batch.phases_ms, name) for batch in batches], avg=_ms(phase.mean_ns))
    return Aggregates(
        latency_ms=Spread(min=_ms(steady.min_ns), avg=_ms(steady.mean_ns), max=_ms(steady.max_ns)),
        phases_ms=Phases(**phases),
        samples_per_s=_spread(rates, avg=steady.samples_per_second) if rates else None,
        host_memory_gb=_spread(memory) if memory else None,
    )


def _spread(values: Sequence[float], *, avg: float | None = None) -> Spread:
    mean = sum(values) / len(values) if avg is None else avg
    # Of a run too long to keep all of it, the mean of all may lie outside the values kept.
    return Spread(min=min([*values, mean]), avg=mean, max=max([*values, mean]))


def _configuration(run: Run, results: TorchResults, group: GroupResult) -> Configuration:
    sizes = Counter(step.samples for step in group.series if step.samples is not None)
    return Configuration(
        name=run.program.name,
        argv=run.program.argv,
        working_directory=run.program.working_directory,
        commit=commit_of(run.program),
        steps=f"{group.nature.kind.value}: {group.label}",
        batch_size=sizes.most_common(1)[0][0] if sizes else None,
        batches=group.steady.steps,
        loader_batches_per_step=group.batches_per_step,
        parameters=results.modules.parameters,
        threads=results.intra_op_threads,
    )


def _ranked(hotspot: Hotspot) -> Ranked:
    return Ranked(
        rank=hotspot.rank,
        kind=hotspot.kind.value,
        name=hotspot.name,
        ms=_ms(hotspot.ns_per_step),
        percent=100 * hotspot.share,
        priority=hotspot.priority.value,
        likely_causes=hotspot.causes,
        to_try=hotspot.to_try,
    )


def _ms(duration_ns: float) -> float:
    return duration_ns / _MILLISECOND_NS


def gb(size_bytes: int | None) -> float | None:
    """A size in GiB."""
    return None if size_bytes is None else size_bytes / _GIB
