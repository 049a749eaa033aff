"""What counting allocations costs a program: alone, with the lines that allocate, beside other tools.

First in one process, where counting is switched on and off in turn (``interleaved.py``): so small a cost
is less than two processes of the same program differ by. Then in processes of their own, as a user starts
them (``program_costs.py``). The un-profiled program has scopes too, where it has any: they are off. Exits
with 1 unless the whole interval of each ratio that has a limit is shown to lie within it, both ways.
"""

import argparse
import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
from allocating_program import WARM_UP_STEPS, generation, run
from interleaved import Subject, measure, ratio
from program_costs import Workload, add_options, conclude, judge, show, small_net
from training_program import steps_of
from training_tools import CONTROL, LAUNCHERS, PLAIN, TOOLS, Tool, python_command

from pyrometer.capture import allocations
from pyrometer.capture.recording import recorder

ALLOCATING = Path(__file__).with_name("allocating_program.py")
COUNTING = "scopes and allocations counted"
OBJECTS = "small Python objects too"
PATIENCE_S = 20.0
SAMPLE_NS = 40_000_000
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


@contextlib.contextmanager
def counting() -> Iterator[None]:
    """Scopes are recorded and allocations counted, as by the launcher."""
    recorder.start()
    allocations.start()
    try:
        yield
    finally:
        allocations.stop()
        recorder.stop()


def loops() -> Mapping[str, Callable[[int], object]]:
    """The programs with a limit, by the names of their workloads, in this process."""
    torch.set_num_threads(1)
    next_token = generation()
    return {"net": steps_of("net"), "generation": lambda tokens: run(next_token, tokens)}


def in_one_process(letters: str, *, rounds: int) -> list[str]:
    """Measure and print: what of the limits is not shown to be kept."""
    print(f"in one process, switched on and off in turn, {rounds} rounds, one thread")
    missed = []
    programs = loops()
    for workload in WORKLOADS:
        if workload.letter not in letters or workload.name not in programs:
            continue
        loop = programs[workload.name]
        loop(WARM_UP_STEPS)
        subjects = [Subject(name=name, loop=loop) for name in (PLAIN, CONTROL)]
        subjects.append(Subject(name=COUNTING, loop=loop, surroundings=counting))
        timings = measure(subjects, rounds=rounds, sample_ns=SAMPLE_NS, shuffler=random.Random(0))
        figure, control = (ratio(timings, name, PLAIN) for name in (COUNTING, CONTROL))
        limit = workload.limits[COUNTING]
        verdict = judge(figure, limit, control=control, rounds=rounds)
        for name, shown, told in ((CONTROL, control, ""), (COUNTING, figure, f"≤ {limit:g}  {verdict}")):
            interval = f"{shown.low:.3f} to {shown.high:.3f}"
            print(
                f"{workload.name:12}{name:34}{shown.estimate:6.3f}  {interval}  {told}".rstrip(), flush=True
            )
        if verdict != "PASS":
            missed.append(f"{COUNTING} on {workload.name}, in one process")
    return missed


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Measure what counting allocations costs.")
    add_options(parser, WORKLOADS)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--inside", type=int, default=400, help="rounds in one process (default: %(default)s)"
    )
    options = parser.parse_args()
    inside = in_one_process(options.only, rounds=options.inside)
    print()
    _, missed = show(WORKLOADS, counting_tools(peers=options.peers), options, patience_s=PATIENCE_S)
    return conclude([*inside, *missed])


if __name__ == "__main__":
    sys.exit(main())
