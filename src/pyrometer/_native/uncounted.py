"""Allocations where the Python twin records: they are not counted, and this says so."""


def count_allocations() -> str | None:
    """Count what torch allocates for CPU tensors from now on; None, or why it cannot be counted."""
    return "needs the compiled core"


def stop_counting_allocations() -> None:
    """Undo one ``count_allocations()``."""


def allocation_totals() -> tuple[int, int] | None:
    """Bytes and calls the calling thread has allocated while counted; None when not counting."""
    return None
