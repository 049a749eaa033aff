"""Starts the profiler inside the program's own interpreter, before its first line.

``pyrometer run`` replaces itself by a plain ``python SCRIPT`` with this folder first on
PYTHONPATH, and ``site`` imports this module. It takes itself away again (from the path, the
environment and ``sys.modules``), lets the program's own ``sitecustomize`` run, and starts the
recorder. So what the program can see of Python is what plain Python shows it, by construction.

At the top only what every interpreter has loaded anyway: all else must be seen by ``_step_aside``.
"""

import os
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
_LAUNCH = "PYROMETER_LAUNCH"


class _Launch:
    """The start of the profiler in two halves, before and after the program's ``sitecustomize``.

    Whatever fails is one line on stderr, and the program runs unprofiled.
    """

    def __init__(self) -> None:
        began_ns = time.perf_counter_ns()
        self._failed = False
        try:
            self._prepare()
        except Exception as error:  # noqa: BLE001 - the program runs whatever happens to us
            self._give_up(error)
        finally:
            os.environ.pop(_LAUNCH, None)
        self._prepared_ns = time.perf_counter_ns() - began_ns

    def start(self) -> None:
        """Start to record."""
        if self._failed:
            return
        began_ns = time.perf_counter_ns()
        try:
            self._start_launched(**self._options, began_ns=began_ns - self._prepared_ns)
        except Exception as error:  # noqa: BLE001 - the program runs whatever happens to us
            self._give_up(error)

    def _prepare(self) -> None:
        loaded_before = set(sys.modules)
        sys.path[:] = [entry for entry in sys.path if os.path.normpath(entry) != _HERE]
        sys.path_importer_cache.pop(_HERE, None)

        import json

        self._options = json.loads(os.environ[_LAUNCH])
        _restore_variable("PYTHONPATH", self._options.pop("python_path"))
        program_folder = self._options.pop("program_folder")
        # Last, so that it serves only where pyrometer is not installed for this interpreter.
        sys.path.append(_ROOT)
        try:
            from pyrometer.session import start_launched, start_paced
        finally:
            sys.path.remove(_ROOT)
        self._start_launched = start_paced if "turns_fd" in self._options else start_launched
        if program_folder is not None:
            _step_aside(loaded_before, program_folder)

    def _give_up(self, error: Exception) -> None:
        self._failed = True
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        line = f"pyrometer: the program runs unprofiled: {problem}\n"
        # If there was no stderr at the start, the number may be a file of the program's.
        if sys.__stderr__ is not None:
            try:
                os.write(2, line.encode("utf-8", "backslashreplace"))
            except OSError:
                return  # nobody is there to read it, and the program runs all the same


def _restore_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _step_aside(loaded_before: set[str], program_folder: str) -> None:
    """Forget modules of ours that the program has by the same name in its own folder.

    Its ``import random`` has to find its own ``random.py``, as in plain Python; we keep what we
    have loaded. Names that lead to the very same file stay: a second recorder would see nothing.
    """
    from importlib.machinery import PathFinder

    for name in {module.partition(".")[0] for module in set(sys.modules) - loaded_before}:
        theirs = PathFinder.find_spec(name, [program_folder])
        ours = getattr(sys.modules.get(name), "__file__", None)
        # Without an origin it is a mere folder, which any module further down the path goes before.
        if name in sys.builtin_module_names or theirs is None or theirs.origin is None:
            continue
        if ours is not None and os.path.exists(ours) and os.path.samefile(theirs.origin, ours):
            continue
        for module in [loaded for loaded in sys.modules if loaded.partition(".")[0] == name]:
            del sys.modules[module]


if _LAUNCH in os.environ:
    _launch = _Launch()
    sys.modules.pop("sitecustomize", None)
    try:
        # The program's own. Without one the error goes to `site`, which expects it and says nothing.
        import sitecustomize as _  # type: ignore[import-not-found]  # noqa: F401
    finally:
        _launch.start()
