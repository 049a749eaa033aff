"""Functions of the program that a watch is told of, in Python: see ``watch.h`` and ``module_calls.h``."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pyrometer._native.twin import Scope
from pyrometer._native.twin_loop import IN_OUR_CALL
from pyrometer._native.twin_threads import (
    BACKWARD,
    FORWARD,
    LOSS,
    NOT_RECORDED,
    OpenModule,
    WatchedThread,
    close_call,
    open_call,
)
from pyrometer._native.wrapping import reduced

if TYPE_CHECKING:
    from pyrometer._native.twin_watch import ModuleEntry, Watch

MAX_MODULE_DEPTH = 256
MEASURED_CALLS = 16
SIZES_AND_MARKS = 1


class Wrapper:
    """A function that looks like the one it wraps: equal to it, named, bound and pickled like it."""

    __slots__ = ("__dict__", "__weakref__", "_function", "_watch")

    def __init__(self, watch: "Watch", function: Callable[..., Any]) -> None:
        self._watch = watch
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        return self._function(*arguments, **keywords)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return (
            self is other
            or self._function is other
            or (type(other) is type(self) and self._function is other._function)
        )

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return reduced(self, self._function)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class Phased(Wrapper):
    """A function that is a phase of the program while it runs."""

    __slots__ = ("_begun", "_ended", "_keeps", "_phase")

    def __init__(
        self,
        watch: "Watch",
        function: Callable[..., Any],
        *,
        phase: int,
        keeps: int,
        begun: Callable[..., Any] | None,
        ended: Callable[..., Any] | None,
    ) -> None:
        super().__init__(watch, function)
        self._phase = phase
        self._keeps = keeps
        self._begun = begun
        self._ended = ended

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        watch = self._watch
        thread = watch._thread()
        if not watch._active or self._keeps >> thread.found & 1:
            return self._function(*arguments, **keywords)
        first = arguments[0] if arguments else None
        began_ns = thread.charge(watch._recorder._clock())
        if self._begun is not None:
            watch.settle_optimizers()
            watch._call_back(self._begun, first)
            if not watch._active:
                return self._function(*arguments, **keywords)
            thread, began_ns = watch._thread(), watch._recorder._clock()
        return self._call_watched(thread, began_ns, first, arguments, keywords)

    def _call_watched(
        self,
        thread: WatchedThread,
        began_ns: int,
        first: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """What we do ourselves before and after is charged to the phase, as by a timer around the call."""
        watch = self._watch
        starts, scope = watch._starts, watch._scopes[self._phase]
        outer, found = thread.phase, thread.found
        outermost_backward = self._phase == BACKWARD and not thread.in_backward
        thread.phase = outer if thread.held else self._phase
        thread.found = self._phase
        stands = thread.held and outer == self._phase  # named by the program itself
        run = NOT_RECORDED if stands else open_call(watch._recorder, scope)
        if outermost_backward:
            thread.in_backward = True
        result, raised = None, True
        try:
            result = self._function(*arguments, **keywords)
            raised = False
        finally:
            if outermost_backward and watch._starts == starts:
                watch._backward_ended(thread, began_ns, raised=raised)
            close_call(watch._recorder, scope, run)
            try:
                if self._ended is not None and watch._goes_on(starts):
                    duration_ns = max(watch._recorder._clock() - began_ns, 0)
                    watch._call_back(self._ended, first, result, duration_ns, raised)
            finally:
                watch._switch(thread, outer)
                thread.found = found
        return result


class StepCall(Wrapper):
    """The method of an optimizer that is its step, as a phase."""

    __slots__ = ()

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        watch = self._watch
        if watch._active:
            watch.settle_optimizers()
        if not watch._active or not arguments or watch._is_in_our_call(arguments[0]):
            return self._function(*arguments, **keywords)
        starts, place = watch._starts, len(watch._open_steps())
        watch._enter_optimizer(arguments[0], IN_OUR_CALL)
        raised = True
        try:
            result = self._function(*arguments, **keywords)
            raised = False
        finally:
            if watch._starts == starts:
                while len(watch._open_steps()) > place + 1:
                    watch._leave_optimizer()  # raised, and known by the hooks alone
                if raised or not watch._active:
                    watch._leave_optimizer()
        if watch._goes_on(starts):
            watch._optimizer_returned(arguments[0])
        return result


class Asked(NamedTuple):
    """What a module call asks and tells."""

    describe: Callable[[Any, Any], tuple[str, bool]]
    root_begun: Callable[[Any, tuple[Any, ...], dict[str, Any] | None, bool], object]
    root_ended: Callable[[Any, Any, int, bool], object]
    measure: Callable[[Any, str, tuple[Any, ...], dict[str, Any] | None, Any], object]
    tracks_gradients: Callable[[], bool]
    sequence_number: Callable[[], int]


class Call(NamedTuple):
    """What a module is called with, the module itself first."""

    scope: Scope
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def module(self) -> Any:
        return self.arguments[0]

    @property
    def told(self) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """The arguments as callbacks get them."""
        return self.arguments[1:], self.keywords or None


class ModuleCall(Wrapper):
    """What calls a module, each call recorded."""

    __slots__ = ("_asked", "_keeps")

    def __init__(self, watch: "Watch", function: Callable[..., Any], keeps: int, asked: Asked) -> None:
        super().__init__(watch, function)
        self._keeps = keeps
        self._asked = asked

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        watch = self._watch
        if not watch._active or not arguments:
            return self._function(*arguments, **keywords)
        entry = watch._entry(arguments[0]) or self._described(watch._thread(), arguments[0])
        if entry is None or not watch._active:
            return self._function(*arguments, **keywords)
        call = Call(entry.scope, arguments, keywords)
        thread = watch._thread()
        if thread.modules:
            return self._call_nested(thread, call)
        return self._call_root(thread, call, is_loss=entry.is_loss)

    def _described(self, thread: WatchedThread, module: Any) -> "ModuleEntry | None":
        """Ask what the module is called. None if that fails: it is then not recorded."""
        innermost = thread.modules[:MAX_MODULE_DEPTH][-1:]
        parent = innermost[0].module if innermost else None

        def describe() -> "ModuleEntry":
            name, is_loss = self._asked.describe(module, parent)
            return self._watch._add_entry(module, name, is_loss=bool(is_loss))

        entry: ModuleEntry | None = self._watch._call_back(describe)
        return entry

    def _call_root(self, thread: WatchedThread, call: Call, *, is_loss: bool) -> Any:
        """A call that is in no other module's: a phase of its own, unless it is part of one."""
        watch = self._watch
        if self._keeps >> thread.found & 1:
            if thread.found == BACKWARD:
                return self._call_inside(watch._recomputed, thread, call)
            return self._call_nested(thread, call)
        began_ns = thread.charge(watch._recorder._clock())
        tracks = self._ask(self._asked.tracks_gradients) is True
        if not is_loss:
            watch._call_back(self._asked.root_begun, call.module, *call.told, tracks)
            if not watch._active:
                return self._function(*call.arguments, **call.keywords)
            thread, began_ns = watch._thread(), watch._recorder._clock()
        starts, outer, found = watch._starts, thread.phase, thread.found
        phase = LOSS if is_loss else FORWARD
        around = watch._scopes[phase] if is_loss or tracks else watch._untracked_forward
        thread.phase = outer if thread.held else phase
        thread.found = phase
        result, raised = None, True
        try:
            if thread.held and outer == phase:
                result = self._call_nested(thread, call)
            else:
                result = self._call_inside(around, thread, call)
            raised = False
        finally:
            try:
                if not is_loss and watch._goes_on(starts):
                    duration_ns = max(watch._recorder._clock() - began_ns, 0)
                    watch._call_back(self._asked.root_ended, call.module, result, duration_ns, raised)
            finally:
                watch._switch(thread, outer)
                thread.found = found
        return result

    def _call_inside(self, around: Scope, thread: WatchedThread, call: Call) -> Any:
        recorder = self._watch._recorder
        run = open_call(recorder, around)
        try:
            return self._call_nested(thread, call)
        finally:
            close_call(recorder, around, run)

    def _call_nested(self, thread: WatchedThread, call: Call) -> Any:
        """The call itself; in a step that was chosen, with backward marks and a few calls measured."""
        watch = self._watch
        if not watch._detail:
            return self._call_recorded(thread, OpenModule(call.module, call.scope, 0), call)
        starts, outer = watch._starts, list(thread.modules)
        marks = (
            watch._detail == SIZES_AND_MARKS
            and len(outer) < MAX_MODULE_DEPTH
            and thread.found != BACKWARD
            and self._ask(self._asked.tracks_gradients) is True
        )
        first_sequence = int(self._ask(self._asked.sequence_number) or 0) if marks else 0
        opened = OpenModule(call.module, call.scope, first_sequence)
        if marks:
            watch._mark_tensors(thread, outer, (*call.arguments[1:], *call.keywords.values()))
        result = self._call_recorded(thread, opened, call)
        if not watch._goes_on(starts):
            return result
        if marks:
            watch._mark_tensors(thread, [*outer, opened], (result,))
        entry = watch._entry(call.module)
        if entry is not None and entry.measured < MEASURED_CALLS:
            entry.measured += 1
            watch._call_back(self._asked.measure, call.module, call.scope.name, *call.told, result)
        return result

    def _call_recorded(self, thread: WatchedThread, opened: OpenModule, call: Call) -> Any:
        recorder = self._watch._recorder
        thread.modules.append(opened)
        run = open_call(recorder, opened.scope)
        try:
            return self._function(*call.arguments, **call.keywords)
        finally:
            close_call(recorder, opened.scope, run)
            thread.modules.pop()

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:  # noqa: BLE001 - told, and never the program's
            self._watch._note_failure(error)
            return None
