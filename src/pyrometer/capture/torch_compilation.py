"""Keeps our replacements out of what torch compiles, scripts and traces, and counts what Dynamo did.

Dynamo gives up in silence on code that goes through a function it does not know, so ours are off
while it works. What it guards on must stay as it was when it looked: a function put back
afterwards would make every call compile anew.
"""

import contextlib
import functools
import importlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from pyrometer.capture.import_watch import when_imported
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.patches import Patches
from pyrometer.record.torch_run import Compilation

_REASONS_SHOWN = 10
_REASONS_KEPT = 1_000

# What looks at the program's functions, or keeps hold of some, apart from Dynamo's compiling of a frame.
_LOOKERS = (
    ("torch.jit._script", None, "_script_impl"),
    ("torch.fx._symbolic_trace", "Tracer", "trace"),
    ("torch._dynamo.eval_frame", "OptimizedModule", "_initialize"),
    # Export and compiling ahead of time come here without a word to the callbacks.
    ("torch._dynamo.convert_frame", None, "compile_frame"),
)

_WRAPPED = "__wrapped__"

_Function = TypeVar("_Function", bound=Callable[..., Any])


class CompilationWatch:
    """Suspends ``patches`` while torch looks at the program's code; installed once torch is there.

    Nothing of this is visible to the program: Dynamo makes the graphs, breaks and guards it would
    make without us. A replaced function that compiled code depends on is retired, which is a loss.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._patches = Patches()
        self._hooks = Patches()
        self._cancel: list[Callable[[], None]] = []
        self._counters: dict[str, dict[str, int]] = {}
        self._graphs = self._graphs_seen = 0
        self._breaks: dict[str, int] = {}
        self._breaks_seen: dict[str, int] = {}
        self._recompilations = 0
        self._compile_ns = 0
        self._began_ns: int | None = None

    def install(self, patches: Patches) -> None:
        """Act from now on; ``torch._dynamo`` is waited for, not imported."""
        self._patches = patches
        for module_name, owner, name in _LOOKERS:
            hook = functools.partial(self._hook_looker, owner, name)
            self._cancel.append(when_imported(module_name, hook))
        self._cancel.append(when_imported("torch._dynamo", self._hook_dynamo))

    def remove(self) -> None:
        """Leave everything as it was before ``install()``."""
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        self._hooks.remove()
        self._ended()

    def reset(self) -> None:
        """Forget what was compiled."""
        self._collect()
        self._graphs, self._breaks = 0, {}
        self._recompilations = self._compile_ns = 0
        if self._began_ns is not None:
            self._began_ns = self._clock_ns()

    def record(self) -> Compilation | None:
        """What was compiled while installed, since the last ``reset()``; None when nothing was."""
        self._collect()
        compile_ns = self._compile_ns
        if self._began_ns is not None:
            compile_ns += max(self._clock_ns() - self._began_ns, 0)
        breaks = Counter(self._breaks)
        if not (self._graphs or breaks.total() or compile_ns):
            return None
        return Compilation(
            graphs=self._graphs,
            graph_breaks=breaks.total(),
            recompilations=self._recompilations,
            compile_ns=compile_ns,
            break_reasons=tuple((+breaks).most_common(_REASONS_SHOWN)),
        )

    # What is hooked.

    def _hook_looker(self, owner_name: str | None, name: str, module: ModuleType) -> None:
        owner = module if owner_name is None else getattr(module, owner_name)
        theirs = getattr(owner, name)

        @functools.wraps(theirs)
        def look(*arguments: Any, **named: Any) -> Any:
            if "_frames_up" in named:  # which counts frames up to the caller's names, now with this one
                named["_frames_up"] += 1
            with self._suspended():
                return theirs(*arguments, **named)

        self._hooks.replace(owner, name, look)

    def _hook_dynamo(self, _: ModuleType) -> None:
        # Our own functions run inside compiled code too, and Dynamo would compile them.
        importlib.import_module("torch._dynamo.trace_rules").add("pyrometer")
        callback = importlib.import_module("torch._dynamo.callback")
        guards = importlib.import_module("torch._dynamo.guards")
        self._counters = importlib.import_module("torch._dynamo.utils").counters
        graphs, breaks = self._graphs, dict(self._breaks)
        self._collect()
        self._graphs, self._breaks = graphs, breaks  # what was compiled unwatched is not ours to count
        handler = callback.callback_handler
        # Not registered as callbacks: torch._dynamo.reset() forgets those.
        run_start_callbacks, run_end_callbacks = handler.run_start_callbacks, handler.run_end_callbacks

        def start(*arguments: Any) -> None:
            _undisturbed(self._began)
            run_start_callbacks(*arguments)

        def end(*arguments: Any) -> None:
            _undisturbed(self._ended)
            run_end_callbacks(*arguments)

        self._hooks.replace(handler, "run_start_callbacks", start)
        self._hooks.replace(handler, "run_end_callbacks", end)
        build_guards = guards.CheckFunctionManager.__init__

        @functools.wraps(build_guards)
        def build(manager: Any, code: Any, *arguments: Any, **named: Any) -> None:
            with self._suspended():
                build_guards(manager, code, *arguments, **named)
                self._guards_built(manager, code)

        self._hooks.replace(guards.CheckFunctionManager, "__init__", build)

    # What happens then.

    @contextlib.contextmanager
    def _suspended(self) -> Iterator[None]:
        self._show_through()
        self._patches.suspend()
        try:
            yield
        finally:
            self._patches.resume()

    def _began(self) -> None:
        """Compiling begins, on any thread; Dynamo tells of the first only, while several do."""
        if self._began_ns is None:
            self._collect()
            self._show_through()
            self._patches.suspend()
            self._began_ns = self._clock_ns()

    def _ended(self) -> None:
        if self._began_ns is not None:
            self._compile_ns += max(self._clock_ns() - self._began_ns, 0)
            self._began_ns = None
            self._patches.resume()
            self._collect()

    def _show_through(self) -> None:
        """Have Dynamo see the program's function in ours, for a program that has taken ours by its name."""
        if "torch._dynamo" not in sys.modules:
            return
        try:
            for owner, name, theirs in self._patches:
                if self._patches.is_installed(owner, name):
                    _show_through(vars(owner)[name], theirs)
        except Exception as error:  # noqa: BLE001 - the program compiles all the same
            note_failure("torch.compile", "compiled code may break at our functions", error)

    def _guards_built(self, manager: Any, code: Any) -> None:
        eval_frame = importlib.import_module("torch._dynamo.eval_frame")
        try:
            if eval_frame._debug_get_cache_entry_list(code):  # noqa: SLF001 - there is no other way to ask
                self._recompilations += 1
            guarded = _ids_guarded(str(manager.guard_manager))
        except Exception as error:  # noqa: BLE001 - what cannot be checked stays off
            note_failure("torch.compile", "the guards of compiled code could not be read", error)
            guarded = None
        for owner, name, theirs in self._patches:
            if guarded is None or guarded & {id(theirs), id(getattr(theirs, "__code__", None))}:
                self._patches.retire(owner, name)
                place = f"{theirs.__module__}.{theirs.__qualname__}"
                note_loss("torch.compile", f"no longer timed, being inside compiled code: {place}")

    # What was counted.

    def _collect(self) -> None:
        """Add what the counters grew by: often, since the program may clear them in between."""
        # Not by [], which would add what is absent.
        graphs = self._counters.get("stats", {}).get("unique_graphs", 0)
        breaks = dict(self._counters.get("graph_break", {}))
        self._graphs += _growth(self._graphs_seen, graphs)
        for reason, count in breaks.items():
            grown = _growth(self._breaks_seen.get(reason, 0), count)
            first_line = reason.strip().partition("\n")[0]
            if first_line not in self._breaks and len(self._breaks) >= _REASONS_KEPT:
                first_line = "others"
            self._breaks[first_line] = self._breaks.get(first_line, 0) + grown
        self._graphs_seen, self._breaks_seen = graphs, breaks


class Uncompiled:
    """While it is entered, Dynamo compiles nothing: work of ours may call functions of torch's."""

    def __enter__(self) -> None:
        # Not through contextlib: functions of ours it passes over, those of others it would compile.
        self._set_eval_frame = importlib.import_module("torch._C._dynamo.eval_frame").set_eval_frame
        self._theirs = self._set_eval_frame(None)

    def __exit__(self, *_: object) -> None:
        self._set_eval_frame(self._theirs)


def _undisturbed(work: Callable[[], None]) -> None:
    """Do work of ours without raising, and without Dynamo compiling what it calls.

    Dynamo holds a lock around its callbacks, which it would wait for in vain.
    """
    with Uncompiled():
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the program compiles all the same
            note_failure("torch.compile", "a compilation was not seen", error)


def unseen_by_dynamo(function: _Function) -> _Function:
    """A hook of ours that Dynamo takes for one that does nothing, where it compiles the call of it."""
    function._torchdynamo_inline = _do_nothing  # type: ignore[attr-defined]  # noqa: SLF001 - Dynamo's own mark
    return function


def _do_nothing(*_: object) -> None:
    return None


# As if outside our package, in which it compiles nothing.
_do_nothing.__code__ = _do_nothing.__code__.replace(co_filename="<hook>")


def _growth(before: int, now: int) -> int:
    return now - before if now >= before else now


def _ids_guarded(guards: str) -> set[int]:
    """The objects whose identity is checked; not those looked up in ours, which stays what it is."""
    return {
        int(number)
        for line in guards.splitlines()
        if f".{_WRAPPED}" not in line
        for number in re.findall(r"\b\d{6,}\b", line)
    }


def _show_through(ours: Any, theirs: Any) -> None:
    if isinstance(ours, FunctionType):
        ours._torchdynamo_inline = theirs  # type: ignore[attr-defined]  # noqa: SLF001 - Dynamo's own mark
        return
    builder = importlib.import_module("torch._dynamo.variables.builder")
    dispatch = builder.VariableBuilder._type_dispatch()  # noqa: SLF001 - it takes no other types
    dispatch.setdefault(type(ours), _build_variable)


def _build_variable(builder: Any, ours: Any) -> Any:
    """Dynamo's view of one of our wrappers: the function in it."""
    guards = importlib.import_module("torch._dynamo.guards")
    functions = importlib.import_module("torch._dynamo.variables.functions")
    base = importlib.import_module("torch._dynamo.variables.base")
    builder.install_guards(guards.GuardBuilder.TYPE_MATCH)
    return functions.WrapperUserFunctionVariable(
        ours, _WRAPPED, source=builder.source, mutation_type=base.AttributeMutationExisting()
    )
