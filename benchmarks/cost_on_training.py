"""What profiling costs a training program: ours and other tools, each started by its own command.

How it is measured: ``program_costs.py``. Exits with 1 unless ``pyrometer run`` is shown to keep its
limits: the whole interval of its ratio, on every program, and the time from the program's last line to
the end of the report.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from program_costs import Workload, conclude, show, small_net
from training_tools import CONTROL, PLAIN, PYROMETER, TOOLS, Tool

REPORT_LIMIT_S = 1.0
# Some tools work for minutes on what they have gathered, at the end or in between.
PATIENCE_S = 20.0
QUICK_PATIENCE_S = 8.0

WORKLOADS = (
    small_net({PYROMETER: 1.05}),
    Workload(
        letter="b",
        name="transformer",
        title="4-layer transformer, 8 × 64 tokens",
        steps=4,
        limits={PYROMETER: 1.02},
    ),
    Workload(
        letter="c", name="convnet", title="convnet, 32 images of 32 × 32", steps=4, limits={PYROMETER: 1.02}
    ),
)


def chosen_tools(names: Sequence[str] | None) -> list[Tool]:
    """The un-profiled program twice, and the tools asked for, those that are installed."""
    wanted = [
        tool
        for tool in TOOLS
        if tool.name in {PLAIN, CONTROL} or names is None or any(name in tool.name for name in names)
    ]
    missing = [tool.needs for tool in wanted if tool.needs is not None and not tool.installed]
    if missing:
        print(f"not installed: {', '.join(missing)} (make bench-run installs them)\n")
    return [tool for tool in wanted if tool.installed]


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description="Measure what profiling costs a training program.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no other tools unless named")
    parser.add_argument(
        "--only", metavar="LETTERS", default="abc", help="the programs (default: %(default)s)"
    )
    parser.add_argument("--tools", nargs="+", metavar="NAME", help="those with one of these in their name")
    parser.add_argument("--rounds", type=int, help="fresh processes of each tool (default: 15, quick: 3)")
    parser.add_argument("--turns", type=int, help="visits to each process (default: 60, quick: 30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args(arguments)
    if options.quick and options.tools is None:
        options.tools = [PYROMETER]
    options.rounds = options.rounds or (3 if options.quick else 15)
    options.turns = options.turns or (30 if options.quick else 60)
    return options


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    options = options_of()
    rows, missed = show(
        WORKLOADS,
        chosen_tools(options.tools),
        options,
        patience_s=QUICK_PATIENCE_S if options.quick else PATIENCE_S,
    )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    missed += [
        f"report within {REPORT_LIMIT_S:g} s on {row.workload}"
        for row in rows
        if row.tool == PYROMETER and (row.end_s is None or row.end_s > REPORT_LIMIT_S)
    ]
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main())
