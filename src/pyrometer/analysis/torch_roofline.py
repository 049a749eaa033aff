"""The steps, phases and modules of a PyTorch program below the roofs of its machine.

FLOPs are those of the modules' formulas. Bytes are the least a module must move: what it is given, its
parameters and what it gives, each once. Of a backward pass each gradient, that of the inputs and that of
the parameters, is taken for as much work as the forward pass.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyrometer.analysis.modules import ModulePlace, ModuleRow, ModuleTable
from pyrometer.analysis.operators import OperatorResults
from pyrometer.analysis.roofline import Bound, Placed, Roofs, Work, place_all, roofs_of
from pyrometer.analysis.steps import GroupResult
from pyrometer.record.limits import Limits
from pyrometer.record.torch_run import Module, TorchRun
from pyrometer.stats.rates import per

# Of these only the rows that are asked for are read.
LOOKED_UP = frozenset({"Embedding", "EmbeddingBag"})
_PRECISION_OF_BYTES = {8: "f64", 4: "f32", 2: "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Everything of a run that can be placed below the roofs of its machine."""

    roofs: Roofs | None
    """None where nothing can be placed."""
    reason: str
    """Why nothing can be placed; empty where it can."""
    intra_op_threads: int | None
    """What the program used, where that is known."""
    step: Placed | None
    phases: tuple[Placed, ...]
    """Of the main group's steady steps."""
    modules: tuple[Placed, ...]
    """Those that call no other, in their forward passes, all calls of the run; most time first."""
    operators: tuple[Placed, ...]
    """In a step of the first window, by their own time; nothing where operators were not looked at."""

    @property
    def placed(self) -> tuple[Placed, ...]:
        """What stands below the roofs: the step, its phases, then modules, then operators."""
        steps = () if self.step is None else (self.step,)
        everything = (*steps, *self.phases, *self.modules, *self.operators)
        return tuple(one for one in everything if one.bound is not Bound.NOT_PLACED)


def build_roofline(
    limits: Limits | None,
    torch: TorchRun,
    modules: ModuleTable,
    main: GroupResult | None,
    operators: OperatorResults | None,
) -> Roofline | None:
    """The run below the roofs of its machine; None where its limits are not known."""
    if limits is None or not modules.rows:
        return None
    precision = _precision(torch, modules)
    roofs = roofs_of(limits, threads=torch.intra_op_threads, precision=precision)
    reason = ""
    if torch.gpu is not None:
        reason = "the program had a GPU, and the limits are those of the processor"
    elif roofs is None:
        reason = f"the limits have no figure for {precision}"
    if reason or roofs is None:
        return Roofline(
            roofs=None,
            reason=reason,
            intra_op_threads=torch.intra_op_threads,
            step=None,
            phases=(),
            modules=(),
            operators=(),
        )
    works = _Works(torch, modules, operators)
    steps = place_all(works.of_steps(main), roofs)
    return Roofline(
        roofs=roofs,
        reason="",
        intra_op_threads=torch.intra_op_threads,
        step=next(iter(steps), None),
        phases=steps[1:],
        modules=place_all(works.of_modules(), roofs),
        operators=place_all(_of_operators(operators), roofs),
    )


def _of_operators(operators: OperatorResults | None) -> Iterator[Work]:
    """Each operator in a step; what it gives is not recorded, so it moves at least what it is given."""
    for window in operators.windows[:1] if operators is not None else ():
        for row in window.rows:
            yield Work(
                name=row.name,
                kind="operator",
                calls=row.calls_per_step,
                duration_ns=row.self_ns_per_step,
                flops=row.flops_per_step,
                moved_bytes=row.input_bytes_per_step,
                at_least=True,
                unknown="torch counts no FLOPs of it"
                if row.flops_per_step is None
                else "what it is given was not recorded",
            )


class _Works:
    """What each part of the program computed and moved."""

    def __init__(self, torch: TorchRun, modules: ModuleTable, operators: OperatorResults | None) -> None:
        self._torch = torch
        self._modules = modules
        self._facts: Mapping[str, Module] = {module.name: module for module in torch.modules}
        self._rows = {row.name: row for row in modules.rows}
        self._leaves = _leaves(modules)
        self._operators = _operators_by_phase(operators)

    def of_modules(self) -> Iterator[Work]:
        """Each module that calls no other."""
        for row in self._modules.rows:
            if row.name in self._leaves:
                passed = row.forward if row.forward.calls else row.without_gradients
                if passed.calls:
                    yield self._of_calls(row, passed.calls, passed.self_ns)

    def _of_calls(self, row: ModuleRow, calls: int, duration_ns: int) -> Work:
        facts = self._facts.get(row.name)
        flops = None if facts is None else per(facts.flops, facts.measured_calls)
        moved_bytes = None if facts is None else least_bytes(facts)
        return Work(
            name=row.name,
            kind="module",
            calls=calls,
            duration_ns=duration_ns,
            flops=None if flops is None else flops * calls,
            moved_bytes=None if moved_bytes is None else moved_bytes * calls,
            unknown=_why_unknown(row, facts),
        )

    def of_steps(self, main: GroupResult | None) -> list[Work]:
        """The step of the main group, then its phases; nothing where modules are over other steps too."""
        if main is None or main.steps != self._modules.steps:
            return []
        forward, backward = self._forward(main), self._backward(main)
        phases: list[Work] = []
        for phase in main.phases:
            work = Work(
                name=phase.name,
                kind="phase",
                calls=1,
                duration_ns=phase.mean_ns,
                flops=None,
                moved_bytes=None,
            )
            if phase.name == "forward" and forward is not None:
                work = forward
            elif phase.name == "backward" and backward is not None:
                work = backward
            phases.append(work)
        counted = [work for work in phases if work.flops is not None and work.moved_bytes is not None]
        step = Work(
            name="step",
            kind="step",
            calls=sum(self._operators.values()) or sum(work.calls for work in counted) or 1,
            duration_ns=main.steady.mean_ns,
            flops=sum(work.flops or 0 for work in counted) if counted else None,
            moved_bytes=sum(work.moved_bytes or 0 for work in counted) if counted else None,
            at_least=True,
            estimated=any(work.estimated for work in counted),
        )
        return [step, *phases]

    def _forward(self, main: GroupResult) -> Work | None:
        """All that modules did in the forward phase of a step, but losses, which are a phase of their own."""
        phase = main.phase("forward")
        if phase is None:
            return None
        at_least, flops, moved_bytes, calls = False, 0.0, 0.0, 0.0
        for place in self._roots_of_forward():
            row = self._rows[place.name]
            flops += (row.flops_per_call or 0.0) * place.per_step.calls
            at_least |= row.flops_are_at_least or row.flops_per_call is None
            for below, least, _ in self._measured_below(place):
                moved_bytes += least * below.per_step.calls
                calls += below.per_step.calls
        if not moved_bytes:
            return None
        return Work(
            name="forward",
            kind="phase",
            calls=self._operators.get(phase.name, calls),
            duration_ns=phase.mean_ns,
            flops=flops,
            moved_bytes=moved_bytes,
            at_least=at_least,
        )

    def _backward(self, main: GroupResult) -> Work | None:
        """The gradients that the same modules left to it; None where that was not recorded."""
        phase = main.phase("backward")
        if phase is None:
            return None
        at_least, flops, moved_bytes, calls = False, 0.0, 0.0, 0.0
        for place in self._roots_of_forward():
            at_least |= self._rows[place.name].flops_are_at_least
            for below, least, facts in self._measured_below(place):
                products = per(facts.gradient_products, facts.measured_calls) or 0.0
                flops_of_a_call = per(facts.flops, facts.measured_calls)
                calls += products * below.per_step.calls
                flops += products * (flops_of_a_call or 0.0) * below.per_step.calls
                moved_bytes += products * least * below.per_step.calls
        if not moved_bytes:
            return None
        return Work(
            name="backward",
            kind="phase",
            calls=self._operators.get(phase.name, calls),
            duration_ns=phase.mean_ns,
            flops=flops,
            moved_bytes=moved_bytes,
            at_least=at_least,
            estimated=True,
        )

    def _roots_of_forward(self) -> Iterator[ModulePlace]:
        losses = _called_in_loss(self._torch)
        return (place for place in self._modules.roots if place.name not in losses)

    def _measured_below(self, root: ModulePlace) -> Iterator[tuple[ModulePlace, float, Module]]:
        """Each place below that calls no other, with the least bytes of a call, where those are known."""
        for _, place in root.walk():
            facts = self._facts.get(place.name)
            least = None if facts is None else least_bytes(facts)
            if facts is not None and least is not None and not place.children:
                yield place, least, facts


def least_bytes(module: Module) -> float | None:
    """What one call of a module must move at least; None where its calls were not measured."""
    given = per(module.input_bytes, module.measured_calls)
    gives = per(module.output_bytes, module.measured_calls)
    if given is None or gives is None:
        return None
    return given + gives + (gives if module.kind in LOOKED_UP else module.parameter_bytes)


def _why_unknown(row: ModuleRow, facts: Module | None) -> str:
    if row.hidden is not None:
        return f"{row.hidden}: what runs inside is not seen"
    if facts is None or not facts.measured_calls:
        return "no call was measured"
    if facts.flops is None:
        return f"there is no formula for {facts.kind}"
    return "the bytes it is given were not recorded"


def _operators_by_phase(operators: OperatorResults | None) -> dict[str | None, float]:
    """How many operators a step starts in each phase; nothing where they were not looked at."""
    calls: dict[str | None, float] = {}
    for window in operators.windows[:1] if operators is not None else ():
        for row in window.rows:
            for origin in row.origins:
                calls[origin.phase] = calls.get(origin.phase, 0.0) + origin.calls_per_step
    return calls


def _leaves(modules: ModuleTable) -> set[str]:
    """Modules that call no other, wherever they are called."""
    places: list[ModulePlace] = [place for _, place in modules.walk()]
    return {place.name for place in places} - {place.name for place in places if place.children}


def _called_in_loss(torch: TorchRun) -> set[str]:
    """Names of the modules that are called straight in the phase ``loss``."""
    return {
        node.name
        for strand in torch.calls
        for node in strand.nodes
        if node.parent is not None and strand.nodes[node.parent].name == "loss"
    }


def _precision(torch: TorchRun, modules: ModuleTable) -> str:
    """What the parameters are made of; f32 where that is mixed or not known."""
    roots = {place.name for place in modules.roots}
    known = [module for module in torch.modules if module.name in roots and module.parameters]
    size = per(sum(module.parameter_bytes for module in known), sum(module.parameters for module in known))
    return _PRECISION_OF_BYTES.get(int(size) if size is not None and size.is_integer() else 4, "f32")
