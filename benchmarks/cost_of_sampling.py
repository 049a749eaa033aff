"""What sampling costs a program: ``pyrometer run`` with samples against the same without.

How it is measured: ``program_costs.py``. Exits with 1 unless the whole interval of each ratio is shown
to lie within its limit.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from program_costs import Workload, add_options, conclude, show, small_net
from training_tools import CONTROL, PLAIN, Tool

PROGRAM_IN_PYTHON = Path(__file__).with_name("python_program.py")
LIMITS = {"100 samples a second": 1.02, "1,000 samples a second": 1.08}
PATIENCE_S = 20.0

WORKLOADS = (
    small_net(LIMITS),
    Workload(letter="b", name="transformer", title="4-layer transformer", steps=4, limits=LIMITS),
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
    add_options(parser, WORKLOADS)
    print(f"{PLAIN!r} is here: under pyrometer run, without samples")
    _, missed = show(WORKLOADS, TOOLS, parser.parse_args(), patience_s=PATIENCE_S)
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main())
