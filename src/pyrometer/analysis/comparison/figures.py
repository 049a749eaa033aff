"""The parts of one run that are compared: how long each took by itself, a step where there are steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.model import PartsKind
from pyrometer.analysis.module_calls import per_step_of
from pyrometer.analysis.modules import ModulePlace
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.operators import OperatorTable
from pyrometer.analysis.steps import GroupResult
from pyrometer.record.torch_run import (
    FORWARD_WITHOUT_GRADIENTS,
    OTHER,
    PHASES,
    RECOMPUTED_FORWARD,
    Step,
    TorchRun,
)
from pyrometer.stats.rates import per
from pyrometer.stats.weighted import weighted_median

_FORWARD = frozenset({"forward", FORWARD_WITHOUT_GRADIENTS})


class Places:
    """The places of one table, over all runs: the same path is the same place in all of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[Place | None, str, bool], Place] = {}

    def at(self, outer: Place | None, name: str, *, beside: bool = False) -> Place:
        """The place of that name below another one; ``beside`` of one that hangs there by a thread."""
        key = (outer, name, beside)
        if key not in self._known:
            self._known[key] = Place(name=name, outer=outer)
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """One part in one run."""

    own_ns: float
    """Without parts below."""
    judged_ns: float | None = None
    """What is judged in its place: the median over steps, where single ones are known."""
    total_ns: float | None = None
    calls: float | None = None
    ns_per_call: float | None = None
    allocated_bytes: float | None = None
    is_part: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The parts of one run; their ``own_ns`` are ``whole_ns``, or less."""

    kind: PartsKind
    whole_ns: float
    judged_whole_ns: float | None
    parts: dict[Place, PartFigures]
    steps: int | None
    """Over which figures are averaged; None: the whole run."""
    with_warmup: bool


def steady_median(recorded: TorchRun, main: GroupResult, figure: Callable[[Step], float]) -> float:
    """A figure's median over the steady steps that were kept one by one, each for as many as it stands for.

    In a long run those are the first few hundred and a choice of the many later ones: without weights
    it would be told by how the run began.
    """
    [group] = [group for group in recorded.groups if group.label == main.label]
    later = per(group.steps - len(group.first), len(group.sampled)) or 1.0
    kept = [
        *((figure(step), 1.0) for step in group.first),
        *((figure(step), later) for step in group.sampled),
    ]
    return weighted_median(kept[min(main.warmup.steps, len(kept) - 1) :])


def phases_of(observed: Observed, places: Places) -> RunParts | None:
    """The phases of the steady steps, which are the step exactly; None without steps."""
    main, recorded = None if observed.torch is None else observed.torch.main, observed.run.torch
    if main is None or recorded is None:
        return None
    parts = {
        places.at(None, phase.name): PartFigures(
            own_ns=phase.mean_ns,
            judged_ns=steady_median(recorded, main, partial(_phase_ns, index=index)),
            total_ns=phase.mean_ns,
            allocated_bytes=phase.allocated_bytes_per_step,
        )
        for index, phase in enumerate(main.phases)
    }
    return RunParts(
        kind=PartsKind.PHASES,
        whole_ns=main.steady.mean_ns,
        judged_whole_ns=steady_median(recorded, main, lambda step: step.duration_ns),
        parts=parts,
        steps=main.steady.steps,
        with_warmup=False,
    )


def _phase_ns(step: Step, *, index: int) -> int:
    return step.phase_ns[index]


def modules_of(observed: Observed, places: Places) -> RunParts | None:
    """Each module at each place it is called from; None without modules or steps.

    All calls of the run are counted, for each step of the main group: of evaluation, or of a forward
    pass beside the steps, too. Else what a program begins to do beside them would change nothing.
    """
    torch = observed.torch
    if torch is None or torch.main is None or observed.run.torch is None or not torch.modules.rows:
        return None
    scale = per_step_of(observed.run.torch)
    a_step = _AStep(
        called_steps=_called_steps(observed.run.torch, torch.main),
        backward_ns=scale.backward_ns * scale.steps / torch.main.steps,
    )
    modules = _placed_modules(torch.modules.walk(), places)
    return RunParts(
        kind=PartsKind.MODULES,
        whole_ns=all_steps_ns(torch.groups, torch.main),
        judged_whole_ns=None,
        parts={place: a_step.figures(module) for place, module in modules},
        steps=torch.main.steps,
        with_warmup=True,
    )


def calls_are_about_right(observed: Observed) -> bool:
    """Whether calls of modules and scopes a step are no exact counts.

    They are counted in steps that looking at operators slowed, too. How many those are is known of all
    kinds of steps together, and not of each.
    """
    torch = observed.run.torch
    if torch is None or torch.operators is None or not torch.operators.left_out_steps:
        return False
    return sum(1 for group in torch.groups if group.steps) > 1


def lengths_differ(runs: Sequence[Observed]) -> bool:
    """Whether the runs are of different numbers of steps, or one of them did not come to its end."""
    steps = {None if (run.torch is None or run.torch.main is None) else run.torch.main.steps for run in runs}
    return len(steps) > 1 or any(run.run.outcome.status != "finished" for run in runs)


def lengths_mix_calls(runs: Sequence[Observed]) -> bool:
    """Whether calls for each step differ by how long the runs were, and not only by what a step does.

    What is called once, before or after the steps, or in a last one that was cut off, is shared out to few
    steps or many.
    """
    return lengths_differ(runs) and any(_has_calls_beside_steps(run) for run in runs)


def _has_calls_beside_steps(observed: Observed) -> bool:
    torch = observed.run.torch
    if torch is None:
        return False
    scale = per_step_of(torch)
    # Steps that looking at operators slowed are in no group, and what they call is counted.
    a_step = scale.called_steps / scale.steps if scale.steps else 1.0
    forward = sum(group.forward_calls for group in torch.groups) * a_step
    backward = sum(group.backward_passes for group in torch.groups) * a_step
    return root_calls(torch) > forward or torch.backward_passes > backward


def root_calls(torch: TorchRun) -> int:
    """How often the program called a module that is no loss; not what modules and backward passes call."""
    modules = {module.name for module in torch.modules}
    phases = {OTHER, *PHASES, *_FORWARD, RECOMPUTED_FORWARD}
    phases.update(name for group in torch.groups for name in group.phases)
    calls = 0
    for strand in torch.calls:
        if strand.parent is not None:
            continue  # threads that a module or a phase has started work for it
        is_phase: list[bool] = []
        for node in strand.nodes:
            outer = node.parent
            # A phase that the program names inside a module is part of the module.
            is_phase.append(
                outer is None or (is_phase[outer] and node.name in phases and node.name not in modules)
            )
            if not is_phase[-1] and outer is not None and is_phase[outer]:
                calls += (node.calls + node.open_calls) * (strand.nodes[outer].name in _FORWARD)
    return calls


def all_steps_ns(groups: Sequence[GroupResult], main: GroupResult) -> float:
    """The time of the steps of all kinds, for each of the main group."""
    return sum(group.total_ns for group in groups) / main.steps


def _placed_modules(
    walk: Iterable[tuple[int, ModulePlace]], places: Places
) -> Iterator[tuple[Place, ModulePlace]]:
    around: list[Place] = []
    for depth, module in walk:
        del around[depth:]
        around.append(places.at(around[-1] if around else None, module.name))
        yield around[-1], module


@dataclass(frozen=True, slots=True, kw_only=True)
class _AStep:
    """How the calls of modules over a whole run are shared out to the steps of its main group."""

    called_steps: int
    backward_ns: float
    """What a step has of its backward phase, for each nanosecond of the timed passes."""

    def figures(self, module: ModulePlace) -> PartFigures:
        ahead = (module.forward, module.without_gradients, module.recomputed)
        own_ns = sum(figures.self_ns for figures in ahead) / self.called_steps
        total_ns = sum(figures.total_ns for figures in ahead) / self.called_steps
        known = [figures.allocated_bytes for figures in ahead if figures.allocated_bytes is not None]
        return PartFigures(
            own_ns=own_ns + module.backward.self_ns * self.backward_ns,
            total_ns=total_ns + module.backward.total_ns * self.backward_ns,
            calls=sum(figures.calls for figures in ahead) / self.called_steps,
            allocated_bytes=sum(known) / self.called_steps if known else None,
        )


def scopes_of(observed: Observed, places: Places, *, a_step: bool) -> RunParts:
    """Each scope at each place of the call tree, a step or over the whole run; none is a figure, too."""
    tree = observed.merged.tree
    steps = _steps_with_scopes(observed) if a_step else None
    count = steps or 1
    parts: dict[Place, PartFigures] = {}
    around: list[Place] = []
    for depth, node in tree.walk():
        del around[depth:]
        around.append(places.at(around[-1] if around else None, node.name, beside=node.starts_strand))
        parts[around[-1]] = PartFigures(
            own_ns=node.self_ns / count,
            total_ns=node.total_ns / count,
            calls=(node.calls + node.open_calls) / count,
            ns_per_call=None if node.open_calls else per(node.total_ns, node.calls),
            allocated_bytes=per(node.allocated_bytes, count),
            is_part=not node.parallel,
        )
    return RunParts(
        kind=PartsKind.SCOPES,
        whole_ns=tree.profiled_ns / count,
        judged_whole_ns=None,
        parts=parts,
        steps=steps,
        with_warmup=True,
    )


def _steps_with_scopes(observed: Observed) -> int | None:
    run, torch = observed.run.torch, observed.torch
    return None if run is None or torch is None or torch.main is None else _called_steps(run, torch.main)


def _called_steps(run: TorchRun, main: GroupResult) -> int:
    """Steps of the main group, with those slowed by looking at their operators, which count calls too."""
    scale = per_step_of(run)
    return main.steps + scale.called_steps - scale.steps


def has_steps(observed: Observed) -> bool:
    """Whether figures can be told a step."""
    return _steps_with_scopes(observed) is not None


def operators_of(observed: Observed, places: Places) -> RunParts | None:
    """The operators of the window over steps of the main group; None where there is none.

    The whole is what was in operators, on all threads, and what was in none on the thread of the steps.
    """
    window = _main_window(observed)
    if window is None:
        return None
    return RunParts(
        kind=PartsKind.OPERATORS,
        whole_ns=window.covered_ns_per_step + window.outside_ns_per_step,
        judged_whole_ns=None,
        parts={
            places.at(None, row.name): PartFigures(
                own_ns=row.self_ns_per_step, total_ns=row.total_ns_per_step, calls=row.calls_per_step
            )
            for row in window.rows
        },
        steps=window.steps,
        with_warmup=False,
    )


def _main_window(observed: Observed) -> OperatorTable | None:
    torch = observed.torch
    if torch is None or torch.operators is None:
        return None
    label = None if torch.main is None else torch.main.label
    return next((window for window in torch.operators.windows if window.label == label), None)


def operator_window(observed: Observed) -> tuple[int, int] | None:
    """The first step in which operators were looked at, and how many; None where they were not."""
    window = _main_window(observed)
    return None if window is None else (window.first_step, window.steps)
