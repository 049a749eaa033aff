"""The process's resident memory over the run."""

from dataclasses import dataclass

from pyrometer.record.run import Memory

FEWEST_SAMPLES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult:
    """Resident memory of the process; growth is told only from eight samples on."""

    peak_bytes: int
    first_bytes: int | None
    """When recording began; None without samples, likewise ``last_bytes``."""
    last_bytes: int | None
    growth_bytes_per_second: float | None
    """Least squares over the samples after the warm-up; negative when it shrinks."""
    growth_bytes_per_step: float | None
    """The same over a steady step of the main group."""
    growth_samples: int
    """Samples after the warm-up."""
    series: tuple[tuple[int, int], ...]
    """(time since recording began, bytes) pairs."""


def build_memory(memory: Memory, *, steady_from_ns: int = 0, step_ns: float | None = None) -> MemoryResult:
    """Peak, first, last and growth; ``steady_from_ns`` is when the warm-up ended."""
    ...
