"""Shares of processor time in functions as sampled, against what the program knows it spent there.

The program is run under ``pyrometer run``, and under py-spy where that is installed. Exits with 1 unless
each share of ours is within two points of the truth, over at least 6,000 samples.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from pyrometer.store.run_files import read_run

PROGRAM = Path(__file__).with_name("known_self_times.py")
LIMIT_POINTS = 2.0
MIN_SAMPLES = 6_000
KINDS = ("python", "numpy", "torch", "threads", "bursts")


def _truth(output: str) -> dict[str, float]:
    """By function, from the one line that is the program's own: py-spy says something after it."""
    told = next(line for line in output.splitlines() if line.startswith("{"))
    took_ns: dict[str, int] = json.loads(told)
    total_ns = sum(took_ns.values())
    return {name: 100 * ns / total_ns for name, ns in took_ns.items()}


def _shares(found: Counter[str], names: set[str]) -> dict[str, float]:
    total = sum(found[name] for name in names)
    return {name: 100 * found[name] / total if total else 0.0 for name in names}


def sampled_by_us(kind: str, seconds: float, hz: int) -> tuple[dict[str, float], dict[str, float], int]:
    """The truth, our shares, and from how many samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        command = [
            sys.executable,
            "-m",
            "pyrometer",
            "run",
            "--no-report",
            "-o",
            str(path),
            "--sample-hz",
            str(hz),
        ]
        output = _run([*command, str(PROGRAM), kind, str(seconds)])
        samples = read_run(path).samples
    if samples is None:
        raise SystemExit("FAIL: nothing was sampled here; `pyrometer doctor` tells more")
    truth = _truth(output)
    found: Counter[str] = Counter()
    count = 0
    for seen in samples.observations:
        name = samples.functions[samples.nodes[seen.stack].function].name
        if name in truth:
            found[name] += seen.cpu_ns
            count += seen.samples - seen.waiting
    return truth, _shares(found, set(truth)), count


def sampled_by_py_spy(kind: str, seconds: float, hz: int) -> dict[str, float] | None:
    """How far off it is, by function; None where it is not installed or may not look."""
    tool = Path(sysconfig.get_path("scripts"), "py-spy")
    if not tool.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stacks.txt")
        command = [str(tool), "record", "-r", str(hz), "-f", "raw", "-o", str(path), "--"]
        try:
            output = _run([*command, sys.executable, str(PROGRAM), kind, str(seconds)])
        except subprocess.CalledProcessError:
            return None
        truth = _truth(output)
        found: Counter[str] = Counter()
        for line in path.read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            found[stack.rpartition(";")[2].partition(" ")[0]] += int(count)
    shares = _shares(found, set(truth))
    return {name: shares[name] - truth[name] for name in truth}


def _run(command: list[str]) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True
    ).stdout


def judge(kind: str, seconds: float, hz: int) -> bool:
    """Print a line for each function; whether all are near enough to the truth."""
    truth, shares, samples = sampled_by_us(kind, seconds, hz)
    theirs = sampled_by_py_spy(kind, seconds, hz)
    all_kept = samples >= MIN_SAMPLES
    print(f"\n{kind}: {samples:,} samples{'' if all_kept else f', fewer than {MIN_SAMPLES:,}: FAIL'}")
    print(f"{'function':<12}{'truth %':>9}{'sampled %':>11}{'off':>8}{'py-spy off':>12}")
    for name in sorted(truth, key=lambda name: -truth[name]):
        off = shares[name] - truth[name]
        kept = abs(off) <= LIMIT_POINTS
        all_kept = all_kept and kept
        their_off = "" if theirs is None else f"{theirs[name]:+.2f}"
        verdict = "PASS" if kept else "FAIL"
        print(f"{name:<12}{truth[name]:>9.2f}{shares[name]:>11.2f}{off:>+8.2f}{their_off:>12}  {verdict}")
    return all_kept


def main() -> int:
    """Judge every kind of program."""
    parser = argparse.ArgumentParser(description="Compare sampled shares with known ones.")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each program (default: %(default)s)")
    parser.add_argument("--hz", type=int, default=1_000, help="samples a second (default: %(default)s)")
    options = parser.parse_args()
    kept = [judge(kind, options.seconds, options.hz) for kind in KINDS]
    print("\nPASS" if all(kept) else "\nFAIL: at least one share is too far off")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
