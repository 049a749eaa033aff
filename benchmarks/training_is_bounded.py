"""A training program of a hundred thousand steps under ``pyrometer run``: its memory and its run file.

The program reads its own size after the first ten thousand steps, in the middle and at the end. Until
the middle the bounded parts of the record fill: the points of memory over time within a minute, the
stacks as they are met, and what checkpoints take for a moment. Exits with 1 if from there to the end it
has grown by more than a megabyte beyond what it grows by itself, or if the run file is larger than
a megabyte.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyrometer.store.run_files import read_run
from pyrometer.units import format_bytes

EARLY_STEPS = 10_000
GROWTH_LIMIT_BYTES = 1_000_000
FILE_LIMIT_BYTES = 1_000_000

PROGRAM = """
import sys
from itertools import chain, repeat
import psutil, torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
batches = chain.from_iterable(repeat(loader))

def train(steps):
    for _ in range(steps):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return psutil.Process().memory_info().rss

early, middle, late = map(int, sys.argv[1:])
print(train(early), train(middle - early), train(late - middle))
"""


def sizes_of(command: list[str], steps: int, folder: Path) -> tuple[int, ...]:
    """The program's resident bytes early, in the middle and late."""
    finished = subprocess.run(
        [*command, str(EARLY_STEPS), str(steps // 2), str(steps)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return tuple(map(int, finished.stdout.split()))


def main() -> int:
    """Run, print the sizes, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Show that a run's size does not grow with its steps.")
    parser.add_argument("--steps", type=int, default=100_000, help="in all (default: %(default)s)")
    options = parser.parse_args()
    if options.steps < 4 * EARLY_STEPS:
        parser.error(f"--steps must be at least {4 * EARLY_STEPS}, not {options.steps}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, run_file = folder / "long.py", folder / "run.json"
        program.write_text(PROGRAM)
        plain = sizes_of([sys.executable, str(program)], options.steps, folder)
        command = [sys.executable, "-m", "pyrometer", "run", "-o", str(run_file), str(program)]
        profiled = sizes_of(command, options.steps, folder)
        file_bytes = run_file.stat().st_size
        seen = read_run(run_file).torch
    recorded = sum(group.steps for group in seen.groups) if seen is not None else 0
    print(f"{recorded:,} steps recorded")
    for label, (early_bytes, middle_bytes, late_bytes) in (("by itself", plain), ("pyrometer run", profiled)):
        growth = f"{format_bytes(middle_bytes - early_bytes)} more until {options.steps // 2:,}"
        growth += f", then {format_bytes(late_bytes - middle_bytes)} more"
        print(f"{label:<14} {early_bytes:>13,} bytes after {EARLY_STEPS:,} steps, {growth}")
    grown_bytes = (profiled[2] - profiled[1]) - max(plain[2] - plain[1], 0)
    checks = {
        f"all of {options.steps:,} steps recorded": recorded == options.steps,
        f"second half: grown by {format_bytes(grown_bytes)} more than by itself, limit "
        f"{format_bytes(GROWTH_LIMIT_BYTES)}": grown_bytes <= GROWTH_LIMIT_BYTES,
        f"run file {format_bytes(file_bytes)}, limit {format_bytes(FILE_LIMIT_BYTES)}": (
            file_bytes <= FILE_LIMIT_BYTES
        ),
    }
    for check, kept in checks.items():
        print(f"{'PASS' if kept else 'FAIL'}: {check}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
