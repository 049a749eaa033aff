"""Acts right after the program has imported a module, without importing it.

While somebody waits, the one function through which Python's import system executes modules is
replaced. ``sys.meta_path``, specs and loaders stay what they are.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pyrometer._native import KIND
from pyrometer.capture.losses import note_failure
from pyrometer.capture.patches import Patches

ModuleCallback = Callable[[ModuleType], None]

_import_system: Any = importlib._bootstrap  # noqa: SLF001 - there is no other way
_EXECUTES = "_call_with_frames_removed"

_waiting: dict[str, list[ModuleCallback]] = {}
_patches = Patches()


def when_imported(name: str, callback: ModuleCallback) -> Callable[[], None]:
    """Call ``callback`` once with the module, as soon as it has been executed: now, if it is already there.

    One that another thread is importing is waited for. An error of the callback is a loss. Returns
    what makes it wait no longer.
    """
    if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
        _import_system._lock_unlock_module(name)  # noqa: SLF001 - what an import of it would do
    if (module := sys.modules.get(name)) is not None:
        _call(callback, module)
        return lambda: None
    _waiting.setdefault(name, []).append(callback)
    if not _patches.is_installed(_import_system, _EXECUTES):
        _patches.remove()
        _patches.replace(_import_system, _EXECUTES, _telling(getattr(_import_system, _EXECUTES)))
    return lambda: _forget(name, callback)


def _forget(name: str, callback: ModuleCallback) -> None:
    callbacks = _waiting.get(name, [])
    if callback in callbacks:
        callbacks.remove(callback)
    if not callbacks:
        _waiting.pop(name, None)
    _leave_when_done()


def _leave_when_done() -> None:
    if not _waiting:
        _patches.remove()


def _executed(name: str) -> None:
    # As everyone else gets it: a module may have put another object in its place.
    module = sys.modules.get(name)
    if module is None:
        return  # executed by hand, and not imported
    for callback in _waiting.pop(name, []):
        _call(callback, module)
    _leave_when_done()


def _call(callback: ModuleCallback, module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:  # noqa: BLE001 - the program's import is not ours to break
        note_failure("imports", f"what was to follow the import of {module.__name__} failed", error)


def _telling(execute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which calls ``exec`` and others, telling of modules waited for."""
    if KIND == "native":
        from pyrometer._native.core import executing

        return executing(execute, _waiting, _executed)

    def _call_with_frames_removed(function: Any, *arguments: Any, **named: Any) -> Any:
        result = execute(function, *arguments, **named)
        if function is exec and (name := arguments[-1].get("__name__")) in _waiting:
            _executed(name)
        return result

    # Python knows by this name which frames of the import system to leave out of tracebacks; where
    # it does not, as in those through importlib.import_module(), the twin's frame is seen.
    _call_with_frames_removed.__code__ = _call_with_frames_removed.__code__.replace(
        co_filename=execute.__code__.co_filename
    )
    return _call_with_frames_removed
