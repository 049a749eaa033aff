"""Timers placed by hand around each phase of training programs, against what a run says of them.

The programs run under ``pyrometer run`` and print what their own timers said, step by step. A phase's
error is the mean over steps, of that the median over runs. Exits with 1 unless every phase is within
2 % of the timers, or within 20 µs a step, whichever is more. What is in no phase is the rest of the
step, so that the edges of all phases add up there: it may be off by 20 µs for each of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pyrometer.record.torch_run import MAX_FIRST_STEPS, OTHER
from pyrometer.store.run_files import read_run

PROGRAM = Path(__file__).with_name("training_by_hand.py")
RELATIVE_LIMIT = 0.02
LIMIT_NS = 20_000
WARM_UP_STEPS = 10

# By phase, for each run: what the timers said and what the run says, in ns a step.
Readings = dict[str, list[tuple[float, float]]]


def run_once(model: str, steps: int, readings: Readings) -> None:
    """Run a program and add what both say of each phase."""
    with tempfile.TemporaryDirectory() as folder:
        run_file = Path(folder, "run.json")
        command = [sys.executable, "-m", "pyrometer", "run", "-o", str(run_file), str(PROGRAM), model]
        finished = subprocess.run(
            [*command, "--steps", str(steps)],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seen = read_run(run_file).torch
    by_hand = json.loads(finished.stdout)
    if seen is None or [(group.kind, group.steps) for group in seen.groups] != [("training", steps)]:
        raise SystemExit(f"FAIL: {model} made {steps} training steps, recorded was something else")
    (group,) = seen.groups
    for phase in by_hand[0]:
        place = group.phases.index(phase)
        true_ns = statistics.fmean(step[phase] for step in by_hand[WARM_UP_STEPS:])
        seen_ns = statistics.fmean(step.phase_ns[place] for step in group.first[WARM_UP_STEPS:])
        readings.setdefault(phase, []).append((true_ns, seen_ns))


def judge(model: str, readings: Readings) -> bool:
    """Print a line for each phase; whether all are near enough to the timers."""
    all_kept = True
    for phase, seen in readings.items():
        true_ns = statistics.median(true for true, _ in seen)
        error_ns = statistics.median(measured - true for true, measured in seen)
        edges_ns = LIMIT_NS * (len(readings) - 1)
        allowed_ns = edges_ns if phase == OTHER else max(RELATIVE_LIMIT * true_ns, LIMIT_NS)
        kept = abs(error_ns) <= allowed_ns
        all_kept = all_kept and kept
        figures = f"{true_ns / 1e3:>12.1f} {error_ns / 1e3:>+12.2f} {error_ns / true_ns:>+10.2%}"
        print(f"{f'{model}: {phase}':<32}{figures} {allowed_ns / 1e3:>12.1f}  {'PASS' if kept else 'FAIL'}")
    return all_kept


def main() -> int:
    """Run every program, print every phase's error, and say whether all keep the limit."""
    parser = argparse.ArgumentParser(description="Compare the phases of a run with timers placed by hand.")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of each run (default: %(default)s)")
    options = parser.parse_args()
    if not WARM_UP_STEPS < options.steps <= MAX_FIRST_STEPS:
        parser.error(f"--steps must be {WARM_UP_STEPS + 1} to {MAX_FIRST_STEPS}, not {options.steps}")
    print(f"Python {sys.version.split()[0]}, median of {options.repeats} runs of {options.steps} steps")
    print(f"{'phase':<32}{'by hand µs':>12} {'error µs':>12} {'error':>10} {'allowed µs':>12}")
    all_kept = True
    for model in ("net", "transformer", "convnet"):
        readings: Readings = {}
        for _ in range(options.repeats):
            run_once(model, options.steps, readings)
        all_kept = judge(model, readings) and all_kept
    print("PASS" if all_kept else "FAIL: at least one phase is too far from the timers")
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
