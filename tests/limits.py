"""Limits of machines that do not exist."""

import itertools

from pyrometer.record.limits import (
    KERNELS_VERSION,
    Bandwidth,
    Cache,
    FlopRate,
    Latency,
    Limits,
    NotMeasured,
    StridedAccess,
)

_G = 1e9
_BANDWIDTHS = (("triad", 20.0, 24.0), ("streaming triad", 30.0, 36.0), ("read", 18.0, 32.0))
_ARITHMETIC = (
    ("fma", "f32", 100.0, 200.0),
    ("fma", "f64", 50.0, 100.0),
    ("gemm", "f32", 95.0, 180.0),
    ("gemm", "f64", 47.5, 96.0),
    ("library gemm", "f32", 90.0, 170.0),
    ("library gemm", "f64", 44.0, 88.0),
    ("library gemm", "bf16", 0.8, 1.5),
)


def make_limits(*, cpu_model: str = "Example CPU", contended: bool = False) -> Limits:
    """Two cores of 100 GFLOP/s each, 36 GB/s together; contended: products' medians are half their best."""
    median = 0.5 if contended else 0.96
    return Limits(
        kernels_version=KERNELS_VERSION,
        measured_at="2026-03-01T10:00:00+01:00",
        measured_ns=6_200_000_000,
        cpu_model=cpu_model,
        architecture="x86_64",
        usable_cores=2,
        threads=2,
        instruction_set="AVX2",
        gemm_library="torch 2.13.0",
        array_bytes=128 << 20,
        caches=(
            Cache(level=1, size_bytes=32 << 10, count=2),
            Cache(level=2, size_bytes=512 << 10, count=2),
            Cache(level=3, size_bytes=32 << 20, shared_by=2),
        ),
        flop_rates=tuple(
            FlopRate(
                kind=kind,
                precision=precision,
                threads=threads,
                best_flops_per_s=best * _G,
                median_flops_per_s=best * _G * (0.99 if kind == "fma" else median),
                repetitions=14,
            )
            for kind, precision, *rates in _ARITHMETIC
            for threads, best in zip((1, 2), rates, strict=True)
        ),
        bandwidths=tuple(
            Bandwidth(
                kind=kind,
                threads=threads,
                best_bytes_per_s=best * _G,
                median_bytes_per_s=best * _G * 0.9,
                repetitions=14,
            )
            for kind, *rates in _BANDWIDTHS
            for threads, best in zip((1, 2), rates, strict=True)
        ),
        strided=tuple(
            StridedAccess(
                stride=stride,
                threads=threads,
                best_ns_per_element=min(0.35 * stride, 8.0) * threads,
                median_ns_per_element=min(0.36 * stride, 8.2) * threads,
                repetitions=14,
            )
            for threads, stride in itertools.product((1, 2), (1, 2, 4, 8, 16, 1_024))
        ),
        latencies=tuple(
            Latency(
                level=level,
                working_set_bytes=size_bytes,
                threads=threads,
                best_ns=time_ns * threads,
                median_ns=time_ns * threads * 1.1,
                repetitions=14,
            )
            for threads, (level, size_bytes, time_ns) in itertools.product(
                (1, 2),
                (
                    ("L1", 8 << 10, 1.25),
                    ("L2", 128 << 10, 3.75),
                    ("L3", 4 << 20, 15.0),
                    ("memory", 128 << 20, 110.0),
                ),
            )
        ),
        not_measured=(NotMeasured(figure="fma bf16", reason="this processor has no instruction for it"),),
    )
