"""Operators of torch in a window of steps: what each takes a step, and for whom it works.

Self times of all operators on the thread that makes the steps, and what is outside of them, are the steps'
time exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyrometer.analysis.steps import GroupResult
from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Shapes, Use
from pyrometer.stats.rates import per


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOrigin:
    """For whom an operator worked; the origins of one add up to it."""

    kind: str
    """``call``, ``backward`` or ``accumulation``, as in the record."""
    phase: str | None
    module: str | None
    scope: str | None
    calls_per_step: float
    self_ns_per_step: float
    share: float
    """Of the operator's own time; 0 where it took none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator, a step."""

    name: str
    calls_per_step: float
    total_ns_per_step: float
    self_ns_per_step: float
    share: float
    """Of the steps' time; above 1 in all only where several threads worked at once."""
    flops_per_step: float | None
    flops_per_second: float | None
    """Over its own time."""
    input_bytes_per_step: float | None
    device_ns_per_step: float | None
    shapes: tuple[Shapes, ...]
    """The most frequent of one step."""
    origins: tuple[OperatorOrigin, ...]
    """Largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """One window."""

    kind: str
    label: str
    first_step: int
    steps: int
    events: int
    step_ns: float
    """Mean, with the cost of looking so closely."""
    slowdown: float | None
    """``step_ns`` to the steady mean of undisturbed steps; None without those."""
    covered_ns_per_step: float
    """In operators, on all threads."""
    outside_ns_per_step: float
    """In no operator, on the thread that makes the steps: Python, waiting, and what is not torch's."""
    outside_share: float
    rows: tuple[OperatorRow, ...]
    """Largest self time first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorResults:
    """What became of the wish to see operators."""

    asked_steps: int
    left_out_steps: int
    """Steps that were slowed by looking, and are in no group of steps; averages of modules hold them."""
    reason: str | None
    """Why there is no window."""
    windows: tuple[OperatorTable, ...]


def build_operators(operators: Operators | None, groups: Sequence[GroupResult]) -> OperatorResults | None:
    """What a run says of operators; None where it was not asked to."""
    if operators is None:
        return None
    steady_ns = {group.label: group.steady.mean_ns for group in groups}
    return OperatorResults(
        asked_steps=operators.asked_steps,
        left_out_steps=operators.left_out_steps,
        reason=operators.reason,
        windows=tuple(_build_table(window, steady_ns.get(window.label)) for window in operators.windows),
    )


def _build_table(window: OperatorWindow, steady_ns: float | None) -> OperatorTable:
    step_ns = window.total_ns / window.steps
    outside_ns = window.total_ns - window.thread_covered_ns
    uses: list[list[Use]] = [[] for _ in window.operators]
    for use in window.uses:
        uses[use.operator].append(use)
    return OperatorTable(
        kind=window.kind,
        label=window.label,
        first_step=window.first_step,
        steps=window.steps,
        events=window.events,
        step_ns=step_ns,
        slowdown=per(step_ns, steady_ns),
        covered_ns_per_step=window.covered_ns / window.steps,
        outside_ns_per_step=outside_ns / window.steps,
        outside_share=outside_ns / window.total_ns if window.total_ns else 0.0,
        rows=tuple(
            _build_row(operator, own, window) for operator, own in zip(window.operators, uses, strict=True)
        ),
    )


def _build_row(operator: Operator, uses: Sequence[Use], window: OperatorWindow) -> OperatorRow:
    steps = window.steps
    calls = operator.calls / steps
    flops = _a_step(operator.flops, operator, calls)
    self_ns = operator.self_ns / steps
    return OperatorRow(
        name=operator.name,
        calls_per_step=calls,
        total_ns_per_step=operator.total_ns / steps,
        self_ns_per_step=self_ns,
        share=operator.self_ns / window.total_ns if window.total_ns else 0.0,
        flops_per_step=flops,
        flops_per_second=None if flops is None else per(flops * 1e9, self_ns),
        input_bytes_per_step=_a_step(operator.input_bytes, operator, calls),
        device_ns_per_step=None if operator.device_ns is None else operator.device_ns / steps,
        shapes=operator.shapes,
        origins=tuple(
            _build_origin(window.origins[use.origin], use, operator, steps)
            for use in sorted(uses, key=lambda use: -use.self_ns)
        ),
    )


def _a_step(figure: int | None, operator: Operator, calls: float) -> float | None:
    """A figure over the calls that were looked at, for a step's calls."""
    each = per(figure, operator.shaped_calls)
    return None if each is None else each * calls


def _build_origin(origin: Origin, use: Use, operator: Operator, steps: int) -> OperatorOrigin:
    return OperatorOrigin(
        kind=origin.kind,
        phase=origin.phase,
        module=origin.module,
        scope=origin.scope,
        calls_per_step=use.calls / steps,
        self_ns_per_step=use.self_ns / steps,
        share=use.self_ns / operator.self_ns if operator.self_ns else 0.0,
    )
