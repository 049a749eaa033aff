"""The window of steps in which every operator is seen: when it opens and closes, and what came of it.

It costs what torch's own profiler costs, for a few steps; before and after there is nothing to pay. Those
steps are in no group: what is told of a step is told of undisturbed ones.
"""

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pyrometer._native import Recorder
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.operator_origins import LoggedCall
from pyrometer.capture.operator_trace import trace_of
from pyrometer.capture.operator_windows import FinishedWindow, Session
from pyrometer.capture.own_work import OwnWork
from pyrometer.capture.patches import Patches
from pyrometer.capture.step_groups import Stretch
from pyrometer.capture.torch_kineto import KinetoSession, is_profiling
from pyrometer.record.operators import Operators

LEAST_STEPS_BEFORE = 3
MOST_STEPS_BEFORE = 20
"""After so many a window opens whether they are alike or not."""
MOST_OTHERS = 4
"""Steps of other kinds between two of one kind: where there are more, a window would see mostly those."""
MOST_TRIES = 3
"""To open a window for steps of a kind: where no step came in time, they come too rarely."""

_ALIKE = 1.25
_MAX_CALLS = 1_000_000
_COLLECTOR = "operators"
_PROFILES_ITSELF = "the program uses torch.profiler itself, which there can be only one of"


class _Kind:
    """What is known of the steps of one kind."""

    def __init__(self) -> None:
        self.steps = 0
        self.tries = 0
        self.done = False
        self._last_ns = (0, 0)
        self._last_index = 0
        self._others = 0

    def add(self, index: int, duration_ns: int) -> None:
        self.steps += 1
        self._last_ns = (self._last_ns[1], duration_ns)
        self._others = index - self._last_index - 1
        self._last_index = index

    @property
    def usual_ns(self) -> int:
        """What a step takes at least, by the last two."""
        return min(self._last_ns)

    def is_ready(self, least: int) -> bool:
        """Whether the warm-up is over: the last two steps took about as long, or there were many.

        And whether the next is likely to come soon: the last two did not lie far apart.
        """
        if self.done or self.steps < least or self._others > MOST_OTHERS:
            return False
        low, high = sorted(self._last_ns)
        return high <= _ALIKE * low or self.steps >= max(least, MOST_STEPS_BEFORE)


class _Window:
    """One that is open: first a step for shapes, then as many as were asked for."""

    def __init__(self, kind: str, label: str, usual_ns: int) -> None:
        self.kind = kind
        self.label = label
        self.usual_ns = usual_ns
        self.session: Session | None = None
        self.shapes: Session | None = None
        self.first_step = 0
        self.others = 0
        self.is_halted = False
        """Nothing more is seen; which steps it held may still be told."""
        self.calls: list[LoggedCall] = []
        self.scopes: list[LoggedCall] = []


class OperatorWatch:
    """Opens one window for each kind of step, on the thread that makes them.

    ``calls`` keeps phases and modules, ``scopes`` the program's own scopes.
    """

    def __init__(
        self,
        torch: Any,
        *,
        steps: int,
        warmup: int | None,
        calls: Recorder,
        scopes: Recorder,
        phases: list[str],
        keeps_events: bool,
    ) -> None:
        self._torch = torch
        self._steps = steps
        self._least_before = LEAST_STEPS_BEFORE if warmup is None else warmup
        self._calls = calls
        self._scopes = scopes
        self._phases = phases
        self._keeps_events = keeps_events
        self._own_work = OwnWork(calls, scopes)
        self._patches = Patches()
        self._lock = threading.RLock()
        self._kinds: dict[str, _Kind] = {}
        self._window: _Window | None = None
        self._finished: list[FinishedWindow] = []
        self._disturbed: list[list[int | None]] = []
        self._left_out = 0
        self._steps_seen = 0
        self._reason: str | None = None

    # Switching.

    def install(self) -> None:
        """Give way to a profiler of the program's own from now on."""
        module = sys.modules.get("torch.autograd.profiler")
        for name in ("_prepare_profiler", "_enable_profiler"):
            if module is not None and hasattr(module, name):
                self._patches.replace(module, name, self._giving_way(getattr(module, name)))
        _watches.add(self)

    def halt(self) -> None:
        """See no more; the steps that a window held may still be told, until ``remove()``."""
        try:
            if self._window is not None:
                self._halt(self._window)
        except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
            self._give_up(error)

    def remove(self) -> None:
        """Close what is open; what was seen stays."""
        self._patches.remove()
        self._close(self._steps_seen)

    # Steps.

    @property
    def is_open(self) -> bool:
        """Whether a window is open: the steps are slower than others."""
        return self._window is not None

    @property
    def own_work_ns(self) -> int:
        """What opening and closing windows took so far, while the program waited."""
        return self._own_work.duration_ns

    @property
    def steps_left(self) -> int:
        """After how many more training steps there is something to do; many if never again."""
        kind = self._kinds.get("training")
        if self._window is not None:
            return 0
        if self._reason is not None or (kind is not None and kind.done):
            return sys.maxsize
        return max(self._least_before - (0 if kind is None else kind.steps), 0)

    def keeps(self, index: int) -> bool:
        """Whether the step by this number, which has just ended, was undisturbed."""
        for first, last in self._disturbed:
            if first is not None and first <= index and (last is None or index <= last):
                self._left_out += 1
                return False
        return True

    def step_ended(self, index: int, step: Stretch, *, thread_id: int, is_recorded: bool) -> None:
        """A step has been found; it may have ended some time ago, and on another thread."""
        self._steps_seen = index + 1
        kind = self._kinds.setdefault(step.kind, _Kind())
        kind.add(index, sum(step.ns))
        if thread_id != threading.get_ident():
            return
        try:
            if self._window is not None:
                self._advance(self._window, index, step)
            elif is_recorded and self._reason is None and kind.is_ready(self._least_before):
                self._open(index, step, kind)
        except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
            self._give_up(error)

    def _open(self, index: int, step: Stretch, kind: _Kind) -> None:
        if is_profiling(self._torch):
            self._reason = _PROFILES_ITSELF
            return
        kind.tries += 1
        self._disturbed.append([index + 1, None])
        self._window = _Window(step.kind, step.label, kind.usual_ns)
        self._window.session = self._start_session(has_shapes=True)

    def _start_session(self, *, has_shapes: bool) -> Session:
        with self._own_work:
            profiler = KinetoSession(self._torch, has_shapes=has_shapes)
            session = Session(profiler, self._calls.now, time.time_ns)
            if not has_shapes:
                self._calls.start_log(_MAX_CALLS)
                self._scopes.start_log(_MAX_CALLS)
            session.start()
            return session

    def _advance(self, window: _Window, index: int, step: Stretch) -> None:
        session = window.session
        if session is None or session.thread_id != threading.get_ident():
            return
        if step.kind != window.kind:
            window.others += 1
            if window.others > MOST_OTHERS:
                self._close(index)
            return
        window.others = 0
        began_ns = step.ended_ns - sum(step.ns)
        if session.has_shapes:
            if window.is_halted:
                return
            # Seen but for what came between the end of the step before and the moment that was known; or
            # known only now, and hardly seen at all.
            if 2 * (step.ended_ns - session.began_ns) >= window.usual_ns:
                with self._own_work:
                    session.stop()
                session.steps.append((began_ns, step.ended_ns))
                window.shapes = session
                window.session = self._start_session(has_shapes=False)
            return
        if began_ns < session.began_ns:
            return
        if not session.steps:
            window.first_step, window.label = index, step.label
        session.steps.append((began_ns, step.ended_ns))
        if len(session.steps) >= self._steps:
            self._close(index)

    def _close(self, index: int) -> None:
        """End the window after the step of this number; with no step in it, it never was."""
        window, self._window = self._window, None
        if window is None:
            return
        self._disturbed[-1][1] = index + 1
        try:
            with self._own_work:
                self._finish(window)
        except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
            self._give_up(error)

    def _finish(self, window: _Window) -> None:
        self._halt(window)
        session = window.session
        kind = self._kinds[window.kind]
        if session is None or session.results is None or session.has_shapes or not session.steps:
            kind.done = kind.tries >= MOST_TRIES
            return
        kind.done = True
        self._finished.append(
            FinishedWindow(
                kind=window.kind,
                label=window.label,
                first_step=window.first_step,
                session=session,
                shapes=window.shapes,
                calls=window.calls,
                scopes=window.scopes,
                phases=tuple(self._phases),
            )
        )

    def _halt(self, window: _Window) -> None:
        session = window.session
        if window.is_halted or session is None:
            return
        window.is_halted = True
        if session.thread_id != threading.get_ident():
            note_loss(_COLLECTOR, "a window was still open at the end, on another thread")
            return
        with self._own_work:
            session.stop()
            window.calls, lost = self._calls.take_log()
            window.scopes, lost_too = self._scopes.take_log()
        if lost or lost_too:
            note_loss(_COLLECTOR, "some calls of modules or scopes in the window found no room")

    def close_here(self) -> None:
        """Close a window that this thread has open: it forks, or starts a profiler of its own."""
        session = None if self._window is None else self._window.session
        if session is not None and session.thread_id == threading.get_ident():
            self._close(self._steps_seen)

    def _give_up(self, error: Exception) -> None:
        self._window = None
        self._reason = "a window could not be opened or closed"
        note_failure(_COLLECTOR, self._reason, error)

    def _giving_way(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        def give_way(*arguments: Any, **named: Any) -> Any:
            self.close_here()
            if not self._finished and self._reason is None:
                note_loss(_COLLECTOR, _PROFILES_ITSELF)
            self._reason = self._reason or _PROFILES_ITSELF
            return theirs(*arguments, **named)

        return give_way

    # The record.

    def record(self) -> Operators:
        """The windows closed so far. The first time each is asked for, its events are walked."""
        with self._lock:
            pause = None if threading.current_thread() is threading.main_thread() else _give_way
            windows = tuple(
                window.record(pause, keeps_events=self._keeps_events) for window in list(self._finished)
            )
        return Operators(
            asked_steps=self._steps,
            left_out_steps=self._left_out,
            windows=windows,
            reason=None if windows else self._why_none(),
        )

    def trace(self) -> Iterator[str]:
        """The windows as pieces of a trace file; only where events were to be kept."""
        return trace_of(self._finished, process_id=os.getpid())

    def _why_none(self) -> str:
        if self._reason is not None:
            return self._reason
        if self._window is not None:
            return "the window is still open"
        most = max((kind.steps for kind in self._kinds.values()), default=0)
        needed = self._least_before + 2
        return f"the program made {most} steps of a kind, and a window needs {needed} before its first"


_watches: "weakref.WeakSet[OperatorWatch]" = weakref.WeakSet()


def _close_before_fork() -> None:
    """A child would go on adding events to a window that nobody closes."""
    for watch in list(_watches):
        watch.close_here()


os.register_at_fork(before=_close_before_fork)


def _give_way() -> None:
    # The program's thread asks for the GIL with each operator, and would get it every 5 ms.
    time.sleep(0.001)
