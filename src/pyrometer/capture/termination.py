"""Being told of SIGTERM without the program noticing.

The C core's handler is invisible to Python's ``signal`` module, so the program finds the
default there, as in plain Python. Without the core a Python handler has to do. Either is set
only where the default action stands, and gives way to whatever handler the program sets.
"""

import contextlib
import os
import signal
from types import FrameType

from pyrometer._native import KIND

_write_fd = -1


def _pass_on(_signal: int, _frame: FrameType | None) -> None:
    # A second SIGTERM then ends the process at once, as the first would have.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.write(_write_fd, b"T")


def _watch_in_python(write_fd: int) -> bool:
    global _write_fd
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return False
    _write_fd = write_fd
    try:
        signal.signal(signal.SIGTERM, _pass_on)
    except ValueError:  # only the main thread may: the default action stays
        return False
    return True


def _unwatch_in_python() -> bool:
    if signal.getsignal(signal.SIGTERM) is not _pass_on:
        return False
    # Only the main thread may; on others our handler, called, gives way by itself.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return True


# watch(write_fd): the first SIGTERM writes the byte "T" there instead of ending the process.
# unwatch(): the default action comes back. Each returns whether there was anything to do.
if KIND == "native":
    from pyrometer._native.core import unwatch_sigterm, watch_sigterm

    watch, unwatch = watch_sigterm, unwatch_sigterm
else:
    watch, unwatch = _watch_in_python, _unwatch_in_python
