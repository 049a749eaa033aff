"""Hangs the work of threads and executors under the scope that started it.

While recording, ``threading.Thread.start`` and an executor's work items note where they were
called. The originals come back when recording ends, unless somebody else has wrapped them since.
"""

from __future__ import annotations

import sys
import threading
from functools import wraps

from pyrometer._native import KIND, Recorder
from pyrometer._native.threads import POSITION_ATTRIBUTE
from pyrometer.capture.losses import note_failure

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EXECUTORS = "concurrent.futures.thread"


def call_before(
    hook: Callable[..., None], function: Callable[..., Any], *, sparing: bool = False
) -> Callable[..., Any]:
    """The function, with the hook called first; a ``sparing`` one only in steps that are looked at closely.

    From the C core there is no frame of ours in the tracebacks and stacks that the program sees.
    """
    if KIND == "native":
        from pyrometer._native.core import Before

        return Before(hook, function, sparing)

    @wraps(function)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        hook(*args)
        return function(*args, **kwargs)

    return hooked


class ThreadHooks:
    """Our hooks in ``threading`` and ``concurrent.futures``; install and remove leave no trace."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replaced: list[tuple[type, str, Callable[..., Any], Callable[..., Any]]] = []
        self._executors_hooked = False
        self._local = threading.local()

    def install(self) -> None:
        """Begin to note where threads are started and work is submitted."""
        self._replace(threading.Thread, "start", self._on_thread_start)
        self._hook_executors()

    def remove(self) -> None:
        """Put back what was there, where it is still ours to put back."""
        for owner, name, original, ours in self._replaced:
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, original)
        self._replaced.clear()
        self._executors_hooked = False

    def _replace(self, owner: type, name: str, hook: Callable[..., None]) -> None:
        original = owner.__dict__[name]
        ours = call_before(hook, original)
        setattr(owner, name, ours)
        self._replaced.append((owner, name, original, ours))

    def _hook_executors(self) -> bool:
        """Whether the hooks went in just now: never before the program imports executors itself."""
        module = sys.modules.get(_EXECUTORS)
        if self._executors_hooked or module is None:
            return False
        self._executors_hooked = True
        # The one place that all work of a pool goes through.
        item = module._WorkItem  # noqa: SLF001
        self._replace(item, "__init__", self._on_submit)
        self._replace(item, "run", self._on_run)
        return True

    def _on_thread_start(self, thread: threading.Thread, *_: Any) -> None:
        try:
            just_hooked = self._hook_executors()
            target = getattr(thread, "_target", None)
            # A pool's thread works for whoever submits, not for whoever made the pool grow. Only
            # the work submitted before our hooks were in is taken to be its starter's.
            if getattr(target, "__module__", None) == _EXECUTORS and not just_hooked:
                return
            position = self._recorder.position()
            if position is not None:
                thread.__dict__[POSITION_ATTRIBUTE] = position
        except Exception as error:  # noqa: BLE001 - a thread must start whatever happens to us
            note_failure("threads", "a thread does not hang under the scope that started it", error)

    def _on_submit(self, item: Any, *_: Any) -> None:
        try:
            item.__dict__[POSITION_ATTRIBUTE] = self._recorder.position()
        except Exception as error:  # noqa: BLE001 - work must be submitted whatever happens to us
            note_failure("threads", "work does not hang under the scope that submitted it", error)

    def _on_run(self, item: Any, *_: Any) -> None:
        """Move to where the item was submitted, from where the last one was.

        Left only here, so that nothing of ours is on the stack while an item runs; in between the
        thread runs no code of the program.
        """
        try:
            if getattr(self._local, "entered", False):
                self._recorder.leave_position()
                self._local.entered = False
            if not self._recorder.enabled or POSITION_ATTRIBUTE not in item.__dict__:
                return
            threading.current_thread().__dict__.pop(POSITION_ATTRIBUTE, None)
            self._local.entered = self._recorder.enter_position(item.__dict__[POSITION_ATTRIBUTE])
        except Exception as error:  # noqa: BLE001 - work must run whatever happens to us
            note_failure("threads", "work does not hang under the scope that submitted it", error)
