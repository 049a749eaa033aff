"""What the twin's watch knows of one thread: its phase, its open modules, the backward pass."""

import sys
from typing import Any, NamedTuple

from pyrometer._native.twin import Recorder, Scope

OTHER, FORWARD, LOSS, BACKWARD = 0, 3, 4, 5
"""Phases by number, in the order of ``record/torch_run.py``, behind "other"."""
MAX_PHASES = 32

NOT_RECORDED = -1


def open_call(recorder: Recorder, scope: Scope) -> int:
    """Enter the scope. Returns the recorder's run, for ``close_call``."""
    if not recorder.enabled:
        return NOT_RECORDED
    recorder._enter(scope.name, sys._getframe())
    return recorder._run


def close_call(recorder: Recorder, scope: Scope, run: int) -> None:
    """Leave it, unless the recorder was stopped or reset meanwhile, and so has left it already."""
    if recorder._run == run:
        recorder._exit(scope.name, sys._getframe(), recorder._clock())


class OpenModule(NamedTuple):
    """One open call of a module."""

    module: Any
    scope: Scope
    first_sequence: int
    """The first autograd node made inside has this number or a higher one."""


class WatchedThread:
    """What one thread is at.

    ``phase`` is what its time is charged to, ``found`` what the functions it is in say. They
    differ while ``held``: inside a phase that the program has named itself.
    """

    def __init__(self, starts: int, now_ns: int) -> None:
        self.starts = starts
        self.phase = self.found = OTHER
        self.held = False
        self.switched_ns = now_ns
        self.phase_ns = [0] * MAX_PHASES
        self.modules: list[OpenModule] = []
        self.in_backward = False
        self.marks_met = 0
        self.backward_path: list[Scope] = []
        self.backward_run = NOT_RECORDED

    def charge(self, now_ns: int) -> int:
        """Charge the time since the last switch to the phase it was spent in. Returns now."""
        if now_ns > self.switched_ns:
            self.phase_ns[self.phase] += now_ns - self.switched_ns
            self.switched_ns = now_ns
        return now_ns

    def follow(self, recorder: Recorder, path: tuple[Scope, ...]) -> None:
        """Open exactly these scopes under the backward phase."""
        if self.backward_run != recorder._run:
            self.backward_path.clear()
            self.backward_run = recorder._run
        common = 0
        for wanted, is_open in zip(path, self.backward_path, strict=False):
            if wanted is not is_open:
                break
            common += 1
        while len(self.backward_path) > common:
            close_call(recorder, self.backward_path.pop(), self.backward_run)
        for scope in path[common:]:
            self.backward_path.append(scope)
            open_call(recorder, scope)
