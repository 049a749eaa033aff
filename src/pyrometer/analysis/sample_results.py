"""Everything that stack samples say, as values for programs and reports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyrometer.analysis.frame_tree import (
    NOTHING,
    FrameTree,
    Parts,
    Stacks,
    build_frame_tree,
    read_stacks,
)
from pyrometer.analysis.hot_paths import (
    Depths,
    HotPaths,
    NativeShare,
    WideFrame,
    find_depths,
    find_hot_paths,
    find_natives,
    find_wide_frames,
)
from pyrometer.analysis.outside_phases import OutsideCall, find_outside_calls
from pyrometer.analysis.sampled_functions import (
    Measure,
    SampledFunction,
    SampledLine,
    is_outside,
    sum_functions,
)
from pyrometer.record.run import Run
from pyrometer.record.samples import Observation, StackSamples
from pyrometer.record.values import Strand
from pyrometer.stats.shares import effective_samples

OUTSIDE_PHASES = "outside any phase"
OUTSIDE_SCOPES = "outside any scope"
OUTSIDE_MODULES = "in no module"
# Intervals from half to one and a half of the one asked for, each as likely.
_INTERVAL_SPREAD = 1 / 12

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSplit:
    """What was done by a thread, in a phase, or in all: ran Python, ran native code, or waited."""

    name: str
    parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResults:
    """What the samples of a run say.

    All shares are of the CPU time of all threads that were looked at.
    """

    samples_per_s: float
    samples: int
    dropped: int
    sampler_cpu_ns: int
    profiler: Parts
    """On the program's threads, inside the profiler's own code; in no other figure here."""
    effective_samples: float
    """So many samples of equal weight, of threads that ran, would say as much."""
    overall: TimeSplit
    threads: tuple[TimeSplit, ...]
    """Most CPU time first; they add up to ``overall``, as do the next three where they are not empty."""
    phases: tuple[TimeSplit, ...]
    """By phase of a PyTorch program; empty without."""
    modules: tuple[TimeSplit, ...]
    """By the innermost module of it; empty without."""
    scopes: tuple[TimeSplit, ...]
    """By the program's innermost scope; empty without."""
    outside_phases: tuple[OutsideCall, ...]
    """What adds up to the part of ``phases`` that is in none; empty without any."""
    functions: tuple[SampledFunction, ...]
    """Most CPU time of its own first; their ``own`` add up to ``overall``, as do those of ``lines``."""
    lines: tuple[SampledLine, ...]
    hot_paths: HotPaths
    natives: tuple[NativeShare, ...]
    """All native code by function, most CPU time first; empty unless ``--native`` asked for names."""
    wide_frames: tuple[WideFrame, ...]
    depths: Depths | None
    outside: tuple[SampledFunction, ...]
    """Functions that are not the program's own and take more than 5 % of the CPU time themselves."""
    tree: FrameTree
    recorded: StackSamples
    """All of it one by one, as far as it is the program's."""


def build_sample_results(run: Run) -> SampleResults | None:
    """What a run's samples say; None when none were taken."""
    samples = run.samples
    if samples is None:
        return None
    stacks = read_stacks(run.program, samples)
    samples = stacks.samples
    overall = sum(stacks.own, NOTHING)
    running = ((seen.samples - seen.waiting, seen.cpu_ns) for seen in samples.observations)
    measure = Measure(cpu_ns=overall.cpu_ns, samples=effective_samples(running, spread=_INTERVAL_SPREAD))
    functions, lines = sum_functions(stacks, run.program, measure)
    phases = _phases(run, stacks)
    tree = build_frame_tree(stacks)
    return SampleResults(
        samples_per_s=samples.samples_per_s,
        samples=samples.samples,
        dropped=samples.dropped,
        sampler_cpu_ns=samples.sampler_cpu_ns,
        profiler=stacks.profiler,
        effective_samples=measure.samples,
        overall=TimeSplit(name="all threads", parts=overall),
        threads=_split(stacks, lambda seen: seen.thread, lambda thread: samples.threads[thread]),
        phases=phases,
        modules=_modules(run, stacks),
        scopes=_scopes(run, stacks),
        outside_phases=find_outside_calls(stacks) if phases else (),
        functions=functions,
        lines=lines,
        hot_paths=find_hot_paths(stacks, measure),
        natives=find_natives(tree, measure),
        wide_frames=find_wide_frames(tree, measure),
        depths=find_depths(tree),
        outside=tuple(filter(is_outside, functions)),
        tree=tree,
        recorded=samples,
    )


def find_phases(run: Run, samples: StackSamples) -> dict[tuple[int, int], str]:
    """The phase of each place in torch's calls that was met: the outermost call around it."""
    if run.torch is None:
        return {}
    met = {seen.call for seen in samples.observations if seen.call is not None}
    tops = {strand: _top_names(run.torch.calls[strand]) for strand in {place[0] for place in met}}
    return {place: tops[place[0]][place[1]] for place in met}


def _top_names(strand: Strand) -> list[str]:
    names: list[str] = []
    for node in strand.nodes:
        names.append(node.name if node.parent is None else names[node.parent])
    return names


def _phases(run: Run, stacks: Stacks) -> tuple[TimeSplit, ...]:
    phases = find_phases(run, stacks.samples)
    if not phases:
        return ()
    return _split(stacks, lambda seen: OUTSIDE_PHASES if seen.call is None else phases[seen.call], str)


def _modules(run: Run, stacks: Stacks) -> tuple[TimeSplit, ...]:
    calls = () if run.torch is None else run.torch.calls

    def module_of(seen: Observation) -> str:
        node = None if seen.call is None else calls[seen.call[0]].nodes[seen.call[1]]
        return OUTSIDE_MODULES if node is None or node.parent is None else node.name

    return _unless_all_outside(_split(stacks, module_of, str), OUTSIDE_MODULES)


def _scopes(run: Run, stacks: Stacks) -> tuple[TimeSplit, ...]:
    def scope_of(seen: Observation) -> str:
        if seen.scope is None:
            return OUTSIDE_SCOPES
        strand, node = seen.scope
        return run.strands[strand].nodes[node].name

    return _unless_all_outside(_split(stacks, scope_of, str), OUTSIDE_SCOPES)


def _unless_all_outside(splits: tuple[TimeSplit, ...], outside: str) -> tuple[TimeSplit, ...]:
    return () if [split.name for split in splits] == [outside] else splits


def _split(
    stacks: Stacks, key_of: Callable[[Observation], _Key], name_of: Callable[[_Key], str]
) -> tuple[TimeSplit, ...]:
    summed: dict[_Key, Parts] = {}
    for seen, parts in zip(stacks.samples.observations, stacks.seen, strict=True):
        key = key_of(seen)
        summed[key] = summed.get(key, NOTHING) + parts
    splits = [TimeSplit(name=name_of(key), parts=parts) for key, parts in summed.items()]
    return tuple(sorted(splits, key=lambda split: (-split.parts.cpu_ns, -split.parts.wall_ns)))
