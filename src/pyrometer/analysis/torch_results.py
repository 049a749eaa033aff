"""Everything a run says of its PyTorch work, as values for programs and reports."""

from dataclasses import dataclass

from pyrometer.analysis.generation import GenerationResult, build_generations
from pyrometer.analysis.hotspots import Hotspot, Strength, find_hotspots, find_strengths
from pyrometer.analysis.loading import LoaderResult, build_loaders
from pyrometer.analysis.memory import MemoryResult, build_memory
from pyrometer.analysis.modules import ModuleTable, build_modules
from pyrometer.analysis.operators import OperatorResults, build_operators
from pyrometer.analysis.steps import GroupResult, PhaseFigures, build_groups, main_group
from pyrometer.analysis.torch_roofline import Roofline, build_roofline
from pyrometer.record.run import Run
from pyrometer.record.torch_run import Compilation, Gpu
from pyrometer.stats.rates import per


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchHeadline:
    """The main group in one line."""

    step_ns: float
    """Steady mean."""
    samples_per_second: float | None
    tokens_per_second: float | None
    peak_host_bytes: int | None
    peak_gpu_bytes: int | None
    """None: no GPU, or not measured."""
    biggest_phase: PhaseFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchResults:
    """The PyTorch work of a run."""

    torch_version: str
    intra_op_threads: int | None
    window: tuple[int, int | None] | None
    """The steps that were recorded (first, first not), if the user chose some."""
    groups: tuple[GroupResult, ...]
    """In the order of the record."""
    main: GroupResult | None
    """The group the headline and the hotspots are about; None without steps."""
    headline: TorchHeadline | None
    hotspots: tuple[Hotspot, ...]
    strengths: tuple[Strength, ...]
    modules: ModuleTable
    roofline: Roofline | None
    """None where the limits of the machine are not known, or no module was called."""
    loaders: tuple[LoaderResult, ...]
    generations: tuple[GenerationResult, ...]
    compilation: Compilation | None
    operators: OperatorResults | None
    """None: not asked for."""
    gpu: Gpu | None
    """None: no GPU."""

    def device_ns_per_step(self, phase: str) -> float | None:
        """What a phase took on the GPU in one step, warm-up too.

        None where it was not timed, or where several groups of steps shared the GPU: the record has
        the time on it by phase only.
        """
        if self.gpu is None or self.main is None or len(self.groups) > 1:
            return None
        return per(self.gpu.phase_device_ns.get(phase), self.main.steps)


def build_torch_results(run: Run) -> TorchResults | None:
    """What a run says of its PyTorch work; None if there was none."""
    if run.torch is None:
        return None
    torch = run.torch
    groups = build_groups(torch)
    main = main_group(groups)
    modules = build_modules(torch)
    loaders = build_loaders(torch.loaders, torch.groups)
    generations = build_generations(torch.generations)
    operators = build_operators(torch.operators, groups)
    return TorchResults(
        torch_version=torch.torch_version,
        intra_op_threads=torch.intra_op_threads,
        window=torch.window,
        groups=groups,
        main=main,
        headline=None if main is None else _build_headline(run, main),
        hotspots=find_hotspots(main, modules),
        strengths=find_strengths(main, groups, loaders, generations),
        modules=modules,
        roofline=build_roofline(run.limits, torch, modules, main, operators),
        loaders=loaders,
        generations=generations,
        compilation=torch.compilation,
        operators=operators,
        gpu=torch.gpu,
    )


def build_memory_results(run: Run, main: GroupResult | None) -> MemoryResult | None:
    """The memory of a run, its growth after the warm-up of the main group."""
    if run.memory is None:
        return None
    if main is None:
        return build_memory(run.memory)
    return build_memory(run.memory, steady_from_ns=main.steady_from_ns, step_ns=main.steady.mean_ns)


def _build_headline(run: Run, main: GroupResult) -> TorchHeadline:
    gpu = None if run.torch is None else run.torch.gpu
    return TorchHeadline(
        step_ns=main.steady.mean_ns,
        samples_per_second=main.steady.samples_per_second,
        tokens_per_second=main.steady.tokens_per_second,
        peak_host_bytes=None if run.memory is None else run.memory.peak_bytes,
        peak_gpu_bytes=None if gpu is None else gpu.peak_bytes,
        biggest_phase=main.biggest_phase,
    )
