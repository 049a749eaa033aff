"""What profiling costs a training program: ours and other tools, each started by its own command.

In every round each tool has one fresh process of the same program, all warm, visited in turn in
random order for a few steps at a time, and held still in between. A ratio is only ever taken between
blocks of the same turn; a round's figure is the median over its turns, the figure given the median
over rounds with its 99 % interval. A second un-profiled process shows what the machine alone does to
a ratio: where its own interval leaves out 1, no verdict is given. A tool that stops answering is left
out of the rounds that follow. The ratio of processor time, over
all threads of the process, is shown beside it.

Exits with 1 unless ``pyrometer run`` is shown to keep its limits: the whole interval of its ratio, on
every program, and the time from the program's last line to the end of the report.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from interleaved import Ratio, ratio
from training_tools import CONTROL, PLAIN, PYROMETER, TOOLS, Tool
from visited_processes import NoAnswerError, VisitedProcess

PROGRAM = Path(__file__).with_name("training_program.py")
REPORT_LIMIT_S = 1.0
# Some tools work for minutes on what they have gathered, at the end or in between.
PATIENCE_S = 20.0
QUICK_PATIENCE_S = 8.0
NEEDED = {PLAIN, CONTROL, PYROMETER}
# The range of n values holds their median with a probability of 1 - 2 ** (1 - n): from eight on, 99 %.
MIN_ROUNDS = 8
TOO_FEW = "no verdict: too few rounds"
VOID = "VOID: the control is off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A program, how many of its steps make a block, and what we may cost on it."""

    letter: str
    name: str
    title: str
    steps: int
    limit: float


WORKLOADS = (
    Workload(letter="a", name="net", title="3-layer net, batch 32, Adam", steps=8, limit=1.05),
    Workload(letter="b", name="transformer", title="4-layer transformer, 8 × 64 tokens", steps=1, limit=1.02),
    Workload(letter="c", name="convnet", title="convnet, 32 images of 32 × 32", steps=1, limit=1.02),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One tool's process in one round. ``end_s``: from its last line to its report; None: not waited for."""

    ratio: float
    cpu_ratio: float
    step_ns: float
    end_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool's figures on one workload; ``verdict`` is empty where there is no limit."""

    workload: str
    tool: str
    rounds: int
    step_ms: float
    ratio: Ratio
    cpu_ratio: Ratio
    end_s: float | None
    limit: float | None
    verdict: str


def one_round(
    workload: Workload, tools: Sequence[Tool], *, turns: int, shuffler: random.Random, patience_s: float
) -> dict[str, Reading]:
    """A fresh process of each tool, all visited in every turn; a tool that stops answering is left out."""
    program = [str(PROGRAM), workload.name, "--blocks"]
    with contextlib.ExitStack() as stack:
        started: dict[str, VisitedProcess] = {}
        for tool in shuffler.sample(tools, len(tools)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cost-on-training-")))
            started[tool.name] = VisitedProcess(
                tool.command(program, folder), folder, os.environ, patience_s=patience_s, stopped=tool.stopped
            )
            stack.callback(started[tool.name].kill)
        processes: dict[str, VisitedProcess] = {}
        for name, process in started.items():
            with _given_up(name):
                process.wait_until_warm()
                processes[name] = process
        wall_ns: dict[str, list[float]] = {name: [] for name in processes}
        cpu_ns: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(turns):
            for name in shuffler.sample(list(processes), len(processes)):
                process = processes.pop(name)
                with _given_up(name):
                    step_ns, step_cpu_ns = process.visit(workload.steps)
                    wall_ns[name].append(step_ns)
                    cpu_ns[name].append(step_cpu_ns)
                    processes[name] = process
        return {
            name: Reading(
                ratio=ratio(wall_ns, name, PLAIN).estimate,
                cpu_ratio=ratio(cpu_ns, name, PLAIN).estimate,
                step_ns=statistics.median(wall_ns[name]),
                end_s=process.finish(),
            )
            for name, process in processes.items()
        }


@contextlib.contextmanager
def _given_up(tool: str) -> Iterator[None]:
    """Go on without a tool that does not answer, unless there is nothing to tell without it."""
    try:
        yield
    except NoAnswerError:
        if tool in NEEDED:
            raise


def row_for(tool: str, workload: Workload, rounds: Sequence[Mapping[str, Reading]]) -> Row | None:
    """A tool's figures over all rounds; None if it never came to the end of one."""
    readings = [readings_of_round[tool] for readings_of_round in rounds if tool in readings_of_round]
    if not readings:
        return None
    figure = _over_rounds([reading.ratio for reading in readings])
    ends_s = [reading.end_s for reading in readings if reading.end_s is not None]
    control = _over_rounds([readings_of_round[CONTROL].ratio for readings_of_round in rounds])
    limit = workload.limit if tool == PYROMETER else None
    return Row(
        workload=workload.name,
        tool=tool,
        rounds=len(readings),
        step_ms=statistics.median(reading.step_ns for reading in readings) / 1e6,
        ratio=figure,
        cpu_ratio=_over_rounds([reading.cpu_ratio for reading in readings]),
        end_s=statistics.median(ends_s) if ends_s else None,
        limit=limit,
        verdict="" if limit is None else judge(figure, limit, control=control, rounds=len(readings)),
    )


def _over_rounds(ratios: Sequence[float]) -> Ratio:
    return ratio({"ratio": ratios, "reference": [1.0] * len(ratios)}, "ratio", "reference")


def judge(figure: Ratio, limit: float, *, control: Ratio, rounds: int) -> str:
    """PASS when the whole interval lies within the limit, FAIL when all of it lies beyond, else UNCLEAR.

    No verdict is given where the figures cannot bear one: from fewer rounds than an interval takes, or
    while two processes of the same un-profiled program are told apart.
    """
    if rounds < MIN_ROUNDS:
        return TOO_FEW
    if not control.low <= 1 <= control.high:
        return VOID
    if figure.high <= limit:
        return "PASS"
    return "FAIL" if figure.low > limit else "UNCLEAR"


def render(workload: Workload, figures: Mapping[str, Row | None], *, rounds: int) -> str:
    """The table of one workload."""
    interval = f"{'99 % interval' if rounds >= MIN_ROUNDS else 'range of rounds':>16}"
    ratios = f"{'ratio':>6}  {interval}  {'CPU ratio':>9}  {interval}"
    heads = f"{'ms a step':>10}  {ratios}  {'end, s':>7}  {'limit':>7}"
    lines = [f"{f'({workload.letter}) {workload.title}':<40}{heads}"]
    for tool, row in figures.items():
        if row is None:
            lines.append(f"{tool:<40}{'–':>10}  stopped answering")
            continue
        interval = f"{row.ratio.low:.3f} to {row.ratio.high:.3f}"
        cpu_interval = f"{row.cpu_ratio.low:.3f} to {row.cpu_ratio.high:.3f}"
        end = "" if row.end_s is None else f"{row.end_s:.2f}"
        limit = "" if row.limit is None else f"≤ {row.limit:g}"
        timed = f"{row.step_ms:>10.3f}  {row.ratio.estimate:>6.3f}  {interval:>16}"
        cpu = f"{row.cpu_ratio.estimate:>9.3f}  {cpu_interval:>16}"
        told = row.verdict if row.rounds == rounds else f"stopped answering after {row.rounds} rounds"
        lines.append(f"{tool:<40}{timed}  {cpu}  {end:>7}  {limit:>7}  {told}".rstrip())
    return "\n".join(lines)


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
    parser.add_argument("--seed", type=int, default=0, help="of the order in which processes are visited")
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
    tools = chosen_tools(options.tools)
    shuffler = random.Random(options.seed)
    print(f"Python {sys.version.split()[0]}, one thread, {options.rounds} rounds of {options.turns} turns")
    rows: list[Row] = []
    for workload in WORKLOADS:
        if workload.letter not in options.only:
            continue
        patience_s = QUICK_PATIENCE_S if options.quick else PATIENCE_S
        rounds: list[dict[str, Reading]] = []
        for _ in range(options.rounds):
            answering = [tool for tool in tools if not rounds or tool.name in rounds[-1]]
            rounds.append(
                one_round(workload, answering, turns=options.turns, shuffler=shuffler, patience_s=patience_s)
            )
        figures = {tool.name: row_for(tool.name, workload, rounds) for tool in tools}
        print(f"\n{render(workload, figures, rounds=options.rounds)}", flush=True)
        rows += [row for row in figures.values() if row is not None]
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    missed = [f"cost on {row.workload}" for row in rows if row.verdict not in {"", "PASS"}]
    missed += [
        f"report within {REPORT_LIMIT_S:g} s on {row.workload}"
        for row in rows
        if row.tool == PYROMETER and (row.end_s is None or row.end_s > REPORT_LIMIT_S)
    ]
    print(f"\nFAIL: not shown to keep the limit: {', '.join(missed)}" if missed else "\nPASS")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
