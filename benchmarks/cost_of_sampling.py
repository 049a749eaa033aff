"""What sampling costs a program: ``pyrometer run`` with samples against the same without.

How it is measured: ``program_costs.py``. Exits with 1 unless the whole interval of each ratio is shown
to lie within its limit.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from program_costs import Workload, measure, render
from training_tools import CONTROL, PLAIN, Tool

PROGRAM_IN_PYTHON = Path(__file__).with_name("python_program.py")
LIMITS = {"100 samples a second": 1.02, "1,000 samples a second": 1.08}
PATIENCE_S = 20.0

WORKLOADS = (
    Workload(letter="a", name="net", title="3-layer net, batch 32, Adam", steps=8, limits=LIMITS),
    Workload(letter="b", name="transformer", title="4-layer transformer", steps=1, limits=LIMITS),
    Workload(
        letter="p", name="python", title="pure Python", steps=8, limits=LIMITS, program=PROGRAM_IN_PYTHON
    ),
)


def _command(hz: int, program: Sequence[str], folder: Path) -> list[str]:
    run = [sys.executable, "-m", "pyrometer", "run", "--no-report", "-o", str(folder / "run.json")]
    return [*run, "--sample-hz", str(hz), *program]


TOOLS = tuple(
    Tool(name=name, command=partial(_command, hz))
    for name, hz in (
        (PLAIN, 0),
        (CONTROL, 0),
        ("100 samples a second", 100),
        ("1,000 samples a second", 1_000),
    )
)


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Measure what sampling costs.")
    parser.add_argument(
        "--only", metavar="LETTERS", default="abp", help="the programs (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=15, help="fresh processes of each (default: %(default)s)"
    )
    parser.add_argument("--turns", type=int, default=40, help="visits to each process (default: %(default)s)")
    options = parser.parse_args()
    shuffler = random.Random(0)
    print(f"Python {sys.version.split()[0]}, one thread, {options.rounds} rounds of {options.turns} turns")
    print(f"{PLAIN!r} is here: under pyrometer run, without samples")
    missed = []
    for workload in WORKLOADS:
        if workload.letter in options.only:
            figures = measure(
                workload,
                TOOLS,
                rounds=options.rounds,
                turns=options.turns,
                shuffler=shuffler,
                patience_s=PATIENCE_S,
            )
            print(f"\n{render(workload, figures, rounds=options.rounds)}", flush=True)
            missed += [
                f"{name} on {workload.name}"
                for name, row in figures.items()
                if row is None or row.verdict not in {"", "PASS"}
            ]
    print(f"\nFAIL: not shown to keep the limit: {', '.join(missed)}" if missed else "\nPASS")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
