"""The process's resident memory over the run."""

from dataclasses import dataclass

from pyrometer.record.run import Memory
from pyrometer.stats.rates import SECOND_NS, slope

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
    steady = [(float(at_ns), float(size), 1.0) for at_ns, size in memory.series if at_ns >= steady_from_ns]
    per_ns = slope(steady) if len(steady) >= FEWEST_SAMPLES else None
    return MemoryResult(
        peak_bytes=memory.peak_bytes,
        first_bytes=memory.series[0][1] if memory.series else None,
        last_bytes=memory.series[-1][1] if memory.series else None,
        growth_bytes_per_second=None if per_ns is None else per_ns * SECOND_NS,
        growth_bytes_per_step=None if per_ns is None or step_ns is None else per_ns * step_ns,
        growth_samples=len(steady),
        series=memory.series,
    )
