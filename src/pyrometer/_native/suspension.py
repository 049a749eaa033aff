"""When generators and coroutines stop and go on: what the recorders must be told.

From Python 3.12 on the interpreter itself reports it, and only for the code that was seen
to enter a scope (``sys.monitoring``). On 3.11 the C core wraps the interpreter's own entry
points; the Python twin has only ``sys.setprofile``, which is slow, and so is switched on
only while a generator or coroutine holds a scope.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Protocol

Callback = Callable[..., None]

SUSPENDABLE = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

# A context manager's own entry: the scope belongs to whoever wrote the ``with``.
ENTRIES = frozenset({"__enter__", "__aenter__", "enter_context", "enter_async_context"})


class Suspendable(Protocol):
    """A recorder that keeps frames by owner."""

    def suspend(self, owner: FrameType) -> None: ...
    def resume(self, owner: FrameType) -> None: ...


recorders: list[Suspendable] = []
"""The twin's recorders that are switched on."""


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


def delegators_of(owner: FrameType) -> list[FrameType]:
    """The generators and coroutines, outermost first, that wait for the running one or call it."""
    delegators: list[FrameType] = []
    delegator = owner.f_back
    while delegator is not None and delegator.f_code.co_flags & SUSPENDABLE:
        delegators.append(delegator)
        delegator = delegator.f_back
    return delegators[::-1]


def is_running(owner: FrameType, caller: FrameType | None) -> bool:
    """Whether the owner is on the stack of calls that ends in ``caller``."""
    while caller is not None and caller is not owner:
        caller = caller.f_back
    return caller is owner


if sys.version_info >= (3, 12):
    _TOOL_IDS = (4, 3)  # those the standard library gives no meaning to

    class Monitor:
        """Has the interpreter report yields and resumptions of the code it is shown."""

        def __init__(self, on_yield: Callback, on_resume: Callback) -> None:
            self._callbacks = {
                sys.monitoring.events.PY_YIELD: on_yield,
                sys.monitoring.events.PY_RESUME: on_resume,
                sys.monitoring.events.PY_THROW: on_resume,
            }
            # At most one entry. A dictionary, because setdefault and pop cannot be interrupted by
            # another thread, and a lock would be one more thing to lose in a fork.
            self._tool_ids: dict[str, int] = {}
            self._watched: dict[int, CodeType] = {}

        def watch(self, code: CodeType) -> bool:
            """From now on report this code; False if other tools hold every place."""
            if id(code) in self._watched:
                return True
            tool_id = self._claim()
            if tool_id is None:
                return False
            self._watched[id(code)] = code
            events = sys.monitoring.events
            sys.monitoring.set_local_events(tool_id, code, events.PY_YIELD | events.PY_RESUME)
            return True

        def release(self) -> None:
            """Report nothing any more, and leave the interpreter as it was."""
            tool_id = self._tool_ids.pop("ours", None)
            if tool_id is None:
                return
            while self._watched:
                _, code = self._watched.popitem()
                sys.monitoring.set_local_events(tool_id, code, 0)
            sys.monitoring.set_events(tool_id, 0)
            for event in self._callbacks:
                sys.monitoring.register_callback(tool_id, event, None)
            sys.monitoring.free_tool_id(tool_id)

        def _claim(self) -> int | None:
            """Our tool id; two threads that ask at once get the same."""
            for tool_id in () if "ours" in self._tool_ids else _TOOL_IDS:
                try:
                    sys.monitoring.use_tool_id(tool_id, "pyrometer")
                except ValueError:  # somebody else's
                    continue
                if self._tool_ids.setdefault("ours", tool_id) != tool_id:
                    sys.monitoring.free_tool_id(tool_id)
                    break
                for event, callback in self._callbacks.items():
                    sys.monitoring.register_callback(tool_id, event, callback)
                sys.monitoring.set_events(tool_id, sys.monitoring.events.PY_THROW)
                break
            return self._tool_ids.get("ours")

    def _on_yield(*_event: object) -> None:
        for recorder in recorders:
            recorder.suspend(sys._getframe(1))

    def _on_resume(*_event: object) -> None:
        for recorder in recorders:
            recorder.resume(sys._getframe(1))

    _monitor = Monitor(_on_yield, _on_resume)

    def watch(owner: FrameType) -> bool:
        """From now on tell the recorders when this owner stops and goes on; False if impossible."""
        return _monitor.watch(owner.f_code)

    def release() -> None:
        """The last recorder has stopped."""
        _monitor.release()

else:

    def watch(_owner: FrameType) -> bool:
        """From now on tell the recorders when this owner stops and goes on; False if impossible."""
        current = sys.getprofile()
        if current is None:
            sys.setprofile(_on_profile_event)
        return current is None or current is _on_profile_event

    def release() -> None:
        """The last recorder has stopped."""
        if sys.getprofile() is _on_profile_event:
            sys.setprofile(None)

    def _on_profile_event(
        frame: FrameType,
        event: str,
        _argument: object,
        # Bound now: when the interpreter ends, modules are emptied while threads still end.
        setprofile: Callable[[None], None] = sys.setprofile,
    ) -> None:
        if not recorders:
            setprofile(None)
        elif frame.f_code.co_flags & SUSPENDABLE:
            for recorder in recorders:
                if event == "return":
                    recorder.suspend(frame)
                elif event == "call":
                    recorder.resume(frame)
