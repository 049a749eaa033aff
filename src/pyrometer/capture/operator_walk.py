"""From torch's raw events to what each operator took and for whom, in one pass.

torch's own ``key_averages()`` makes an object of each event and a tree of them first. Here an event is
looked at once: its time is added to its operator and taken from the one that called it. Asking an event
for one thing takes longer than adding it up, so as little as possible is asked.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from pyrometer.capture.operator_origins import NOWHERE, Place
from pyrometer.capture.operator_shapes import ShapeCounts
from pyrometer.record.operators import MAX_OPERATORS, MAX_ORIGINS, OTHER_OPERATORS, Origin

_USER_SCOPE = 7
"""torch's number for what a program marks by ``record_function``: no operator."""
_ENGINE = "autograd::engine::evaluate_function: "
_ACCUMULATES = f"{_ENGINE}torch::autograd::AccumulateGrad"
_WITHOUT_NODES = frozenset({"optimizer", "clearing", "clipping", "data"})
"""Phases whose operators make no autograd nodes that a backward pass in the window would come from."""
_THREAD_BITS = 20
_PAUSE_EVERY = 512
_LONGEST_NAME = 200


class Used:
    """The calls of one operator for one origin."""

    __slots__ = ("calls", "origin", "self_ns")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.calls = 0
        self.self_ns = 0


class Seen:
    """All calls of one operator."""

    __slots__ = ("device_ns", "is_engine", "is_open", "last_use", "name", "shapes", "total_ns", "uses")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_engine = name.startswith(_ENGINE)
        self.is_open = 0
        self.total_ns = 0
        self.device_ns = 0
        self.shapes = ShapeCounts()
        self.uses: dict[int, Used] = {}
        """By the origin's id."""
        self.last_use: Used | None = None

    def use_for(self, origin: Origin) -> Used:
        """Where its calls for this origin are counted."""
        use = self.uses.get(id(origin))
        if use is None:
            use = self.uses[id(origin)] = Used(origin)
        self.last_use = use
        return use

    @property
    def calls(self) -> int:
        """For whomever."""
        return sum(use.calls for use in self.uses.values())

    @property
    def self_ns(self) -> int:
        """Without the operators it called."""
        return sum(use.self_ns for use in self.uses.values())


_Open = tuple[int, Seen, Used, Origin | None]
"""An operator that is under way: its end, what is counted of it, and for whom the backward pass is."""


class OperatorWalk:
    """Adds up the events of one window that began in one of its steps.

    ``places`` says where the thread that makes the steps was from each of ``place_starts`` on. All times
    are on torch's clock.
    """

    def __init__(
        self,
        *,
        steps: Sequence[tuple[int, int]],
        place_starts: Sequence[int],
        places: Sequence[Place],
        native_thread_id: int,
        has_shapes: bool = False,
        has_devices: bool = False,
    ) -> None:
        self.operators: dict[str, Seen] = {}
        self.thread_covered_ns = 0
        """Time in operators on the thread that makes the steps."""
        self._skipped: set[str] = set()
        """What has a name and a time, and is no operator."""
        self._origins: dict[tuple[str, Place], Origin] = {}
        self._forward_origins: dict[int, Origin] = {}
        """By number and thread in one, which the garbage collector does not follow: where the operator was
        called that made the autograd node."""
        self._open: dict[int, list[_Open]] = {}
        self._here: int | None = None
        """torch's number for the thread that makes the steps."""
        self._by_correlation: dict[int, Seen] = {}
        self._steps = steps
        self._place_starts = place_starts
        self._places = [self._known("call", place) for place in (NOWHERE, *places)]
        """One more than ``place_starts``: before the first there is none."""
        self._nowhere = self._origin = self._places[0]
        self._place = 0
        self._next_place = place_starts[0] if place_starts else sys.maxsize
        self._native_thread_id = native_thread_id
        self._has_shapes = has_shapes
        self._has_devices = has_devices
        self._has_more = has_shapes or has_devices

    # One function with its own names, because a call takes as long as most of what is done here.
    def walk(  # noqa: C901, PLR0912, PLR0915
        self, events: Sequence[Any], pause: Callable[[], object] | None = None
    ) -> None:
        """Take in all events of the window; ``pause`` is called every now and then."""
        operator_named, forward_origins = self.operators.get, self._forward_origins
        has_devices, has_more = self._has_devices, self._has_more
        steps = iter(self._steps)
        step_start, step_end = next(steps, (0, 0))
        thread_now, is_here = None, False
        stack: list[_Open] = []
        for number, (event, start) in enumerate(_in_order(events)):
            if pause is not None and number % _PAUSE_EVERY == 0:
                pause()
            while start >= step_end > 0:
                step_start, step_end = next(steps, (0, 0))
            if not step_start <= start < step_end:
                continue
            if has_devices and event.activity_type() != "cpu_op":
                self._take_from_device(event)
                continue
            name = event.name()
            operator = operator_named(name) or self._find(event, name)
            if operator is None:
                continue
            thread = event.start_thread_id()
            if thread != thread_now:
                thread_now = thread
                stack = self._stack_of(thread, event)
                is_here = thread == self._here
            while stack and stack[-1][0] <= start:
                stack.pop()[1].is_open -= 1
            duration = event.duration_ns()
            passing = None
            if stack:
                end, _, caller, passing = stack[-1]
                if start + duration > end:
                    duration = end - start
                caller.self_ns -= duration
            elif is_here:
                self.thread_covered_ns += duration
            if start >= self._next_place:
                self._move_to(start)
            origin = self._origin if is_here else self._nowhere
            if operator.is_engine:
                origin = passing = self._backward_origin(event, name, origin)
            elif passing is not None and origin.module is None:
                origin = passing
            # Also in a backward pass, where that calls a module again: activation checkpointing.
            elif origin.phase not in _WITHOUT_NODES and (sequence := event.sequence_nr()) >= 0:
                forward_origins[sequence << _THREAD_BITS | thread] = origin
            use = operator.last_use
            if use is None or use.origin is not origin:
                use = operator.use_for(origin)
            use.calls += 1
            use.self_ns += duration
            if not operator.is_open:
                operator.total_ns += duration
            operator.is_open += 1
            stack.append((start + duration, operator, use, passing))
            if has_more:
                self._take_more(event, operator)

    def _take_from_device(self, event: Any) -> None:
        operator = self._by_correlation.get(event.linked_correlation_id())
        if operator is not None and not str(event.device_type()).endswith("CPU"):
            operator.device_ns += event.duration_ns()

    def _take_more(self, event: Any, operator: Seen) -> None:
        if self._has_shapes:
            operator.shapes.add(event)
        if self._has_devices:
            self._by_correlation[event.correlation_id()] = operator

    def _find(self, event: Any, name: str) -> Seen | None:
        """The operator by this name, made if there is room; None for what is no operator."""
        if name in self._skipped:
            return None
        if event.scope() == _USER_SCOPE or event.is_async():
            self._skipped.add(name)
            return None
        if len(self.operators) >= MAX_OPERATORS - 1:
            name = OTHER_OPERATORS
        return self.operators.setdefault(name, Seen(name[:_LONGEST_NAME]))

    def _stack_of(self, thread: int, event: Any) -> list[_Open]:
        if thread not in self._open and event.device_resource_id() == self._native_thread_id:
            self._here = thread
        return self._open.setdefault(thread, [])

    def _move_to(self, start: int) -> None:
        at, starts = self._place, self._place_starts
        while at < len(starts) and starts[at] <= start:
            at += 1
        self._place = at
        self._origin = self._places[at]
        self._next_place = starts[at] if at < len(starts) else sys.maxsize

    def _backward_origin(self, event: Any, name: str, here: Origin) -> Origin:
        phase = here.phase or "backward"
        if name == _ACCUMULATES:
            return self._known("accumulation", Place(phase))
        node = event.sequence_nr() << _THREAD_BITS | event.fwd_thread_id()
        forward = self._forward_origins.get(node, self._nowhere)
        return self._known("backward", Place(phase, forward.module, forward.scope))

    def _known(self, kind: str, place: Place) -> Origin:
        origin = self._origins.get((kind, place))
        if origin is None:
            if len(self._origins) >= MAX_ORIGINS - 200:
                place = Place(place.phase)
            origin = self._origins.setdefault((kind, place), Origin(kind, *place))
        return origin


def _in_order(events: Sequence[Any]) -> Iterable[tuple[Any, int]]:
    """Each event with its start, in the order they began."""
    starts = [event.start_ns() for event in events]
    if all(one <= other for one, other in pairwise(starts)):
        return zip(events, starts, strict=True)
    return ((events[index], starts[index]) for index in sorted(range(len(starts)), key=starts.__getitem__))
