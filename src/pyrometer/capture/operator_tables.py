"""What a walk has added up, as the record has it: bounded, and the largest first."""

from collections.abc import Mapping, Sequence

from pyrometer.capture.operator_shapes import ShapeCounts
from pyrometer.capture.operator_walk import OperatorWalk, Seen
from pyrometer.record.operators import MAX_OPERATORS, MAX_USES, Operator, OperatorWindow, Origin, Use

_NO_ORIGIN = Origin("call", None, None, None)


def record_window(
    walk: OperatorWalk,
    shapes: Mapping[str, ShapeCounts],
    *,
    kind: str,
    label: str,
    first_step: int,
    steps: Sequence[tuple[int, int]],
    has_devices: bool,
) -> OperatorWindow:
    """The window; ``shapes`` by operator are those of a step before it."""
    operators = sorted(walk.operators.values(), key=lambda operator: -operator.self_ns)
    total_ns = sum(end - start for start, end in steps)
    origins, uses = _uses_of(operators)
    return OperatorWindow(
        kind=kind,
        label=label,
        first_step=first_step,
        steps=len(steps),
        total_ns=total_ns,
        covered_ns=sum(operator.self_ns for operator in operators),
        thread_covered_ns=min(walk.thread_covered_ns, total_ns),
        events=sum(operator.calls for operator in operators),
        operators=tuple(
            _operator(operator, shapes.get(operator.name, ShapeCounts()), has_devices=has_devices)
            for operator in operators
        ),
        origins=origins,
        uses=uses,
    )


def _operator(operator: Seen, shapes: ShapeCounts, *, has_devices: bool) -> Operator:
    return Operator(
        name=operator.name,
        calls=operator.calls,
        total_ns=operator.total_ns,
        self_ns=operator.self_ns,
        shaped_calls=shapes.calls,
        flops=shapes.flops or None,
        input_bytes=shapes.input_bytes if shapes.calls else None,
        shapes=shapes.records(),
        device_ns=operator.device_ns if has_devices else None,
    )


def _uses_of(operators: Sequence[Seen]) -> tuple[tuple[Origin, ...], tuple[Use, ...]]:
    found = [(number, use) for number, each in enumerate(operators) for use in each.uses.values()]
    found.sort(key=lambda item: -item[1].self_ns)
    origins: dict[Origin, int] = {}
    rows: dict[tuple[int, int], list[int]] = {}
    for rank, (number, use) in enumerate(found):
        # What is too much is put together, for each operator.
        origin = use.origin if rank < MAX_USES - MAX_OPERATORS else _NO_ORIGIN
        row = rows.setdefault((number, origins.setdefault(origin, len(origins))), [0, 0])
        row[0] += use.calls
        row[1] += use.self_ns
    return tuple(origins), tuple(Use(*at, *row) for at, row in rows.items())
