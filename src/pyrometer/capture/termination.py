"""Being told of SIGTERM without the program noticing.

The C core's handler is invisible to Python's ``signal`` module, so the program finds the
default there, as in plain Python. Without the core a Python handler has to do; because that is
not run while the main thread waits in C, ``signal.set_wakeup_fd`` announces the signal too. Either
is set only where the default action stands, and gives way to whatever the program sets.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

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
        others_fd = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _pass_on)
    except ValueError:  # only the main thread may: the default action stays
        return False
    if others_fd != -1:
        signal.set_wakeup_fd(others_fd)
    return True


def _unwatch_in_python() -> bool:
    if signal.getsignal(signal.SIGTERM) is not _pass_on:
        return False
    # Only the main thread may; on others our handler, called, gives way by itself.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        others_fd = signal.set_wakeup_fd(-1)
        if others_fd != _write_fd:
            signal.set_wakeup_fd(others_fd)
    return True


def _heard_in_python() -> None:
    """Nothing to do: no timer is running."""


# watch(write_fd): the first SIGTERM writes the byte "T" there instead of ending the process.
# unwatch(): the default action comes back. Each returns whether there was anything to do.
# heard(): the byte was read; until then the core ends the process three seconds after the signal,
# because a C call that keeps the GIL would keep us from reading it.
if KIND == "native":
    from pyrometer._native.core import sigterm_heard, unwatch_sigterm, watch_sigterm

    watch, unwatch, heard = watch_sigterm, unwatch_sigterm, sigterm_heard
else:
    watch, unwatch, heard = _watch_in_python, _unwatch_in_python, _heard_in_python


def is_announced(written: bytes) -> bool:
    """Whether these bytes, read from the pipe, tell of a SIGTERM."""
    return b"T" in written or bytes([signal.SIGTERM]) in written


def end_process() -> NoReturn:
    """End by SIGTERM, as the process would have ended without us."""
    unwatch()
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        # Still here: our Python handler gives way only when the main thread comes to run it.
        time.sleep(0.01)


@contextlib.contextmanager
def holding_interrupts_back() -> Iterator[None]:
    """Ctrl-C comes only afterwards.

    Not by a signal mask, which holds for one thread: others of the process would take the signal.
    """
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    except ValueError:  # only the main thread may, and only that is interrupted
        yield
        return
    try:
        yield
    finally:
        # None: set by C code, which Python cannot set again.
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
    if came:
        signal.raise_signal(signal.SIGINT)


def wait_for_the_end() -> NoReturn:
    """Let nothing more happen on this thread: another one is ending the process."""
    while True:
        # An interrupt would only let the fork go on: what a hook of it raises is ignored.
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(3_600)
