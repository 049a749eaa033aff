"""The kinds of gates whose errors are counted: which programs are compared, and beside what."""

import atexit
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from gate_light_program import BRANCHES, BURSTS_ADD, OWN_UNITS, UNITS
from gate_load import FAST_S, SLOW_S
from gate_measuring import HERE, Outcome, Trial, measured_change, plan_for, side

from pyrometer.experiment.paced_process import Side
from pyrometer.record.trials import LEAD_SPREAD, Plan

LIGHT, TORCH = "gate_light_program.py", "gate_torch_program.py"
SHORT_PERCENT = 5.0
SLOWED_PERCENT = (3.0, 4.0, 5.0)
SLOWED_SHARE = 0.04
LAYERS = ("first", "second", "third", "fourth", "fifth", "sixth")
MANY_THREADS = 4
BURSTS = (20, 50)


@dataclass(frozen=True, slots=True)
class Load:
    """What the machine does while a gate is measured."""

    name: str
    at_once: int = 1
    """So many gates are measured at the same time."""
    neighbours: int = 0
    """So many processes are busy and idle by turns."""
    switch_s: tuple[float, float] = SLOW_S


QUIET = Load("quiet")
TWO_AT_ONCE = Load("two at once", at_once=2)
BUSY = Load("busy", at_once=2, neighbours=1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of gate: what is tried, beside what, and how many of it are wanted."""

    part: str
    workload: str
    load: Load
    make: Callable[[str, str, str], Trial]
    """A new one, of that part, workload and load."""
    wanted: int
    short: int = 0
    """So many by the short version."""
    extra: float | None = None
    """Only gates on so many percent of extra work are of this kind; None: whatever it is."""

    def trial(self) -> Trial:
        """What the next gate is tried on."""
        return self.make(self.part, self.workload, self.load.name)

    def has(self, outcome: Outcome) -> bool:
        """Whether an outcome is one of these."""
        kind = (outcome.part, outcome.workload, outcome.load)
        return kind == (self.part, self.workload, self.load.name) and self.extra in {None, outcome.extra}


def _same(part: str, workload: str, load: str, program: Side, *, threads: int = 1) -> Trial:
    return Trial(
        part=part, workload=workload, load=load, baseline=program, candidate=program, threads=threads
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
        candidate=program,
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
        candidate=side(LIGHT),
    )


@cache
def _folder() -> str:
    """For what trials need; removed when this program ends."""
    folder = tempfile.mkdtemp(prefix="gate-trials-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def extra_work(part: str, workload: str, load: str, *, percent: float) -> Trial:
    """The light program, and with so much extra work."""
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=_with_extra(0),
        candidate=_with_extra(percent),
        extra=percent,
    )


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
        candidate=side(LIGHT, "--bursts", every),
        extra=100 * BURSTS_ADD,
    )


def slowed_scope(part: str, workload: str, load: str) -> Trial:
    """One of ten scopes, chosen at random, with 3 to 5 % of a step more to do."""
    node, percent = random.choice(list(OWN_UNITS)), random.choice(SLOWED_PERCENT)
    return Trial(
        part=part,
        workload=workload,
        load=load,
        baseline=_with_extra(0, "--tree", node),
        candidate=_with_extra(percent, "--tree", node),
        extra=percent,
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
        candidate=side(TORCH, "--slow", layer, "--extra", f"{extra:02}"),
        extra=percent,
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
        candidate=side(TORCH, "--slow", LAYERS[0], "--extra", tried),
    )
    share = measured_change(trial, plan_for(trial.baseline), pairs=4) / tried
    extra = max(round(SLOWED_SHARE / share), 1) if share > 0 else tried
    return extra, round(100 * extra * share, 1)


CELLS = (
    Cell("aa", "light", QUIET, light, wanted=300, short=2),
    Cell("aa", "light", TWO_AT_ONCE, light, wanted=500),
    Cell("aa", "light", BUSY, light, wanted=250, short=2),
    *(
        Cell("power", "light", load, partial(extra_work, percent=percent), wanted, short, extra=percent)
        for percent, wanted in ((2.0, 60), (3.0, 400), (5.0, 400), (10.0, 60))
        for load, short in ((QUIET, int(percent == SHORT_PERCENT)), (TWO_AT_ONCE, 0), (BUSY, 0))
    ),
    Cell("bursts", "light", QUIET, bursts, wanted=400, short=1),
    Cell("torch", "torch", QUIET, training, wanted=120, short=1),
    Cell("torch", "torch", TWO_AT_ONCE, training, wanted=60),
    Cell("attribution", "scopes", QUIET, slowed_scope, wanted=400, short=1),
    Cell("attribution", "modules", QUIET, slowed_module, wanted=100),
    Cell("adversaries", "light", Load("first is slower", at_once=2), first_is_slower, wanted=100, short=1),
    Cell("adversaries", "light", Load("drift", at_once=2), drift, wanted=100, short=1),
    Cell("adversaries", "light", Load("another folder", at_once=2), another_folder, wanted=100),
    Cell("adversaries", "light", Load("neighbours", neighbours=2, switch_s=FAST_S), light, wanted=100),
    Cell("adversaries", "light", Load("outliers", at_once=2), outliers, wanted=400, short=1),
    Cell("adversaries", "torch", Load("4 threads"), many_threads, wanted=30),
)
