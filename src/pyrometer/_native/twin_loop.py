"""Optimizers' steps as a phase: of ``loop.h`` only that, the loop itself is not followed here."""

from __future__ import annotations

import sys
import threading

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

OPTIMIZER_PHASE = 7


class LoopFollower:
    """The part of a ``Watch`` that knows optimizers; everything else it is told goes to Python at once."""

    stretches_due = 1

    def __init__(self) -> None:
        self._steps_here = threading.local()

    if TYPE_CHECKING:  # a ``Watch`` has them

        def enter(self, phase: int) -> int: ...
        def leave(self, token: int) -> None: ...

    @property
    def is_stepping(self) -> bool:
        """Whether the calling thread is in an optimizer's step."""
        return bool(self._open_steps())

    def optimizer_begun(self, optimizer: object) -> None:
        """An optimizer's step begins."""
        depth = _call_depth() - 2  # of the step: it calls our hook, and that this
        self._settle_above(depth)
        self._open_steps().append((id(optimizer), depth, self.enter(OPTIMIZER_PHASE)))

    def optimizer_ended(self, optimizer: object) -> bool:
        """It has ended; False if Python is to note the end of the stretch."""
        steps = self._open_steps()
        seen = False
        while steps and not seen:
            optimizer_id, _, token = steps.pop()
            self.leave(token)
            seen = optimizer_id == id(optimizer)
        return not seen or bool(steps)

    def settle_optimizers(self) -> None:
        """Leave steps that raised: what runs inside one is called deeper than it was."""
        if self._open_steps():
            self._settle_above(_call_depth() - 2)

    def _settle_above(self, depth: int) -> None:
        steps = self._open_steps()
        while steps and depth <= steps[-1][1]:
            self.leave(steps.pop()[2])

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

    def _open_steps(self) -> list[tuple[int, int, int]]:
        steps: list[tuple[int, int, int]] | None = getattr(self._steps_here, "steps", None)
        if steps is None:
            steps = self._steps_here.steps = []
        return steps


def _call_depth() -> int:
    """How deep in calls the caller is."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth
