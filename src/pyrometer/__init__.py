"""Pyrometer finds the hot paths of neural-network code.

Mark code with ``scope("name")`` and ``@profiled``. Nothing is recorded until the program runs
under ``pyrometer run``, inside ``with profile():``, or with ``PYROMETER=1`` in its environment.

PYTEST_DONT_REWRITE: else pytest would warn where ``pyrometer run`` has loaded us before it.
"""

from __future__ import annotations

import os
import sys

# First: importing a package sets its name here, and `report` below is to be the function.
import pyrometer.report  # noqa: F401
from pyrometer._version import __version__
from pyrometer.capture.decorator import profiled
from pyrometer.capture.marks import phase, step
from pyrometer.capture.recording import profile, reset, scope
from pyrometer.errors import PyrometerError

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyrometer.analysis.results import Results
    from pyrometer.capture.benchmarks import benchmark
    from pyrometer.integrations.flags import add_profile_flag

__all__ = [
    "PyrometerError",
    "__version__",
    "add_profile_flag",
    "benchmark",
    "phase",
    "profile",
    "profiled",
    "report",
    "reset",
    "results",
    "scope",
    "step",
]


def results() -> Results:
    """What has been recorded so far, by name, as a tree and by thread; recording goes on."""
    from pyrometer import session

    return session.results()


def report(top: int = 20, *, by_thread: bool = False) -> str:
    """The report of what has been recorded so far, with the ``top`` largest scopes; recording goes on.

    ``by_thread`` shows the tree of each thread by itself.
    """
    from pyrometer import session

    return session.report(top, by_thread=by_thread)


def __getattr__(name: str) -> Any:
    # Behind the first use: argparse and inspect each are a good part of what our import may cost.
    if name == "add_profile_flag":
        from pyrometer.integrations.flags import add_profile_flag

        globals()[name] = add_profile_flag
        return add_profile_flag
    if name == "benchmark":
        from pyrometer.capture.benchmarks import benchmark

        globals()[name] = benchmark
        return benchmark
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_our_own_command() -> bool:
    script = sys.argv[0] if sys.argv else ""
    # With -m, Python writes only that into argv until it has found the module.
    return script.endswith("/pyrometer") or (script == "-m" and "pyrometer" in sys.orig_argv)


# A launched program is recorded already, and our own commands are no programs to record.
if os.environ.get("PYROMETER") == "1" and "PYROMETER_LAUNCH" not in os.environ and not _is_our_own_command():
    from pyrometer.session import profile_by_environment

    profile_by_environment()
