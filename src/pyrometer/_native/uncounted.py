"""Allocations where the Python twin records: they are not counted, and this says so."""

_REASON = "needs the compiled core"


def count_allocations() -> str | None:
    """Count what is allocated from now on; None, or why it cannot be counted."""
    return _REASON


def stop_counting_allocations() -> None:
    """Undo one ``count_allocations()``."""


def count_in_libraries() -> bool:
    """Count in the libraries that were loaded since the last look too; whether there were any."""
    return False


def why_tensors_are_uncounted() -> str | None:
    """None while torch's CPU tensors are counted."""
    return _REASON


def count_objects() -> str | None:
    """Count small Python objects too; None, or why they cannot be counted."""
    return _REASON


def stop_counting_objects() -> None:
    """Undo one ``count_objects()``."""


def note_allocation_sites(_sampled_bytes: int) -> str | None:
    """Note where in the program memory is allocated; None, or why that cannot be."""
    return _REASON


def reset_allocations() -> None:
    """Forget the process's figures so far."""


def allocation_totals() -> tuple[tuple[int, int], ...] | None:
    """Bytes and calls of the calling thread while counted; None when not counting."""
    return None


def begin_own_work() -> bool:
    """From now on the calling thread works for the profiler; False if that was so already."""
    return False


def end_own_work() -> None:
    """The calling thread works for the program again."""


def process_allocations() -> dict[str, object]:
    """What all threads have allocated and freed; never asked for, as it is not counted."""
    raise RuntimeError(_REASON)


def allocation_sites_seen() -> dict[str, object] | None:
    """The stacks that were noted: none ever."""
    return None
