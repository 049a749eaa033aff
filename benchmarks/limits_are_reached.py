"""Whether the measured limits are limits that programs reach, and how long measuring takes.

    python benchmarks/limits_are_reached.py

Measures as ``pyrometer limits`` does, as often as ``--rounds`` says, and keeps the best of each figure;
but for torch, which takes seconds to load, it waits as long as that takes. PASS: products of f32
and of f64 on one thread come to at least 90 % of the FMA peak and not above it, each level of memory is
slower than the one before, and the command itself takes at most 10 s.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise

from pyrometer.machine.limits import measure_limits
from pyrometer.record.limits import Limits
from pyrometer.units import format_rate

LEAST_OF_PEAK = 0.90
MOST_OF_PEAK = 1.02
LONGEST_S = 10.0
WAIT_FOR_TORCH_S = 60.0


def time_the_command() -> float:
    """How long ``pyrometer limits --fresh`` takes, from start to end."""
    command = [sys.executable, "-m", "pyrometer", "limits", "--fresh"]
    with tempfile.TemporaryDirectory() as cache:
        began_s = time.monotonic()
        subprocess.run(command, env=os.environ | {"XDG_CACHE_HOME": cache}, capture_output=True, check=True)
        return time.monotonic() - began_s


def verdict(*, passed: bool, text: str) -> bool:
    """Print a line and pass its truth on."""
    print(f"{'PASS' if passed else 'FAIL'}  {text}")
    return passed


def judge(measured: list[Limits], took_s: float) -> bool:
    """All verdicts, printed."""
    flops: dict[tuple[str, str, int], float] = {}
    for limits in measured:
        for rate in limits.flop_rates:
            key = (rate.kind, rate.precision, rate.threads)
            flops[key] = max(flops.get(key, 0.0), rate.best_flops_per_s)
    passed = True
    for precision in ("f32", "f64"):
        gemm, fma = flops.get(("gemm", precision, 1), 0.0), flops["fma", precision, 1]
        share = gemm / fma
        text = f"GEMM {precision}, 1 thread: {format_rate(gemm, 'FLOP')} of {format_rate(fma, 'FLOP')}"
        wanted = f"wanted {LEAST_OF_PEAK:.0%} to {MOST_OF_PEAK:.0%}"
        passed &= verdict(
            passed=LEAST_OF_PEAK <= share <= MOST_OF_PEAK, text=f"{text}, {share:.1%}; {wanted}"
        )
    latencies: dict[str, float] = {}
    for limits in measured:
        for latency in limits.latencies:
            if latency.threads == 1:
                latencies[latency.level] = min(latencies.get(latency.level, 1e9), latency.best_ns)
    text = " < ".join(f"{level} {time_ns:.2f} ns" for level, time_ns in latencies.items())
    ordered = all(near < far for near, far in pairwise(latencies.values()))
    passed &= verdict(passed=ordered, text=f"latencies, 1 thread: {text}")
    text = f"the command took {took_s:.1f} s, wanted at most {LONGEST_S:.0f} s"
    return verdict(passed=took_s <= LONGEST_S, text=text) and passed


def main() -> None:
    """Measure, judge, and say so with the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    measured = []
    for _ in range(parser.parse_args().rounds):
        limits = measure_limits(libraries_within_s=WAIT_FOR_TORCH_S)
        best = max(one.best_bytes_per_s for one in limits.bandwidths if one.threads == 1)
        peak = next(one.best_flops_per_s for one in limits.flop_rates if one.kind == "fma")
        print(f"FMA f32 {format_rate(peak, 'FLOP')}, {format_rate(best, 'B')}, 1 thread")
        measured.append(limits)
    passed = judge(measured, time_the_command())
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
