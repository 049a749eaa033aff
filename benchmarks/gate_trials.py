"""The kinds of gates whose errors are counted: which programs are compared, and beside what."""

import atexit
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gate_light_program import BRANCHES, BURSTS_ADD, OWN_UNITS, UNITS
from gate_load import FAST_S, SLOW_S
from gate_measuring import HERE, Outcome, Trial, measured_change, plan_for, side

from pyrometer.experiment.paced_process import Side
from pyrometer.record.trials import LEAD_SPREAD, Plan

LIGHT, TORCH = "gate_light_program.py", "gate_torch_program.py"
EXTRA_PERCENT = (2.0, 3.0, 5.0, 10.0)
SLOWED_PERCENT = (3.0, 4.0, 5.0)
SLOWED_SHARE = 0.04
LAYERS = ("first", "second", "third", "fourth", "fifth", "sixth")
MANY_THREADS = 4
BURSTS = (20, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One kind of gate: how many of it are wanted, in all and by the short version, and beside what."""

    part: str
    workload: str
    load: str
    wanted: int
    short: int
    make: Callable[[str, str, str], Trial]
    """A new one, of that part, workload and load."""
    is_busy: bool = False
    """Several gates are measured at the same time."""
    neighbours: int = 0
    switch_s: tuple[float, float] = SLOW_S

    def trial(self) -> Trial:
        """What the next gate is tried on."""
        return self.make(self.part, self.workload, self.load)

    def has(self, outcome: Outcome) -> bool:
        """Whether an outcome is one of these."""
        return (outcome.part, outcome.workload, outcome.load) == (self.part, self.workload, self.load)


def _same(part: str, workload: str, load: str, program: Side, *, threads: int = 1) -> Trial:
    return Trial(
        part=part, workload=workload, load=load, baseline=program, candidates={0.0: program}, threads=threads
    )


def light(part: str, workload: str, load: str) -> Trial:
    """The light program on both sides."""
    return _same(part, workload, load, side(LIGHT))


def training(part: str, workload: str, load: str) -> Trial:
    """The training program on both sides."""
    return _same(part, workload, load, side(TORCH))


def many_threads(part: str, workload: str, load: str) -> Trial:
    """The training program on both sides, with more threads than there are cores."""
    return _same(part, workload, load, side(TORCH, "--threads", MANY_THREADS), threads=MANY_THREADS)


def drift(part: str, workload: str, load: str) -> Trial:
    """The light program on both sides, with work that grows by 2 % a second."""
    return _same(part, workload, load, side(LIGHT, "--drift", time.time()))


def outliers(part: str, workload: str, load: str) -> Trial:
    """The light program on both sides, of which one process in ten is 30 % slower."""
    return _same(part, workload, load, side(LIGHT, "--outliers", 0.1))


def first_is_slower(part: str, workload: str, load: str) -> Trial:
    """The light program on both sides; whoever goes first in a round is 10 % slower in that turn."""
    file = Path(_folder()) / f"steps-{time.monotonic_ns()}"
    file.write_bytes(b"\0")

    def mark(plan: Plan) -> None:
        # Not cut short in between: the programs have it mapped.
        with file.open("r+b") as stream:
            stream.write(bytes([plan.lead_steps + LEAD_SPREAD + plan.turn_steps]))

    program = side(LIGHT, "--first", file)
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=program,
        candidates={0.0: program},
        before_a_round=mark,
    )


def another_folder(part: str, workload: str, load: str) -> Trial:
    """The light program on both sides, the baseline's in a folder with a longer path, as a checkout is."""
    folder = Path(_folder()) / ("checked-out-" * 8)
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / LIGHT, folder)
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=side(LIGHT, folder=folder),
        candidates={0.0: side(LIGHT)},
    )


@cache
def _folder() -> str:
    """For what trials need; removed when this program ends."""
    folder = tempfile.mkdtemp(prefix="gate-trials-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def extra_work(part: str, workload: str, load: str) -> Trial:
    """All amounts of extra work, beside one baseline."""
    candidates = {percent: _with_extra(percent) for percent in EXTRA_PERCENT}
    return Trial(part=part, workload=workload, load=load, baseline=_with_extra(0), candidates=candidates)


def _with_extra(percent: float, *options: object) -> Side:
    # As long on all sides: where a process's memory lies depends on its arguments, too.
    return side(LIGHT, "--extra", f"{round(UNITS * percent / 100):03}", *options)


def bursts(part: str, workload: str, load: str) -> Trial:
    """Half as much work again, all of it in every 20th step or every 50th, as often as each other."""
    every = random.choice(BURSTS)
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=side(LIGHT, "--bursts", "00"),
        candidates={100 * BURSTS_ADD: side(LIGHT, "--bursts", every)},
    )


def slowed_scope(part: str, workload: str, load: str) -> Trial:
    """One of ten scopes, chosen at random, with 3 to 5 % of a step more to do."""
    node, percent = random.choice(list(OWN_UNITS)), random.choice(SLOWED_PERCENT)
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=_with_extra(0, "--tree", node),
        candidates={percent: _with_extra(percent, "--tree", node)},
        slowed=" > ".join(_path_to(node)),
    )


def _path_to(node: str) -> list[str]:
    above = [parent for parent, children in BRANCHES.items() if node in children]
    return [*(_path_to(above[0]) if above else []), node]


def slowed_module(part: str, workload: str, load: str) -> Trial:
    """One of a model's layers, chosen at random, with about 4 % of a step more to do in its forward pass."""
    layer = random.choice(LAYERS)
    extra, percent = _matrices()
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=side(TORCH, "--slow", layer, "--extra", "00"),
        candidates={percent: side(TORCH, "--slow", layer, "--extra", f"{extra:02}")},
        slowed=f"forward > model > model.{layer}",
    )


@cache
def _matrices() -> tuple[int, float]:
    """How many more multiplications take about 4 % of a step, and how much they take: from a few pairs."""
    tried = 40
    trial = Trial(
        part="",
        workload="",
        load="",
        baseline=side(TORCH),
        candidates={0.0: side(TORCH, "--slow", LAYERS[0], "--extra", tried)},
    )
    share = measured_change(trial, plan_for(trial.baseline), pairs=4) / tried
    extra = max(round(SLOWED_SHARE / share), 1) if share > 0 else tried
    return extra, round(100 * extra * share, 1)


CELLS = (
    Cell(part="aa", workload="light", load="quiet", wanted=500, short=2, make=light),
    Cell(
        part="aa", workload="light", load="busy", wanted=500, short=2, make=light, is_busy=True, neighbours=1
    ),
    Cell(part="power", workload="light", load="quiet", wanted=300, short=1, make=extra_work),
    Cell(
        part="power",
        workload="light",
        load="busy",
        wanted=60,
        short=0,
        make=extra_work,
        is_busy=True,
        neighbours=1,
    ),
    Cell(part="bursts", workload="light", load="quiet", wanted=100, short=1, make=bursts),
    Cell(part="torch", workload="torch", load="quiet", wanted=60, short=1, make=training),
    Cell(part="attribution", workload="scopes", load="quiet", wanted=200, short=1, make=slowed_scope),
    Cell(part="attribution", workload="modules", load="quiet", wanted=60, short=0, make=slowed_module),
    Cell(
        part="adversaries",
        workload="light",
        load="first is slower",
        wanted=100,
        short=1,
        make=first_is_slower,
        is_busy=True,
    ),
    Cell(part="adversaries", workload="light", load="drift", wanted=100, short=1, make=drift, is_busy=True),
    Cell(
        part="adversaries",
        workload="light",
        load="another folder",
        wanted=100,
        short=0,
        make=another_folder,
        is_busy=True,
    ),
    Cell(
        part="adversaries",
        workload="light",
        load="neighbours",
        wanted=100,
        short=0,
        make=light,
        neighbours=2,
        switch_s=FAST_S,
    ),
    Cell(
        part="adversaries",
        workload="light",
        load="outliers",
        wanted=100,
        short=1,
        make=outliers,
        is_busy=True,
    ),
    Cell(part="adversaries", workload="torch", load="4 threads", wanted=30, short=0, make=many_threads),
)
