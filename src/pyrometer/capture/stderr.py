"""Lines of ours on stderr, whatever the program has done to its streams."""

import contextlib
import os
import sys

from pyrometer.errors import PyrometerError


def say(line: str) -> None:
    """One line of ours."""
    # Not sys.stderr: that may be the program's own by now. If there was none when the program
    # started, the number may be a file of its own.
    if sys.__stderr__ is None:
        return
    with contextlib.suppress(OSError):
        os.write(2, f"pyrometer: {line}\n".encode("utf-8", "backslashreplace"))


def describe(error: BaseException) -> str:
    """An error in one line: ours are made for it, others need their type."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PyrometerError) else f"{type(error).__name__}: {text}"
