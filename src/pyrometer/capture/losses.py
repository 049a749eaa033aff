"""What our own hooks failed to do, counted: a profiler that raises breaks programs, one that hides lies."""

from collections import Counter

failures: Counter[tuple[str, str]] = Counter()
"""How often each (collector, reason) happened since the last ``reset()``."""

# An error's text may differ each time, and what is kept must not grow with the run.
_REASONS_KEPT = 20


def note_failure(collector: str, doing: str, error: BaseException) -> None:
    """Count a failure of ours; it becomes a ``Loss`` of the run."""
    reason = f"{doing}: {type(error).__name__}: {error}"
    if len(failures) >= _REASONS_KEPT and (collector, reason) not in failures:
        reason = f"{doing}: {type(error).__name__}"
    failures[collector, reason] += 1


def note_loss(collector: str, reason: str) -> None:
    """Count something that could not be seen, without an error of ours."""
    failures[collector, reason if len(failures) < _REASONS_KEPT else "more reasons than are kept"] += 1
