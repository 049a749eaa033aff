"""What a recorder asks about the thread it finds itself on."""

from __future__ import annotations

import threading

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POSITION_ATTRIBUTE = "_pyrometer_position"


def describe_current_thread() -> tuple[int, str, Any]:
    """Id and name of the calling thread, and the position it was started at, or None.

    A thread that Python did not start is left unknown to ``threading``, as it was.
    """
    thread_id = threading.get_ident()
    # current_thread() would register a dummy for a foreign thread: a change the program can see.
    thread = threading._active.get(thread_id)  # type: ignore[attr-defined]  # noqa: SLF001
    if thread is None:
        return thread_id, f"thread {thread_id}", None
    # Not .name, a function of the library's: inside code that torch compiles, it would be compiled too.
    name = getattr(thread, "_name", None) or f"thread {thread_id}"
    return thread_id, name, getattr(thread, POSITION_ATTRIBUTE, None)
