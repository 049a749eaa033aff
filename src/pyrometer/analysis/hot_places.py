"""The places where most time goes, each with what is known of it: what runs there, and what to do about it.

They are the hot call stacks where stacks were sampled, else the hotspots of the steps, else scopes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.call_tree import build_call_tree
from pyrometer.analysis.findings.model import Finding
from pyrometer.analysis.hot_paths import MOST_PATHS, HotPath, PathFrame
from pyrometer.analysis.hotspots import Hotspot, HotspotKind
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import OUTSIDE_PHASES, SampleResults
from pyrometer.analysis.scope_table import ScopeSummary, summarize_tree
from pyrometer.record.run import Run
from pyrometer.record.torch_run import FORWARD_WITHOUT_GRADIENTS

LEAST_SHARE = 0.01
"""From this share on, a place is called hot."""
MOST_PLACES = 10
_MOST_NAMED = 3


class ShareOf(Enum):
    """What a place's share is of."""

    CPU = "the CPU time of all threads"
    STEP = "a step"
    RUN = "the time profiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What was done there: ``python_ns + native_ns`` is the CPU time."""

    python_ns: int
    native_ns: int
    waiting_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HotPlace:
    """Where time goes. ``stack`` is from the outermost function on; empty where none was seen."""

    rank: int
    """From 1, largest share first."""
    name: str
    duration_ns: float
    """CPU time in the run, time in a step, or time of its own in the run, as ``share_of`` says."""
    share: float
    share_of: ShareOf
    margin: float | None
    """Half of the 95 % interval of the share; None where it is no estimate."""
    stack: tuple[PathFrame, ...]
    path: HotPath | None
    split: Split | None
    """None where stacks were not sampled."""
    phases: tuple[tuple[str, float], ...]
    """Those it runs in, each with its part of the place's own time; empty where that is not known."""
    modules: tuple[str, ...]
    """Those it works for, most first."""
    operators: tuple[str, ...]
    """Those with most time in its phase or module, where operators were recorded."""
    findings: tuple[Finding, ...]
    """What was found in the same phase, module or function, by rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotPlaces:
    """The hot places; ``not_shown`` more have a share that counts."""

    places: tuple[HotPlace, ...]
    not_shown: int
    may_be_more: bool
    """Whether the smallest that is known is hot itself, so that others may be as well."""

    @property
    def count(self) -> int:
        """All that are known to be hot."""
        return len(self.places) + self.not_shown


def find_hot_places(observed: Observed, found: Sequence[Finding], *, most: int = MOST_PLACES) -> HotPlaces:
    """The places with most time, each with the findings that concern it."""
    hot = [place for place in _places(observed, found) if place.share >= LEAST_SHARE]
    return HotPlaces(places=tuple(hot[:most]), not_shown=len(hot[most:]), may_be_more=len(hot) >= MOST_PATHS)


def _places(observed: Observed, found: Sequence[Finding]) -> Iterator[HotPlace]:
    samples, torch = observed.samples, observed.torch
    if samples is not None and samples.overall.parts.cpu_ns:
        for rank, path in enumerate(samples.hot_paths.paths, start=1):
            yield _of_path(rank, path, observed, samples, found)
    elif torch is not None and torch.hotspots:
        for hotspot in torch.hotspots:
            yield _of_hotspot(hotspot, observed, found)
    elif observed.run.profiled_ns:
        scopes = summarize_tree(build_call_tree(observed.run))
        largest = sorted(scopes, key=lambda scope: -scope.self_ns)
        for rank, scope in enumerate((one for one in largest if not one.parallel), start=1):
            yield _of_scope(rank, scope, observed.run.profiled_ns)


def _of_path(
    rank: int, path: HotPath, observed: Observed, samples: SampleResults, found: Sequence[Finding]
) -> HotPlace:
    phases = _phases(observed.run, path)
    modules = _modules(observed.run, path)
    functions = {frame.frame.name for frame in path.frames}
    main_phase = _phase_of_steps(phases[0][0]) if phases else None
    return HotPlace(
        rank=rank,
        name=path.frames[-1].frame.name,
        duration_ns=path.cpu_ns,
        share=path.cpu_ns / samples.overall.parts.cpu_ns,
        share_of=ShareOf.CPU,
        margin=None if path.share is None else path.share.interval.margin,
        stack=path.frames,
        path=path,
        split=Split(
            python_ns=path.cpu_ns - path.native_ns, native_ns=path.native_ns, waiting_ns=path.waiting_ns
        ),
        phases=phases,
        modules=modules,
        operators=_operators(observed, main_phase, modules) if main_phase else (),
        findings=_concerning(found, phase=main_phase, modules=modules, functions=functions),
    )


def _of_hotspot(hotspot: Hotspot, observed: Observed, found: Sequence[Finding]) -> HotPlace:
    is_phase = hotspot.kind is HotspotKind.PHASE
    phase = hotspot.name if is_phase else None
    modules = () if is_phase else (hotspot.name,)
    return HotPlace(
        rank=hotspot.rank,
        name=hotspot.name,
        duration_ns=hotspot.ns_per_step,
        share=hotspot.share,
        share_of=ShareOf.STEP,
        margin=None,
        stack=(),
        path=None,
        split=None,
        phases=((hotspot.name, 1.0),) if is_phase else (),
        modules=modules,
        operators=_operators(observed, phase, modules),
        findings=_concerning(found, phase=phase, modules=modules, functions=set()),
    )


def _of_scope(rank: int, scope: ScopeSummary, profiled_ns: int) -> HotPlace:
    return HotPlace(
        rank=rank,
        name=scope.name,
        duration_ns=scope.self_ns,
        share=scope.self_ns / profiled_ns,
        share_of=ShareOf.RUN,
        margin=None,
        stack=(),
        path=None,
        split=None,
        phases=(),
        modules=(),
        operators=(),
        findings=(),
    )


def _phases(run: Run, path: HotPath) -> tuple[tuple[str, float], ...]:
    if run.torch is None or not path.cpu_ns:
        return ()
    summed: dict[str, int] = {}
    for place, cpu_ns in path.places:
        name = OUTSIDE_PHASES if place is None else _top_name(run, place)
        summed[name] = summed.get(name, 0) + cpu_ns
    ordered = sorted(summed.items(), key=lambda entry: -entry[1])
    return tuple((name, cpu_ns / path.cpu_ns) for name, cpu_ns in ordered if cpu_ns)


def _phase_of_steps(name: str) -> str | None:
    """A phase of the calls as the steps have it; None outside any."""
    if name == OUTSIDE_PHASES:
        return None
    return "forward" if name == FORWARD_WITHOUT_GRADIENTS else name


def _top_name(run: Run, place: tuple[int, int]) -> str:
    strand, index = place
    nodes = run.torch.calls[strand].nodes if run.torch is not None else ()
    node = nodes[index]
    while node.parent is not None:
        node = nodes[node.parent]
    return node.name


def _modules(run: Run, path: HotPath) -> tuple[str, ...]:
    if run.torch is None:
        return ()
    names: dict[str, None] = {}
    for place, cpu_ns in path.places:
        if place is not None and cpu_ns:
            node = run.torch.calls[place[0]].nodes[place[1]]
            if node.parent is not None:
                names.setdefault(node.name)
    return tuple(names)[:_MOST_NAMED]


def _operators(observed: Observed, phase: str | None, modules: Sequence[str]) -> tuple[str, ...]:
    """The operators that worked most for the modules and in the phase, as far as these are told."""
    operators = None if observed.torch is None else observed.torch.operators
    if operators is None or not operators.windows:
        return ()
    spent: dict[str, float] = {}
    for row in operators.windows[0].rows:
        for origin in row.origins:
            of_module = not modules or origin.module in modules
            if of_module and (phase is None or origin.phase == phase):
                spent[row.name] = spent.get(row.name, 0.0) + origin.self_ns_per_step
    ordered = sorted(spent, key=lambda name: -spent[name])
    return tuple(name for name in ordered if spent[name])[:_MOST_NAMED]


def _has_module(outer: str, modules: Sequence[str]) -> bool:
    return any(module == outer or module.startswith(f"{outer}.") for module in modules)


def _concerning(
    found: Sequence[Finding], *, phase: str | None, modules: Sequence[str], functions: set[str]
) -> tuple[Finding, ...]:
    return tuple(
        finding
        for finding in found
        if (phase is not None and finding.place.phase == phase)
        or (finding.place.module is not None and _has_module(finding.place.module, modules))
        # A function's place ends with its file and line.
        or (finding.place.function is not None and finding.place.function.partition(" (")[0] in functions)
    )
