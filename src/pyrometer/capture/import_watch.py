"""Acts right after the program has imported a module, without importing it."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from pyrometer.capture.losses import note_failure

ModuleCallback = Callable[[ModuleType], None]

# Frames of this file's name are cut out of the traceback of a failed import, with their neighbours.
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def when_imported(name: str, callback: ModuleCallback) -> Callable[[], None]:
    """Call ``callback`` once with the module, as soon as it has been executed: now, if it is already there.

    The module, its ``__spec__`` and its loader are what they would be without this. An error of the
    callback is a loss. Returns what makes it wait no longer.
    """
    if (module := sys.modules.get(name)) is not None:
        _call(callback, module)
        return lambda: None
    _finder.waiting.setdefault(name, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    return lambda: _finder.forget(name, callback)


class _WatchingFinder:
    """Finds what the finders after it find, and reports a module waited for once it was executed."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[ModuleCallback]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.waiting:
            return None
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(name, path, target)
            if spec is not None:
                self._watch_execution(spec)
                return spec
        return None

    def _watch_execution(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        # A class is the loader of all built-in modules, which nobody waits for.
        if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        # On the loader itself: a stand-in would be seen by those who look at the spec first, as
        # many libraries do to learn whether another one is installed.
        def exec_module(module: ModuleType) -> None:
            if loader.__dict__.get("exec_module") is exec_module:
                del loader.__dict__["exec_module"]
            execute(module)
            if module.__name__ == spec.name:  # a zip file has one loader for all its modules
                self.executed(spec.name, module)

        exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORT_SYSTEM)
        try:
            loader.__dict__["exec_module"] = exec_module
        except Exception as error:  # noqa: BLE001 - the program gets its module all the same
            note_failure("imports", f"the import of {spec.name} was not seen", error)

    def executed(self, name: str, module: ModuleType) -> None:
        # As everyone else gets it: a module may have put another object in its place.
        module = sys.modules.get(name, module)
        for callback in self.waiting.pop(name, []):
            _call(callback, module)
        self._leave_when_done()

    def forget(self, name: str, callback: ModuleCallback) -> None:
        callbacks = self.waiting.get(name, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self.waiting.pop(name, None)
        self._leave_when_done()

    def _leave_when_done(self) -> None:
        # A new list: another thread may be going through the old one, and would miss a finder.
        if not self.waiting and self in sys.meta_path:
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]


def _call(callback: ModuleCallback, module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:  # noqa: BLE001 - the program's import is not ours to break
        note_failure("imports", f"what was to follow the import of {module.__name__} failed", error)


_finder = _WatchingFinder()
