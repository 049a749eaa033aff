"""What our own hooks failed to do, counted: a profiler that raises breaks programs, one that hides lies."""

from collections import Counter

failures: Counter[tuple[str, str]] = Counter()
"""How often each (collector, reason) happened since the last ``reset()``."""


def note_failure(collector: str, doing: str, error: BaseException) -> None:
    """Count a failure of ours; it becomes a ``Loss`` of the run."""
    failures[collector, f"{doing}: {type(error).__name__}: {error}"] += 1
