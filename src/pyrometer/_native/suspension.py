"""When generators and coroutines stop and go on: what the recorders must be told.

From Python 3.12 on the interpreter itself reports it, and only for the code that was seen
to enter a scope (``sys.monitoring``). On 3.11 the C core wraps the interpreter's own entry
points; the Python twin has only ``sys.setprofile``, which is slow, and so is switched on
only while a generator or coroutine holds a scope.
"""

import sys
from types import CodeType, FrameType
from typing import Any, Protocol

SUSPENDABLE = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

# A context manager's own entry: the scope belongs to whoever wrote the ``with``.
ENTRIES = frozenset({"__enter__", "__aenter__", "enter_context", "enter_async_context"})


class Suspendable(Protocol):
    """A recorder that keeps frames by owner."""

    def suspend(self, owner: FrameType) -> None: ...
    def resume(self, owner: FrameType) -> None: ...


recorders: list[Suspendable] = []
unwatched = 0
"""Owners that could not be watched because another tool holds the interpreter's hooks."""


def owner_of(caller: FrameType | None) -> FrameType | None:
    """The generator or coroutine whose scope this is, given the frame that entered it.

    A generator behind ``@contextmanager`` is not one: its scope belongs to the ``with``.
    """
    while caller is not None:
        if caller.f_code.co_name in ENTRIES:
            caller = caller.f_back
            continue
        if not caller.f_code.co_flags & SUSPENDABLE:
            return None
        resumed_by = caller.f_back
        if resumed_by is None or resumed_by.f_code.co_name not in ENTRIES:
            return caller
        caller = resumed_by
    return None


def is_running(owner: FrameType, caller: FrameType | None) -> bool:
    """Whether the owner is on the stack of calls that ends in ``caller``."""
    while caller is not None and caller is not owner:
        caller = caller.f_back
    return caller is owner


if sys.version_info >= (3, 12):
    _TOOL_IDS = (4, 3)  # those the standard library gives no meaning to
    _tool_id: int | None = None
    _watched: dict[int, CodeType] = {}

    def claim_monitoring(on_yield: Any, on_resume: Any, on_throw: Any) -> int | None:
        """Take one of the interpreter's tool ids and set its callbacks; None if all are taken."""
        events = sys.monitoring.events
        for tool_id in _TOOL_IDS:
            if sys.monitoring.get_tool(tool_id) is None:
                sys.monitoring.use_tool_id(tool_id, "pyrometer")
                sys.monitoring.register_callback(tool_id, events.PY_YIELD, on_yield)
                sys.monitoring.register_callback(tool_id, events.PY_RESUME, on_resume)
                sys.monitoring.register_callback(tool_id, events.PY_THROW, on_throw)
                sys.monitoring.set_events(tool_id, events.PY_THROW)
                return tool_id
        return None

    def watch_code(tool_id: int, code: CodeType) -> None:
        """Have yields and resumptions of this code reported."""
        events = sys.monitoring.events
        sys.monitoring.set_local_events(tool_id, code, events.PY_YIELD | events.PY_RESUME)

    def watch(owner: FrameType) -> None:
        """From now on, tell the recorders when this owner stops and goes on."""
        global _tool_id, unwatched
        code = owner.f_code
        if id(code) in _watched:
            return
        if _tool_id is None:
            _tool_id = claim_monitoring(_on_yield, _on_resume, _on_resume)
        if _tool_id is None:
            unwatched += 1
            return
        _watched[id(code)] = code
        watch_code(_tool_id, code)

    def _on_yield(_code: CodeType, _offset: int, _value: object) -> None:
        for recorder in recorders:
            recorder.suspend(sys._getframe(1))

    def _on_resume(_code: CodeType, _offset: int, _exception: object = None) -> None:
        for recorder in recorders:
            recorder.resume(sys._getframe(1))

else:

    def watch(owner: FrameType) -> None:
        """From now on, tell the recorders when this owner stops and goes on."""
        global unwatched
        current = sys.getprofile()
        if current is None:
            sys.setprofile(_on_profile_event)
        elif current is not _on_profile_event:
            unwatched += 1

    def _on_profile_event(frame: FrameType, event: str, _argument: object) -> None:
        if not recorders:
            sys.setprofile(None)
        elif frame.f_code.co_flags & SUSPENDABLE:
            for recorder in recorders:
                if event == "return":
                    recorder.suspend(frame)
                elif event == "call":
                    recorder.resume(frame)
