"""What counting allocations costs a program: alone, with the lines that allocate, beside other tools.

How it is measured: ``program_costs.py``. The un-profiled program has scopes too, where it has any: they
are off. Exits with 1 unless the whole interval of each ratio that has a limit is shown to lie within it.
"""

import argparse
import sys
from pathlib import Path

from program_costs import Workload, add_options, conclude, show, small_net
from training_tools import CONTROL, LAUNCHERS, PLAIN, TOOLS, Tool, python_command

ALLOCATING = Path(__file__).with_name("allocating_program.py")
COUNTING = "scopes and allocations counted"
OBJECTS = "small Python objects too"
PATIENCE_S = 20.0
LAUNCHER = str(LAUNCHERS / "counting.py")

WORKLOADS = (
    small_net({COUNTING: 1.02}),
    Workload(
        letter="g",
        name="generation",
        title="tokens of a small GPT, with scopes",
        steps=4,
        limits={COUNTING: 1.01},
        program=ALLOCATING,
    ),
    Workload(letter="o", name="objects", title="objects in pure Python", steps=6, program=ALLOCATING),
)


def counting_tools(*, peers: bool) -> list[Tool]:
    """The plain program twice, ours, and what else counts allocations and is installed."""
    ours = (
        Tool(name=COUNTING, command=python_command(LAUNCHER)),
        Tool(name=OBJECTS, command=python_command(LAUNCHER, "--python-memory")),
    )
    chosen = {PLAIN, CONTROL, *(("memray", "scalene") if peers else ())}
    others = [tool for tool in TOOLS if tool.name in chosen and tool.installed]
    return [*others[:2], *ours, *others[2:]]


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Measure what counting allocations costs.")
    add_options(parser, WORKLOADS)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    _, missed = show(WORKLOADS, counting_tools(peers=options.peers), options, patience_s=PATIENCE_S)
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main())
