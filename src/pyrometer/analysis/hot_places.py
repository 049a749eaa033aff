"""The places where most time goes, each with what is known of it: what runs there, and what to do about it.

They are the hot call stacks where stacks were sampled, else the hotspots of the steps, else scopes.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from pyrometer.analysis.findings.model import Finding, Place
from pyrometer.analysis.hot_paths import MOST_PATHS, HotPath, PathFrame
from pyrometer.analysis.hotspots import Hotspot, HotspotKind
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import OUTSIDE_PHASES, SampleResults
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.analysis.steps import GroupResult
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
    """Whether the last call stack that is known is hot itself, so that others may be as well."""

    @property
    def count(self) -> int:
        """All that are known to be hot."""
        return len(self.places) + self.not_shown


def find_hot_places(observed: Observed, found: Sequence[Finding], *, most: int = MOST_PLACES) -> HotPlaces:
    """The places with most time, each with the findings that concern it."""
    samples, torch = observed.samples, observed.torch
    if samples is not None and samples.overall.parts.cpu_ns:
        paths = [path for path in samples.hot_paths.paths if _share(path, samples) >= LEAST_SHARE]
        places = (_of_path(rank, path, observed, samples, found) for rank, path in enumerate(paths, start=1))
        # Of stacks only so many are known; hotspots and scopes are all there are.
        return _first(places, most, known=len(paths), may_be_more=len(paths) >= MOST_PATHS)
    if torch is not None and torch.hotspots:
        hotspots = [hotspot for hotspot in torch.hotspots if hotspot.share >= LEAST_SHARE]
        return _first((_of_hotspot(one, observed, found) for one in hotspots), most, known=len(hotspots))
    scopes = _hot_scopes(observed)
    profiled_ns = observed.run.profiled_ns
    of_scopes = (_of_scope(rank, scope, profiled_ns) for rank, scope in enumerate(scopes, start=1))
    return _first(of_scopes, most, known=len(scopes))


def _first(places: Iterator[HotPlace], most: int, *, known: int, may_be_more: bool = False) -> HotPlaces:
    shown = tuple(islice(places, most))
    return HotPlaces(places=shown, not_shown=known - len(shown), may_be_more=may_be_more)


def _share(path: HotPath, samples: SampleResults) -> float:
    return path.cpu_ns / samples.overall.parts.cpu_ns


def _hot_scopes(observed: Observed) -> list[ScopeSummary]:
    profiled_ns = observed.run.profiled_ns
    if not profiled_ns:
        return []
    hot = (
        scope
        for scope in observed.scopes
        if not scope.parallel and scope.self_ns / profiled_ns >= LEAST_SHARE
    )
    return sorted(hot, key=lambda scope: -scope.self_ns)


def _of_path(
    rank: int, path: HotPath, observed: Observed, samples: SampleResults, found: Sequence[Finding]
) -> HotPlace:
    phases = _phases(observed.run, path)
    modules = _modules(observed.run, path)
    main_phase = _phase_of_steps(phases[0][0]) if phases else None
    concerned = _Concerned(
        phase=main_phase,
        groups=_groups_with(phases[0][0], observed) if phases else (),
        modules=modules,
        functions={f"{frame.frame.name} ({frame.frame.file}" for frame in path.frames},
    )
    return HotPlace(
        rank=rank,
        name=path.frames[-1].frame.name,
        duration_ns=path.cpu_ns,
        share=_share(path, samples),
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
        findings=concerned.by(found),
    )


def _of_hotspot(hotspot: Hotspot, observed: Observed, found: Sequence[Finding]) -> HotPlace:
    is_phase = hotspot.kind is HotspotKind.PHASE
    phase = hotspot.name if is_phase else None
    modules = () if is_phase else (hotspot.name,)
    main = None if observed.torch is None else observed.torch.main
    concerned = _Concerned(
        phase=phase, groups=() if main is None else (main.label,), modules=modules, functions=()
    )
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
        findings=concerned.by(found),
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


def _groups_with(phase: str, observed: Observed) -> tuple[str, ...]:
    """The groups of steps in which a phase of the calls can be; the calls do not say in which it was."""
    groups = () if observed.torch is None else observed.torch.groups
    return tuple(group.label for group in groups if _can_have(group, phase))


def _can_have(group: GroupResult, phase: str) -> bool:
    if phase == FORWARD_WITHOUT_GRADIENTS:
        return group.grad_forward_share != 1
    return phase != "forward" or group.grad_forward_share != 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Concerned:
    """What a place is made of, for findings to be about."""

    phase: str | None
    groups: tuple[str, ...]
    """Those of the steps that the phase may be in."""
    modules: tuple[str, ...]
    functions: Collection[str]
    """As a finding names them, without the line."""

    def by(self, found: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings about it."""
        return tuple(finding for finding in found if self._is_at(finding.place))

    def _is_at(self, place: Place) -> bool:
        if place.function is not None and place.function.rpartition(":")[0] in self.functions:
            return True
        if place.module is not None and _has_module(place.module, self.modules):
            return True
        of_its_steps = place.group is None or place.group in self.groups
        return self.phase is not None and place.phase == self.phase and of_its_steps
