"""What a program's threads are at, in Python: the specification of ``watch.h`` and the headers around it.

A thread is in one phase at a time, and its phases sum to the time that went by: an inner phase
takes its time away from the outer one. Modules called stand as a tree under the phases, in the
watch's recorder. ``docs/recorder.md`` says what a scope is; here scopes are what torch does.

The watch's own callbacks never reach the program: an ``Exception`` of theirs goes to ``failed``.
Anything else they raise is the program's own, out of a signal handler, and passes on.
"""

import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

from pyrometer._native.twin import Recorder, Scope
from pyrometer._native.twin_loop import OPTIMIZER_PHASE, LoopFollower
from pyrometer._native.twin_threads import (
    MAX_PHASES,
    NOT_RECORDED,
    OpenModule,
    WatchedThread,
    close_call,
    open_call,
)
from pyrometer._native.twin_wrappers import Asked, ModuleCall, Phased, StepCall

MAX_ITEMS = 256
"""Of a tuple, list or dictionary, so many are searched for tensors."""

# What enter() hands out for leave(), from the lowest bit: the phase before, the one found before,
# the one entered, whether it was held before, and how often watch and recorder had been switched.
_PHASE_BITS = 5
_STARTS_BITS = 22
_RUN_BITS = 24


class ModuleEntry:
    """What is known of one module, for as long as it lives."""

    __slots__ = ("is_loss", "measured", "scope", "weak")

    def __init__(self, module: Any, scope: Scope, *, is_loss: bool) -> None:
        self.weak = weakref.ref(module)
        self.scope = scope
        self.is_loss = is_loss
        self.measured = 0
        """Calls whose sizes were taken."""


class Watch(LoopFollower):
    """Knows what each thread is at: phases that exclude each other, and modules under them.

    ``start()`` and ``reset()`` begin anew in every thread, in no phase: what is open then is not
    seen again.
    """

    def __init__(
        self, recorder: Recorder, phases: tuple[str, ...], failed: Callable[[BaseException], object]
    ) -> None:
        if len(phases) <= OPTIMIZER_PHASE:
            raise ValueError(f"a watch needs at least {OPTIMIZER_PHASE + 1} phases, not {len(phases)}")
        super().__init__()
        self._recorder = recorder
        self._failed = failed
        self._scopes: list[Scope] = []
        for name in phases:
            self.phase(name)
        self._untracked_forward = recorder.scope("forward without gradients")
        self._recomputed = recorder.scope("recomputed forward")
        self._tensor_type: type | None = None
        self._unheard: Callable[[], Any] = nullcontext
        self._active = False
        self._detail = 0
        self._starts = 0
        self._began_ns = 0
        self._local = threading.local()
        self._entries: dict[int, ModuleEntry] = {}
        self._entries_allowed = 64
        self._marked: set[tuple[WatchedThread, int]] = set()
        self._clear_counters()

    def _clear_counters(self) -> None:
        self.hook_ns = 0
        """Time spent in our own callbacks."""
        self.timed_backward_passes = 0
        self.timed_backward_ns = 0

    @property
    def active(self) -> bool:
        """Whether it watches."""
        return self._active

    @property
    def detail(self) -> int:
        """0, or 1: sizes and backward marks are taken, or 2: sizes alone."""
        return self._detail

    @detail.setter
    def detail(self, detail: int) -> None:
        if not 0 <= detail <= 2:
            raise ValueError(f"there is no detail {detail!r}")
        self._detail = detail
        self._marked.clear()

    # Switching.

    def start(self) -> None:
        """Begin to watch."""
        if not self._active:
            self._begin_anew()
            self._active = True

    def stop(self) -> None:
        """Stop watching: what is wrapped only calls through, and nothing is called back."""
        self._active = False
        self._detail = 0

    def reset(self) -> None:
        """Forget the modules seen, and what was counted."""
        self._begin_anew()
        self._entries.clear()
        self._marked.clear()
        self._clear_counters()

    def _begin_anew(self) -> None:
        self._starts += 1
        self._began_ns = self._recorder._clock()
        self._thread()  # the others are watched from where they are first seen

    def _goes_on(self, starts: int) -> bool:
        """Whether what began then is still watched."""
        return self._active and self._starts == starts

    def _thread(self) -> WatchedThread:
        thread: WatchedThread | None = getattr(self._local, "thread", None)
        if thread is None or thread.starts != self._starts:
            now_ns = self._recorder._clock() if thread is None else self._began_ns
            thread = self._local.thread = WatchedThread(self._starts, now_ns)
        return thread

    # Phases.

    def phase(self, name: str) -> int:
        """The number of a new phase by that name. Behind the last that fits, all share one."""
        if len(self._scopes) < MAX_PHASES:
            self._scopes.append(self._recorder.scope(name))
        return len(self._scopes) - 1

    def _check_phase(self, phase: int) -> None:
        if not 0 <= phase < len(self._scopes):
            raise ValueError(f"there is no phase {phase}")

    def _switch(self, thread: WatchedThread, phase: int) -> int:
        now_ns = thread.charge(self._recorder._clock())
        thread.phase = phase
        return now_ns

    def enter(self, phase: int, hold: bool = False) -> int:  # noqa: FBT001, FBT002 - as in C
        """Enter a phase on the calling thread; what it returns is for ``leave()``.

        While it is held, phases found by the functions called do not take over.
        """
        self._check_phase(phase)
        if not self._active:
            return -1
        thread = self._thread()
        token = thread.phase | thread.found << _PHASE_BITS | phase << 2 * _PHASE_BITS
        token |= thread.held << 3 * _PHASE_BITS
        stands = thread.held and thread.phase == phase
        run = NOT_RECORDED if stands else open_call(self._recorder, self._scopes[phase])
        self._switch(thread, thread.phase if thread.held and not hold else phase)
        if hold:
            thread.held = True
        else:
            thread.found = phase
        token |= self._starts % (1 << _STARTS_BITS) << 3 * _PHASE_BITS + 1
        return token | (run + 1) % (1 << _RUN_BITS) << 3 * _PHASE_BITS + 1 + _STARTS_BITS

    def leave(self, token: int) -> None:
        """Undo an ``enter()``."""
        if token < 0 or not self._active:
            return
        outer, found, phase = (token >> shift * _PHASE_BITS & 31 for shift in range(3))
        starts = token >> 3 * _PHASE_BITS + 1 & (1 << _STARTS_BITS) - 1
        run = token >> 3 * _PHASE_BITS + 1 + _STARTS_BITS
        if max(outer, found, phase) >= len(self._scopes):
            return
        if run == (self._recorder._run + 1) % (1 << _RUN_BITS):
            close_call(self._recorder, self._scopes[phase], self._recorder._run)
        if starts != self._starts % (1 << _STARTS_BITS):
            return
        thread = self._thread()
        self._switch(thread, outer)
        thread.found = found
        thread.held = bool(token >> 3 * _PHASE_BITS & 1)

    def take(self) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(now, ns by phase, bytes, allocations) of the calling thread since the last ``take()``."""
        thread = self._thread()
        now_ns = thread.charge(self._recorder._clock())
        taken = tuple(thread.phase_ns[: len(self._scopes)])
        thread.phase_ns = [0] * MAX_PHASES
        uncounted = (0,) * len(taken)
        return now_ns, taken, uncounted, uncounted

    def memory(self) -> list[tuple[int, ...]]:
        """What all threads have allocated and freed, by phase: nothing is counted here."""
        return [(0,) * 9 for _ in self._scopes]

    # What is wrapped.

    def phased(  # noqa: PLR0917 - as in C
        self,
        function: Callable[..., Any],
        phase: int,
        keeps: int,
        begun: Callable[[Any], object] | None,
        ended: Callable[[Any, Any, int, bool], object] | None,
        event: int = 0,  # noqa: ARG002 - what the core needs to follow the loop by itself
    ) -> Phased:
        """The function, a phase while it runs, but for the phases that ``keeps`` has as bits."""
        self._check_phase(phase)
        return Phased(self, function, phase=phase, keeps=keeps | 1 << phase, begun=begun, ended=ended)

    def step_call(self, function: Callable[..., Any]) -> StepCall:
        """The method of an optimizer that is its step, as a phase."""
        return StepCall(self, function)

    def module_call(self, function: Callable[..., Any], keeps: int, **asked: Any) -> ModuleCall:
        """What calls modules, each call recorded; for what is asked see ``Asked``."""
        return ModuleCall(self, function, keeps, Asked(**asked))

    def set_tensor_type(self, kind: type, unheard: Callable[[], Any] | None = None) -> None:
        """What a tensor is, for the backward marks; in the context only torch hears what is asked of one."""
        if not isinstance(kind, type):
            raise TypeError(f"{kind!r} is not a type")
        self._tensor_type = kind
        self._unheard = nullcontext if unheard is None else unheard

    # For the wrappers.

    def _call_back(self, callback: Callable[..., Any], *told: Any) -> Any:
        began_ns = self._recorder._clock()
        try:
            return callback(*told)
        except Exception as error:  # noqa: BLE001 - told, and never the program's
            self._note_failure(error)
        finally:
            self.hook_ns += self._recorder._clock() - began_ns
        return None

    def _note_failure(self, error: Exception) -> None:
        with suppress(Exception):
            self._failed(error)

    def _entry(self, module: Any) -> ModuleEntry | None:
        entry = self._entries.get(id(module))
        # Another module may have lived at this address.
        return entry if entry is not None and entry.weak() is module else None

    def _add_entry(self, module: Any, name: str, *, is_loss: bool) -> ModuleEntry:
        if len(self._entries) >= self._entries_allowed:
            self._entries = {key: entry for key, entry in self._entries.items() if entry.weak() is not None}
            self._entries_allowed = max(64, 2 * len(self._entries))
        entry = self._entries[id(module)] = ModuleEntry(module, self._recorder.scope(name), is_loss=is_loss)
        return entry

    # The backward pass by module.

    def _mark_tensors(
        self, thread: WatchedThread, modules: list[OpenModule], values: tuple[Any, ...]
    ) -> None:
        """Mark what a module got or gave."""
        began_ns = self._recorder._clock()
        with self._unheard():
            for value in values:
                self._mark_value(thread, modules, value, levels=2)
        self.hook_ns += self._recorder._clock() - began_ns

    def _mark_value(
        self, thread: WatchedThread, modules: list[OpenModule], value: Any, *, levels: int
    ) -> None:
        if self._tensor_type is not None and isinstance(value, self._tensor_type):
            try:
                self._mark_tensor(thread, modules, value)
            except Exception as error:  # noqa: BLE001 - told, and never the program's
                self._note_failure(error)
        elif levels and isinstance(value, (tuple, list, dict)):
            parts = list(value.values() if isinstance(value, dict) else value)
            for part in parts[:MAX_ITEMS]:
                self._mark_value(thread, modules, part, levels=levels - 1)

    def _mark_tensor(self, thread: WatchedThread, modules: list[OpenModule], tensor: Any) -> None:
        """Mark the node it came from as part of the innermost of the open modules it was made in.

        Autograd numbers its nodes as the forward pass makes them, and a backward pass on one thread
        runs them from the highest number down. So the nodes of a module's call run one after another.
        """
        node = tensor.grad_fn
        if node is None:
            return
        number = node._sequence_nr()
        if (thread, number) in self._marked:
            return
        self._marked.add((thread, number))
        depth = len(modules)
        while depth and number < modules[depth - 1].first_sequence:
            depth -= 1
        path = tuple(is_open.scope for is_open in modules[:depth])

        def met(*_gradients: object) -> None:
            self._mark_met(path)

        node.register_prehook(met)

    def _mark_met(self, path: tuple[Scope, ...]) -> None:
        thread: WatchedThread | None = getattr(self._local, "thread", None)
        # On a GPU's own thread, or in a pass that began unwatched, nobody would close what it opens.
        if self._active and thread is not None and thread.starts == self._starts and thread.in_backward:
            thread.marks_met += 1
            thread.follow(self._recorder, path)

    def _backward_ended(self, thread: WatchedThread, began_ns: int, *, raised: bool) -> None:
        thread.in_backward = False
        if not thread.marks_met:
            return
        thread.marks_met = 0
        thread.follow(self._recorder, ())
        if self._active and not raised:
            self.timed_backward_passes += 1
            self.timed_backward_ns += max(self._recorder._clock() - began_ns, 0)
