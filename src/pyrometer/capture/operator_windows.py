"""A window once it has closed: raw events, single calls and steps, and the table made of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyrometer.capture.operator_origins import ClockLine, LoggedCall, places_over_time, read_both
from pyrometer.capture.operator_shapes import ShapeCounts
from pyrometer.capture.operator_tables import record_window
from pyrometer.capture.operator_walk import OperatorWalk
from pyrometer.record.operators import OperatorWindow


class Session:
    """A stretch under torch's profiler, with the clocks at both ends and the steps in it.

    ``steps`` are on our clock, and ``line`` leads from there to torch's.
    """

    def __init__(self, profiler: Any, ours: Callable[[], int], theirs: Callable[[], int]) -> None:
        self._profiler = profiler
        self._ours = ours
        self._theirs = theirs
        self.has_shapes: bool = profiler.has_shapes
        self.has_devices: bool = profiler.has_devices
        self.thread_id: int = profiler.thread_id
        self.native_thread_id: int = profiler.native_thread_id
        self.began_ns = 0
        self.steps: list[tuple[int, int]] = []
        self.line = ClockLine((0, 0), (0, 0))
        self.results: Any = None
        self._events: Sequence[Any] = ()

    def start(self) -> None:
        """Begin to see operators."""
        moment = read_both(self._ours, self._theirs)
        self.line = ClockLine(moment, moment)
        self._profiler.start()
        self.began_ns = self._ours()

    def stop(self) -> None:
        """See no more."""
        self.line = ClockLine(self.line.first, read_both(self._ours, self._theirs))
        self.results = self._profiler.stop()

    @property
    def events(self) -> Sequence[Any]:
        """What torch saw, in its own objects; made when first asked for."""
        if not self._events:
            self._events = self.results.events()
        return self._events

    def let_go(self) -> None:
        """Of all events."""
        self._events = ()
        self.results = None

    @property
    def steps_theirs(self) -> list[tuple[int, int]]:
        """The steps on torch's clock."""
        return [(self.line(start), self.line(end)) for start, end in self.steps]


class FinishedWindow:
    """What was seen in one window."""

    def __init__(
        self,
        *,
        kind: str,
        label: str,
        first_step: int,
        session: Session,
        shapes: Session | None,
        calls: Sequence[LoggedCall],
        scopes: Sequence[LoggedCall],
        phases: Sequence[str],
    ) -> None:
        self.kind = kind
        self.label = label
        self.first_step = first_step
        self.session = session
        self.phases = phases
        self.calls = self._on_their_clock(calls)
        self.scopes = self._on_their_clock(scopes)
        self._shapes = shapes
        self._record: OperatorWindow | None = None

    def _on_their_clock(self, calls: Iterable[LoggedCall]) -> list[LoggedCall]:
        line = self.session.line
        return [(name, thread, depth, line(start), line(end)) for name, thread, depth, start, end in calls]

    def record(self, pause: Callable[[], object] | None, *, keeps_events: bool) -> OperatorWindow:
        """The table; made once. The next time it is asked for, the events are let go of unless to be kept.

        To give back a quarter of a million takes as long as to read them: at the end of a run nobody asks
        again, and nobody waits for it.
        """
        if self._record is None:
            self._record = self._walk(pause)
        elif not keeps_events:
            self._shapes = None
            self.session.let_go()
            self.calls.clear()
            self.scopes.clear()
        return self._record

    def _walk(self, pause: Callable[[], object] | None) -> OperatorWindow:
        session = self.session
        here = session.thread_id
        starts, places = places_over_time(
            (call for call in self.calls if call[1] == here),
            (call for call in self.scopes if call[1] == here),
            phases=self.phases,
        )
        walk = OperatorWalk(
            steps=session.steps_theirs,
            place_starts=starts,
            places=places,
            native_thread_id=session.native_thread_id,
            has_devices=session.has_devices,
        )
        walk.walk(session.events, pause)
        return record_window(
            walk,
            self._shapes_by_operator(pause),
            kind=self.kind,
            label=self.label,
            first_step=self.first_step,
            steps=session.steps_theirs,
            has_devices=session.has_devices,
        )

    def _shapes_by_operator(self, pause: Callable[[], object] | None) -> dict[str, ShapeCounts]:
        session = self._shapes
        if session is None:
            return {}
        walk = OperatorWalk(
            steps=session.steps_theirs,
            place_starts=(),
            places=(),
            native_thread_id=session.native_thread_id,
            has_shapes=True,
        )
        walk.walk(session.events, pause)
        return {name: operator.shapes for name, operator in walk.operators.items()}
