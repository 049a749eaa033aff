"""The roofline: which limit of the machine holds a piece of work back, and how near it comes to it.

A piece of work does so many floating-point operations and moves so many bytes. The machine's roofs are
what it can do of each in a second. Operations for each byte, the intensity, tell which roof is the
nearer one; far below both, what holds it back is neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.limits import Bandwidth, FlopRate, Limits
from pyrometer.stats.rates import per, per_second

FAR_BELOW_SHARE = 0.3
OVERHEAD_BELOW_NS = 50_000


class Bound(Enum):
    """What holds a piece of work back."""

    COMPUTE = "compute-bound"
    MEMORY = "memory-bound"
    OVERHEAD = "overhead-bound"
    """Under 30 % of both roofs, and each call under 50 µs: starting the work takes more than doing it."""
    NEITHER = "below both"
    """Under 30 % of both roofs with longer calls: something else holds it back."""
    NOT_PLACED = "not placed"


_SOURCES = {"fma": "FMA", "gemm": "GEMM", "library gemm": "GEMM of a library"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A piece of work: a phase, a module, an operator. All figures are for ``calls`` calls."""

    name: str
    kind: str
    """``step``, ``phase``, ``module`` or ``operator``."""
    calls: float
    """How often work was started: the operators in a phase, or the modules where those are not known."""
    duration_ns: float
    flops: float | None
    """None: not counted. 0: nothing to count, as in a ReLU."""
    moved_bytes: float | None
    """None: not known."""
    at_least: bool = False
    """Some of it has no formula: operations and bytes are at least so many."""
    estimated: bool = False
    unknown: str = ""
    """Why ``flops`` or ``moved_bytes`` is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """What the machine can do in a second, on as many threads as the program used."""

    threads: int
    precision: str
    flops_per_s: float
    flops_source: str
    """``FMA f32``."""
    bytes_per_s: float
    bytes_source: str
    """``streaming triad``."""
    contended: bool
    """Whether either was measured beside something else."""

    @property
    def ridge(self) -> float:
        """The intensity at which the roofs meet: work below it waits for memory at best."""
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A piece of work below the roofs."""

    work: Work
    bound: Bound
    reason: str
    """Why it is not placed; empty where it is."""
    intensity: float | None
    """Operations for each byte."""
    flops_per_s: float | None
    bytes_per_s: float | None
    compute_share: float | None
    """Achieved of the arithmetic there is."""
    memory_share: float | None
    """Achieved of the bandwidth there is; above 1 the data came from caches."""
    roof_share: float | None
    """Of the nearer roof: what would be left to gain without moving less or computing less."""


def roofs_of(limits: Limits, *, threads: int | None, precision: str) -> Roofs | None:
    """The roofs for so many threads: those of one thread for one, else those of all.

    None where there is no figure for the precision, or none of bandwidth.
    """
    count = 1 if threads == 1 else limits.threads
    rates = [rate for rate in limits.flop_rates if (rate.precision, rate.threads) == (precision, count)]
    bandwidths = [bandwidth for bandwidth in limits.bandwidths if bandwidth.threads == count]
    if not rates or not bandwidths:
        return None
    rate: FlopRate = max(rates, key=lambda rate: rate.best_flops_per_s)
    bandwidth: Bandwidth = max(bandwidths, key=lambda bandwidth: bandwidth.best_bytes_per_s)
    return Roofs(
        threads=count,
        precision=precision,
        flops_per_s=rate.best_flops_per_s,
        flops_source=f"{_SOURCES.get(rate.kind, rate.kind)} {precision}",
        bytes_per_s=bandwidth.best_bytes_per_s,
        bytes_source=bandwidth.kind,
        contended=rate.contended or bandwidth.contended,
    )


def place_all(works: Iterable[Work], roofs: Roofs) -> tuple[Placed, ...]:
    """Each piece of work below the roofs, in the order given."""
    return tuple(place(work, roofs) for work in works)


def place(work: Work, roofs: Roofs) -> Placed:
    """Where a piece of work stands."""
    flops_per_s = per_second(work.flops, work.duration_ns)
    bytes_per_s = per_second(work.moved_bytes, work.duration_ns)
    compute_share = per(flops_per_s, roofs.flops_per_s)
    memory_share = per(bytes_per_s, roofs.bytes_per_s)
    bound, reason = _bound(work, compute_share, memory_share)
    placed = bound is not Bound.NOT_PLACED
    return Placed(
        work=work,
        bound=bound,
        reason=reason,
        intensity=per(work.flops, work.moved_bytes),
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        compute_share=compute_share,
        memory_share=memory_share,
        roof_share=max(compute_share or 0.0, memory_share or 0.0) if placed else None,
    )


def _bound(work: Work, compute_share: float | None, memory_share: float | None) -> tuple[Bound, str]:
    if work.flops is None or work.moved_bytes is None:
        return Bound.NOT_PLACED, work.unknown or "FLOPs and bytes are not counted"
    if compute_share is None or memory_share is None:
        return Bound.NOT_PLACED, "no time could be measured"
    if not work.flops and not work.moved_bytes:
        return Bound.NOT_PLACED, "nothing is computed or moved that is counted"
    call_ns = per(work.duration_ns, work.calls)
    if max(compute_share, memory_share) < FAR_BELOW_SHARE:
        return (Bound.OVERHEAD if call_ns is not None and call_ns < OVERHEAD_BELOW_NS else Bound.NEITHER), ""
    # The same as comparing the intensity with the ridge.
    return (Bound.COMPUTE if compute_share >= memory_share else Bound.MEMORY), ""
