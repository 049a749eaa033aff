"""What a way to start a program costs it: fresh processes of each, warm, visited in turn.

In every round each tool has one fresh process of the same program, visited in random order for a few
steps at a time, and held still in between. A ratio is only ever taken between blocks of the same turn;
a round's figure is the median over its turns, the figure given the median over rounds with its 99 %
interval. A second process of the plain program shows what the machine alone does to a ratio: where its
own interval leaves out 1, no verdict is given. A tool that stops answering is left out of the rounds
that follow. The ratio of processor time, over all threads of the process, is shown beside it. All have
one thread, and a malloc that does not change its ways.
"""

import argparse
import contextlib
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interleaved import Ratio, ratio
from training_tools import CONTROL, PLAIN, Tool
from visited_processes import NoAnswerError, VisitedProcess

TRAINING = Path(__file__).with_name("training_program.py")
# The range of n values holds their median with a probability of 1 - 2 ** (1 - n): from eight on, 99 %.
MIN_ROUNDS = 8
TOO_FEW = "no verdict: too few rounds"
VOID = "VOID: the control is off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A program, how many of its steps make a block, and what tools may cost on it, by name.

    Of steps of 25 ms, four: one alone comes so soon after the program was held still that the convnet
    seems to take about 1 % more when watched than it does in longer blocks.
    """

    letter: str
    name: str
    title: str
    steps: int
    limits: Mapping[str, float] = field(default_factory=dict)
    program: Path = TRAINING


def small_net(limits: Mapping[str, float]) -> Workload:
    """The worst case of training: steps so short that any cost shows."""
    return Workload(letter="a", name="net", title="3-layer net, batch 32, Adam", steps=8, limits=limits)


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
    program = [str(workload.program), workload.name, "--blocks"]
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
            with _given_up(name, workload):
                process.wait_until_warm()
                processes[name] = process
        wall_ns: dict[str, list[float]] = {name: [] for name in processes}
        cpu_ns: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(turns):
            for name in shuffler.sample(list(processes), len(processes)):
                process = processes.pop(name)
                with _given_up(name, workload):
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
def _given_up(tool: str, workload: Workload) -> Iterator[None]:
    """Go on without a tool that does not answer, unless there is nothing to tell without it."""
    try:
        yield
    except NoAnswerError:
        if tool in {PLAIN, CONTROL, *workload.limits}:
            raise


def measure(
    workload: Workload,
    tools: Sequence[Tool],
    *,
    rounds: int,
    turns: int,
    shuffler: random.Random,
    patience_s: float,
) -> dict[str, Row | None]:
    """The figures of each tool, over so many rounds."""
    readings: list[dict[str, Reading]] = []
    for _ in range(rounds):
        answering = [tool for tool in tools if not readings or tool.name in readings[-1]]
        readings.append(one_round(workload, answering, turns=turns, shuffler=shuffler, patience_s=patience_s))
    return {tool.name: row_for(tool.name, workload, readings) for tool in tools}


def row_for(tool: str, workload: Workload, rounds: Sequence[Mapping[str, Reading]]) -> Row | None:
    """A tool's figures over all rounds; None if it never came to the end of one."""
    readings = [readings_of_round[tool] for readings_of_round in rounds if tool in readings_of_round]
    if not readings:
        return None
    figure = _over_rounds([reading.ratio for reading in readings])
    ends_s = [reading.end_s for reading in readings if reading.end_s is not None]
    control = _over_rounds([readings_of_round[CONTROL].ratio for readings_of_round in rounds])
    limit = workload.limits.get(tool)
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


def add_options(parser: argparse.ArgumentParser, workloads: Sequence[Workload]) -> None:
    """What every such benchmark can be asked for."""
    letters = "".join(workload.letter for workload in workloads)
    parser.add_argument(
        "--only", metavar="LETTERS", default=letters, help="the programs (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=15, help="fresh processes of each (default: %(default)s)"
    )
    parser.add_argument("--turns", type=int, default=40, help="visits to each process (default: %(default)s)")


def show(
    workloads: Sequence[Workload], tools: Sequence[Tool], options: argparse.Namespace, *, patience_s: float
) -> tuple[list[Row], list[str]]:
    """Measure and print: the rows, and what of the limits is not shown to be kept."""
    shuffler = random.Random(0)
    print(f"Python {sys.version.split()[0]}, one thread, {options.rounds} rounds of {options.turns} turns")
    rows: list[Row] = []
    missed = []
    for workload in workloads:
        if workload.letter in options.only:
            figures = measure(
                workload,
                tools,
                rounds=options.rounds,
                turns=options.turns,
                shuffler=shuffler,
                patience_s=patience_s,
            )
            print(f"\n{render(workload, figures, rounds=options.rounds)}", flush=True)
            rows += [row for row in figures.values() if row is not None]
            missed += [
                f"{name} on {workload.name}"
                for name, row in figures.items()
                if name in workload.limits and (row is None or row.verdict != "PASS")
            ]
    return rows, missed


def conclude(missed: Sequence[str]) -> int:
    """Say whether every limit is shown to be kept: the exit code."""
    print(f"\nFAIL: not shown to keep the limit: {', '.join(missed)}" if missed else "\nPASS")
    return 1 if missed else 0
