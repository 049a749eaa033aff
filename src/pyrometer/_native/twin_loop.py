"""Optimizers' steps as a phase: of ``loop.h`` only that, the loop itself is not followed here."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrometer._native.twin_threads import NOT_RECORDED, WatchedThread, close_call, open_call

if TYPE_CHECKING:
    from pyrometer._native.twin import Recorder, Scope

OPTIMIZER_PHASE = 7
IN_OUR_CALL = -1


class OpenStep(NamedTuple):
    """A step of an optimizer that is under way."""

    optimizer_id: int
    depth: int
    """In calls, of what torch's hooks tell; ``IN_OUR_CALL`` for a step that ends in sight."""
    outer: int
    found: int
    run: int


class LoopFollower:
    """The part of a ``Watch`` that knows optimizers; everything else it is told goes to Python at once."""

    stretches_due = 1

    def __init__(self) -> None:
        self._steps_here = threading.local()
        self._stepped: Callable[[Any], object] | None = None

    if TYPE_CHECKING:  # a ``Watch`` has them
        _active: bool
        _starts: int
        _recorder: Recorder
        _scopes: list[Scope]

        def _thread(self) -> WatchedThread: ...
        def _switch(self, thread: WatchedThread, phase: int) -> int: ...
        def _call_back(self, callback: Callable[..., Any], *told: Any) -> Any: ...

    @property
    def is_stepping(self) -> bool:
        """Whether the calling thread is in an optimizer's step."""
        return bool(self._open_steps())

    def tell_steps(self, stepped: Callable[[Any], object] | None) -> None:
        """Say what is called with an optimizer when its step has ended."""
        self._stepped = stepped

    # What torch's own hooks tell: of steps that the program took hold of before they were wrapped.

    def optimizer_begun(self, optimizer: object) -> None:
        """Be told by torch that an optimizer's step begins."""
        if self._active and not self._is_in_our_call(optimizer):
            depth = _call_depth() - 2  # of the step: it calls our hook, and that this
            self._settle_above(depth)
            self._enter_optimizer(optimizer, depth)

    def optimizer_ended(self, optimizer: object) -> None:
        """Be told by torch that it has ended."""
        steps = self._open_steps()
        while self._active and steps and steps[-1].depth != IN_OUR_CALL:
            if steps[-1].optimizer_id == id(optimizer):
                self._optimizer_returned(optimizer)
                break
            self._leave_optimizer()

    # What our own call of a step does.

    def settle_optimizers(self) -> None:
        """Leave steps known by the hooks alone that raised: what runs inside one is called deeper."""
        if self._open_steps():
            self._settle_above(_call_depth() - 2)

    def _is_in_our_call(self, optimizer: object) -> bool:
        steps = self._open_steps()
        return bool(steps) and steps[-1].optimizer_id == id(optimizer) and steps[-1].depth == IN_OUR_CALL

    def _enter_optimizer(self, optimizer: object, depth: int) -> None:
        thread = self._thread()
        stands = thread.held and thread.phase == OPTIMIZER_PHASE  # named by the program itself
        run = NOT_RECORDED if stands else open_call(self._recorder, self._scopes[OPTIMIZER_PHASE])
        self._open_steps().append(OpenStep(id(optimizer), depth, thread.phase, thread.found, run))
        self._switch(thread, thread.phase if thread.held else OPTIMIZER_PHASE)
        thread.found = OPTIMIZER_PHASE

    def _leave_optimizer(self) -> None:
        step = self._open_steps().pop()
        close_call(self._recorder, self._scopes[OPTIMIZER_PHASE], step.run)
        thread = self._thread()
        self._switch(thread, step.outer)
        thread.found = step.found

    def _optimizer_returned(self, optimizer: object) -> None:
        """Note that the innermost step has: if it is the outermost too, a stretch ends."""
        starts = self._starts
        self._switch(self._thread(), self._thread().phase)
        try:
            if self._stepped is not None and len(self._open_steps()) == 1:
                self._call_back(self._stepped, optimizer)
        finally:
            if self._starts == starts:
                if len(self._open_steps()) == 1:
                    self._thread().phase = self._open_steps()[0].outer  # what follows is no part of the step
                self._leave_optimizer()

    def _settle_above(self, depth: int) -> None:
        steps = self._open_steps()
        while steps and depth <= steps[-1].depth:
            self._leave_optimizer()

    def know_optimizer(self, optimizer: object, name: str) -> None:
        """Say what an optimizer is called."""

    def follow(
        self,
        catch_up: Callable[..., object] | None,
        token_types: tuple[object, ...],
        is_overridden: Callable[[], bool] | None = None,
    ) -> None:
        """Follow the usual loop without Python: the core does, and then calls ``catch_up``."""

    def follow_iterator(self, iterator: object) -> None:
        """Say that its batches need no closer look."""

    def catch_up(self) -> None:
        """Tell Python of what the calling thread has done, which here it knows."""

    def catch_up_all(self) -> None:
        """Tell Python of what every thread has done."""

    def _open_steps(self) -> list[OpenStep]:
        here = self._steps_here
        if getattr(here, "starts", None) != self._starts:
            here.starts, here.steps = self._starts, []
        steps: list[OpenStep] = here.steps
        return steps


def _call_depth() -> int:
    """How deep in calls the caller is."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth
