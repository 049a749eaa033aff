"""Counts under valgrind against programs whose work is known.

More work: each program runs with 20 equal blocks and with 21, with the same hash seed on both sides, and
its instructions have to be 5 % more, within 0.3 points, for the median over seeds. Access: a loop in C
reads bytes that stand 2, 16 and 64 bytes apart, and has to miss the first cache once for each line, within
5 %. Exits with 1 unless all of it holds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from counted_program import BLOCKS, ELEMENTS

from pyrometer.record.counters import CacheCounts, CacheSimulation
from pyrometer.store.run_files import read_run

BLOCKS_BEFORE, BLOCKS_AFTER = 20, 21
INJECTED = BLOCKS_AFTER / BLOCKS_BEFORE - 1
LIMIT = 0.003
STRIDES = (2, 16, 64)
STRIDE_LIMIT = 0.05

PROGRAM = Path(__file__).with_name("counted_program.py")


def count(kind: str, amount: int, *, seed: int, folder: Path) -> tuple[CacheCounts, CacheSimulation]:
    """What valgrind counts in the scope ``work`` of one run."""
    run_file = folder / "run.json"
    command = [
        *(sys.executable, "-m", "pyrometer", "run", "--quiet", "--cachegrind-scope", "work"),
        *("-o", str(run_file), str(PROGRAM), kind, str(amount)),
    ]
    finished = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(seed)}, check=False)
    if finished.returncode != 0:
        sys.exit(finished.returncode)
    counters = read_run(run_file).counters
    simulated = None if counters is None else counters.simulated
    if simulated is None or simulated.counts is None:
        sys.exit(f"nothing was counted: {'no counters' if simulated is None else simulated.reason}")
    return simulated.counts, simulated


def check_injected(kind: str, seeds: int, folder: Path) -> bool:
    """Whether 5 % more work reads as 5 % more instructions."""
    changes = []
    for seed in range(1, seeds + 1):
        before, _ = count(kind, BLOCKS_BEFORE, seed=seed, folder=folder)
        after, simulated = count(kind, BLOCKS_AFTER, seed=seed, folder=folder)
        changes.append(after.instructions / before.instructions - 1)
        slowdown = "unknown" if simulated.slowdown is None else f"{simulated.slowdown:.0f} ×"
        counts = f"{before.instructions:14,} {after.instructions:14,}"
        print(f"{kind:8} {seed:4} {counts} {100 * changes[-1]:+9.3f} % {slowdown:>9}")
    again, _ = count(kind, BLOCKS_BEFORE, seed=seed, folder=folder)
    change = statistics.median(changes)
    holds = abs(change - INJECTED) <= LIMIT
    repeated = f"the last one again {100 * (again.instructions / before.instructions - 1):+.4f} %"
    injected = f"injected {100 * INJECTED:+.1f} %"
    print(f"{kind:8} median {100 * change:+.3f} %, {injected}; {repeated}: {verdict(holds=holds)}\n")
    return holds


def check_stride(stride: int, folder: Path) -> bool:
    """Whether bytes so far apart miss the first cache once for each line."""
    counts, simulated = count("stride", stride, seed=0, folder=folder)
    line_bytes = next(cache.line_bytes for cache in simulated.caches if cache.name == "D1")
    expected = min(stride / line_bytes, 1)
    measured = counts.d1_read_misses / ELEMENTS
    rate = counts.d1_read_misses / counts.reads
    holds = abs(measured / expected - 1) <= STRIDE_LIMIT
    print(
        f"{stride:6} B {expected:10.4f} {measured:10.4f} {100 * rate:9.2f} % {counts.ll_read_misses:10,}"
        f"  {verdict(holds=holds)}"
    )
    return holds


def verdict(*, holds: bool) -> str:
    """The word that is looked for."""
    return "PASS" if holds else "FAIL"


def main() -> None:
    """Count, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="hash seeds for each program (default 5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{BLOCKS_AFTER - BLOCKS_BEFORE} block more than {BLOCKS_BEFORE}, instructions in the scope")
        print(f"{'program':8} {'seed':>4} {'before':>14} {'after':>14} {'change':>11} {'slower':>9}")
        held = [check_injected(kind, options.seeds, folder) for kind in BLOCKS]
        print(f"reading {ELEMENTS:,} bytes, misses of D1 for each")
        print(f"{'stride':>8} {'expected':>10} {'measured':>10} {'of reads':>11} {'LL misses':>10}")
        held += [check_stride(stride, folder) for stride in STRIDES]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
