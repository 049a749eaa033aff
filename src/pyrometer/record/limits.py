"""The limits of a machine: what its cores and its memory reach at best, measured.

Each figure is the best of short repetitions spread over seconds, with their median beside it. What was
not measured is named with the reason, never 0.
"""

import hashlib
from typing import Annotated, Literal

import msgspec

from pyrometer.record.values import Count, Nanoseconds, Value

LIMITS_FORMAT: Literal["pyrometer-limits"] = "pyrometer-limits"
LIMITS_VERSION: Literal[1] = 1

KERNELS_VERSION = 2
"""Raised when the kernels, or what is told from them, change: older figures are then measured again."""

PRECISIONS = ("f32", "f64", "bf16")
PRODUCT_PRECISIONS = ("f32", "f64")
"""Of the products that are measured without a library."""
ARITHMETIC = ("fma", "gemm", "library gemm")
"""Multiply and add in registers; a product of square matrices by a kernel of ours, and by a library.

Before version 2 of the kernels ``gemm`` was the library's.
"""
ACCESSES = ("triad", "streaming triad", "read")

CONTENDED_ABOVE = 1.3
"""Best against median: beyond it something else was using the machine."""

_MAX_FIGURES = 64
_Text = Annotated[str, msgspec.Meta(max_length=200)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
_Time = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
_Threads = Annotated[int, msgspec.Meta(ge=1, le=65_536)]


class FlopRate(Value, frozen=True, kw_only=True):
    """Floating-point operations a second; a multiplication with an addition is two."""

    kind: str
    """One of ``ARITHMETIC``."""
    precision: str
    """One of ``PRECISIONS``."""
    threads: _Threads
    best_flops_per_s: _Rate
    median_flops_per_s: _Rate
    repetitions: Count

    @property
    def contended(self) -> bool:
        """Whether something else seems to have used the machine meanwhile."""
        return self.best_flops_per_s > CONTENDED_ABOVE * self.median_flops_per_s


class Bandwidth(Value, frozen=True, kw_only=True):
    """Bytes a second that a program asks for: the line a plain store reads first is not counted."""

    kind: str
    """One of ``ACCESSES``."""
    threads: _Threads
    best_bytes_per_s: _Rate
    median_bytes_per_s: _Rate
    repetitions: Count

    @property
    def contended(self) -> bool:
        """Whether something else seems to have used the machine meanwhile."""
        return self.best_bytes_per_s > CONTENDED_ABOVE * self.median_bytes_per_s


class StridedAccess(Value, frozen=True, kw_only=True):
    """Reading each ``stride``-th f32 of a long array, for each thread."""

    stride: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    threads: _Threads
    best_ns_per_element: _Time
    median_ns_per_element: _Time
    repetitions: Count

    @property
    def contended(self) -> bool:
        """Whether something else seems to have used the machine meanwhile."""
        return self.median_ns_per_element > CONTENDED_ABOVE * self.best_ns_per_element


class Latency(Value, frozen=True, kw_only=True):
    """One load that the next one waits for, in random order over ``working_set_bytes``."""

    level: _Text
    """``L1``, ``L2``, ``L3`` or ``memory``: where that many bytes fit."""
    working_set_bytes: Count
    threads: _Threads
    best_ns: _Time
    median_ns: _Time
    repetitions: Count

    @property
    def contended(self) -> bool:
        """Whether something else seems to have used the machine meanwhile."""
        return self.median_ns > CONTENDED_ABOVE * self.best_ns


class Cache(Value, frozen=True, kw_only=True):
    """A data cache as the system describes it."""

    level: Annotated[int, msgspec.Meta(ge=1, le=9)]
    size_bytes: Count
    shared_by: _Threads = 1
    """Logical cores that use one."""
    count: _Threads = 1
    """How many there are for the cores this process may use."""


class NotMeasured(Value, frozen=True, kw_only=True):
    """A figure there is none of, and why."""

    figure: _Text
    reason: _Text


class Limits(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What one machine reaches. ``threads`` is what "all" means: each figure is for 1 or for so many."""

    format: Literal["pyrometer-limits"] = LIMITS_FORMAT
    version: Literal[1] = LIMITS_VERSION
    kernels_version: Count
    """Figures of other kernels are not compared with these."""
    measured_at: Annotated[str, msgspec.Meta(max_length=64)]
    """ISO 8601 with the offset to UTC."""
    measured_ns: Nanoseconds
    cpu_model: _Text | None
    architecture: _Text
    usable_cores: Count | None
    threads: _Threads
    instruction_set: _Text
    """What the kernels were made of: ``AVX2``."""
    gemm_library: _Text | None = None
    """``torch 2.13.0``; None where there was none."""
    array_bytes: Count
    """The size of each array that one thread read and wrote."""
    caches: Annotated[tuple[Cache, ...], msgspec.Meta(max_length=9)] = ()
    flop_rates: Annotated[tuple[FlopRate, ...], msgspec.Meta(max_length=_MAX_FIGURES)] = ()
    bandwidths: Annotated[tuple[Bandwidth, ...], msgspec.Meta(max_length=_MAX_FIGURES)] = ()
    strided: Annotated[tuple[StridedAccess, ...], msgspec.Meta(max_length=_MAX_FIGURES)] = ()
    latencies: Annotated[tuple[Latency, ...], msgspec.Meta(max_length=_MAX_FIGURES)] = ()
    not_measured: Annotated[tuple[NotMeasured, ...], msgspec.Meta(max_length=_MAX_FIGURES)] = ()

    @property
    def last_level_bytes(self) -> int | None:
        """The size of the largest cache; None where the system does not tell."""
        return max((cache.size_bytes for cache in self.caches), default=None)

    @property
    def identity(self) -> str:
        """What the machine is known by."""
        return machine_identity(cpu_model=self.cpu_model, usable_cores=self.usable_cores)


def machine_identity(*, cpu_model: str | None, usable_cores: int | None) -> str:
    """A short name for machines whose limits are taken to be the same, as measured by these kernels."""
    facts = f"{cpu_model}|{usable_cores}|{KERNELS_VERSION}"
    return hashlib.sha256(facts.encode("utf-8", "replace")).hexdigest()[:16]
