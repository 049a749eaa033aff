"""What must hold in the operators of a run beyond the types of their fields."""

from collections.abc import Iterator

from pyrometer.record.operators import Operators, OperatorWindow
from pyrometer.record.tree_validation import Problem

_ORIGINS = ("call", "backward", "accumulation")


def operators_problems(operators: Operators, place: str, *, kinds: tuple[str, ...]) -> Iterator[Problem]:
    """What contradicts itself, or points at what is not there."""
    for index, window in enumerate(operators.windows):
        inside = f"{place}.windows[{index}]"
        if window.kind not in kinds:
            text = f"{window.kind[:40]!r} is none of {', '.join(kinds)}"
            yield Problem(place=f"{inside}.kind", text=text)
        if not window.steps:
            yield Problem(place=f"{inside}.steps", text="a window holds at least one step")
        yield from _sum_problems(window, inside)
        yield from _use_problems(window, inside)


def _sum_problems(window: OperatorWindow, place: str) -> Iterator[Problem]:
    covered_ns = sum(operator.self_ns for operator in window.operators)
    if covered_ns != window.covered_ns:
        text = f"the operators take {covered_ns} ns in all, covered_ns is {window.covered_ns}"
        yield Problem(place=f"{place}.operators", text=text)
    if window.thread_covered_ns > min(window.covered_ns, window.total_ns):
        text = f"{window.thread_covered_ns} ns are more than were covered in all, or than the steps took"
        yield Problem(place=f"{place}.thread_covered_ns", text=text)
    calls = sum(operator.calls for operator in window.operators)
    if calls != window.events:
        text = f"the operators were called {calls} times, events is {window.events}"
        yield Problem(place=f"{place}.operators", text=text)
    for index, operator in enumerate(window.operators):
        if operator.self_ns > operator.total_ns:
            text = f"{operator.self_ns} ns are more than its total of {operator.total_ns}"
            yield Problem(place=f"{place}.operators[{index}].self_ns", text=text)
        shaped = sum(shapes.calls for shapes in operator.shapes)
        if shaped > operator.shaped_calls:
            text = f"{shaped} calls are more than the {operator.shaped_calls} looked at"
            yield Problem(place=f"{place}.operators[{index}].shapes", text=text)


def _use_problems(window: OperatorWindow, place: str) -> Iterator[Problem]:
    for index, origin in enumerate(window.origins):
        if origin.kind not in _ORIGINS:
            text = f"{origin.kind[:40]!r} is none of {', '.join(_ORIGINS)}"
            yield Problem(place=f"{place}.origins[{index}].kind", text=text)
    calls = [0] * len(window.operators)
    self_ns = [0] * len(window.operators)
    for index, use in enumerate(window.uses):
        inside = f"{place}.uses[{index}]"
        if use.operator >= len(window.operators) or use.origin >= len(window.origins):
            text = f"there is no operator {use.operator}, or no origin {use.origin}"
            yield Problem(place=inside, text=text)
            return
        calls[use.operator] += use.calls
        self_ns[use.operator] += use.self_ns
    for index, operator in enumerate(window.operators):
        if (calls[index], self_ns[index]) != (operator.calls, operator.self_ns):
            text = f"its uses are {calls[index]} calls of {self_ns[index]} ns, not {operator.calls} of "
            yield Problem(place=f"{place}.operators[{index}]", text=f"{text}{operator.self_ns}")
