"""Gates measured as the product does it, each told in a line of JSON.

Each is the product's own ``measure_pair`` and ``judge`` at the planned looks, from a plan that all gates of
a program share.
"""

import hashlib
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import msgspec
from gate_load import CpuUse, cores_of_others, machine_facts

import pyrometer
from pyrometer.analysis.attribution import changed_rows, find_changed_places
from pyrometer.analysis.gate import LOOKS, Judgement, Look, Reason, judge
from pyrometer.analysis.trials import (
    Metric,
    average_ratios,
    candidate_ratios,
    control_ratios,
    default_metric,
)
from pyrometer.experiment.experiment import LARGEST_HASH_SEED
from pyrometer.experiment.paced_process import Side, Surroundings, running
from pyrometer.experiment.pairs import BASELINE, CANDIDATE, CONTROL, measure_pair
from pyrometer.experiment.planning import Wanted, plan_turns
from pyrometer.record.trials import Pair, Plan, ProcessTurns
from pyrometer.stats.pooled import pooled_median

HERE = Path(__file__).parent
ENGINE = (
    "analysis/gate.py",
    "analysis/trials.py",
    "capture/pacing.py",
    "experiment/paced_process.py",
    "experiment/pairs.py",
    "experiment/planning.py",
    "stats/pooled.py",
    "stats/sign_flip.py",
)
"""What decides how is measured and judged, below ``src/pyrometer``."""
PLACES = (
    "analysis/attribution.py",
    "analysis/comparison/moves.py",
    "analysis/comparison/parts.py",
    "analysis/comparison/verdicts.py",
    "experiment/places.py",
    "stats/max_t.py",
)
"""What decides besides which places are told."""
PROGRAMS = ("gate_light_program.py", "gate_load.py", "gate_torch_program.py")
"""What is measured, and beside what."""
_EARLIER = {
    # How a process's end is waited for on systems without pidfd_open, and nothing where there is one.
    "22add5bc": ("5a5157b4",),
    "45ffc495": ("c436faa2",),
    # What is said to have moved besides: which places are told does not hang on it.
    "c2821d27": ("45ffc495", "c436faa2"),
}
"""By engine those before it that measured and judged just the same, and why that is certain."""
_DIGITS = 5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One finished gate."""

    part: str
    workload: str
    load: str
    """What the machine did besides, or what the adversary does."""
    extra: float
    """Of real extra work, in percent of a step; 0: both sides are the same code."""
    verdict: str
    reason: str
    pairs: int
    change: float | None
    p_slower: float | None
    p_control: float | None
    ratios: list[float]
    """Logarithms of candidate to baseline, the median of each pair: what was judged."""
    control: list[float]
    before: list[float]
    """What a step took in each turn of the first pair's baseline, in ns: a process that ran before."""
    after: list[float]
    """The same of the second pair's candidate: a process that ran after it."""
    by_position: list[float] = []
    """How much longer than a round's average (logarithm) its first turn took, its second, and its third."""
    by_start: list[float] = []
    """The same of the process that was started first, second, and third."""
    slowed: str | None = None
    """The place that got the extra work."""
    told: list[str] = []
    """The places that are called changed, the most telling first."""
    turn_steps: int
    rounds: int
    seconds: float
    cores_of_others: float
    started_at: str
    machine: str
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a gate is to be tried on."""

    part: str
    workload: str
    load: str
    baseline: Side
    candidate: Side
    extra: float = 0.0
    """Of real extra work that the candidate does, in percent of a step."""
    slowed: str | None = None
    threads: int = 1
    before_a_round: Callable[[Plan], None] | None = None


class Orders(random.Random):
    """A chooser that keeps the orders it chose; an adversary may act whenever it is asked for one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chosen: list[list[Any]] = []
        self.act: Callable[[], None] | None = None

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """As usual."""
        order = super().sample(population, k, counts=counts)
        self.chosen.append(order)
        if self.act is not None:
            self.act()
        return order


@dataclass(slots=True, kw_only=True)
class _Course:
    """A gate under way."""

    trial: Trial
    plan: Plan
    pairs: list[Pair] = field(default_factory=list)
    orders: list[list[list[str]]] = field(default_factory=list)
    """In each pair, that of the starts and then of each round."""
    began: CpuUse = field(default_factory=CpuUse.now)
    started_at: datetime = field(default_factory=lambda: datetime.now().astimezone())


def side(program: str, *options: object, folder: Path = HERE) -> Side:
    """One of the programs beside this file, or a copy of it in another folder, with its options."""
    return Side(
        name=" ".join(map(str, (program, *options))),
        arguments=(str(folder / program), *map(str, options)),
        folder=folder,
        program_folder=folder,
    )


def plan_for(program: Side, *, threads: int = 1) -> Plan:
    """How processes of the program take turns."""
    with tempfile.TemporaryDirectory(prefix="gate-plan-") as folder:
        surroundings = Surroundings(hash_seed=0, threads=threads)
        with running({"pilot": program}, surroundings, Path(folder)) as processes:
            return plan_turns([processes["pilot"]], Wanted(threads=threads))


def run_gate(
    trial: Trial,
    plan: Plan,
    *,
    seed: int,
    looks: Sequence[Look] = LOOKS,
    is_over: Callable[[], bool] = lambda: False,
) -> Outcome | None:
    """A verdict at the first planned look that gives one; None if time ran out."""
    chooser = Orders(seed)
    if trial.before_a_round is not None:
        act = trial.before_a_round
        chooser.act = lambda: act(plan)
    course = _Course(trial=trial, plan=plan)
    pairs = course.pairs
    for look in looks:
        for _ in range(look.pairs - len(pairs)):
            if is_over():
                return None
            chooser.chosen = []
            pairs.append(_measure(trial, plan, chooser))
            course.orders.append(chooser.chosen)
        metric = default_metric(pairs)
        judgement = judge(
            candidate_ratios(pairs, metric),
            control_ratios(pairs, metric),
            averages=average_ratios(pairs, metric),
            max_slowdown=0.0,
            look=look,
            is_last=look is looks[-1],
        )
        if judgement.verdict is not None:
            return _outcome(course, judgement)
    raise AssertionError("the last look always has a verdict")


def measured_change(trial: Trial, plan: Plan, *, pairs: int) -> float:
    """By how much the candidate is slower, from a few pairs and without a verdict."""
    chooser = Orders(0)
    measured = [_measure(trial, plan, chooser) for _ in range(pairs)]
    return math.expm1(pooled_median(candidate_ratios(measured, Metric.LATENCY)))


def _measure(trial: Trial, plan: Plan, chooser: Orders) -> Pair:
    surroundings = Surroundings(
        hash_seed=chooser.randint(0, LARGEST_HASH_SEED),
        threads=trial.threads,
    )
    sides = {BASELINE: trial.baseline, CANDIDATE: trial.candidate, CONTROL: trial.baseline}
    with tempfile.TemporaryDirectory(prefix="gate-", ignore_cleanup_errors=True) as folder:
        return measure_pair(sides, plan, surroundings, scratch=Path(folder), chooser=chooser).pair


# What came of it.


def _outcome(course: _Course, judgement: Judgement) -> Outcome:
    trial, plan, pairs, orders = course.trial, course.plan, course.pairs, course.orders
    if _engine_on_disk(trial.part) != engine(trial.part):
        raise SystemExit("The sources have changed while they were measured: this gate is not kept.")
    ended = CpuUse.now()
    metric = default_metric(pairs)
    return Outcome(
        part=trial.part,
        workload=trial.workload,
        load=trial.load,
        extra=trial.extra,
        verdict=judgement.verdict or "",
        reason=judgement.reason,
        pairs=judgement.pairs,
        change=_rounded(judgement.change),
        p_slower=_rounded(judgement.p_slower),
        p_control=_rounded(judgement.p_control),
        ratios=_medians(candidate_ratios(pairs, metric)),
        control=_medians(control_ratios(pairs, metric)),
        before=_step_times(pairs[0].baseline),
        after=_step_times(pairs[1].candidate),
        by_position=_deviations(pairs, [each[1:] for each in orders]),
        by_start=_deviations(pairs, [[each[0]] * plan.rounds for each in orders]),
        slowed=trial.slowed,
        told=[] if trial.slowed is None else _told_places(pairs, judgement),
        turn_steps=plan.turn_steps,
        rounds=plan.rounds,
        seconds=round(ended.at_s - course.began.at_s, 2),
        cores_of_others=round(cores_of_others(course.began, ended), 3),
        started_at=course.started_at.isoformat(timespec="seconds"),
        machine=machine_facts(),
        engine=engine(trial.part),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _medians(groups: Sequence[Sequence[float]]) -> list[float]:
    return [round(median(group), _DIGITS) for group in groups if group]


def _step_times(process: ProcessTurns) -> list[float]:
    return [round(turn.duration_ns / turn.steps) for turn in process.rounds]


def _told_places(pairs: Sequence[Pair], judgement: Judgement) -> list[str]:
    tables = find_changed_places(
        pairs, alpha=judgement.alpha or LOOKS[0].alpha, is_void=judgement.reason is Reason.CONTROL
    )
    rows = (row for _, row in changed_rows(tables))
    return [" > ".join(row.path) for row in rows]


def _deviations(pairs: Sequence[Pair], orders: Sequence[Sequence[Sequence[str]]]) -> list[float]:
    """How far those at each place of an order are from a round's average, the median over all rounds."""
    places: list[list[float]] = [[], [], []]
    for pair, rounds in zip(pairs, orders, strict=True):
        processes = {BASELINE: pair.baseline, CANDIDATE: pair.candidate, CONTROL: pair.control}
        for index, order in enumerate(rounds):
            times = {
                name: math.log(process.rounds[index].duration_ns / process.rounds[index].steps)
                for name, process in processes.items()
                if process is not None
            }
            average = fmean(times.values())
            for place, name in zip(places, order, strict=True):
                place.append(times[name] - average)
    return [round(median(place), _DIGITS) for place in places]


def _engine_on_disk(part: str) -> str:
    root = Path(pyrometer.__file__).parent
    deciding = (*ENGINE, *PLACES) if part == "attribution" else ENGINE
    files = [*(root / name for name in deciding), *(HERE / name for name in PROGRAMS)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


@cache
def engine(part: str) -> str:
    """Which code measures and judges a part's gates: a short hash over the sources, when first asked for."""
    return _engine_on_disk(part)


def is_of_this_engine(outcome: Outcome) -> bool:
    """Whether a gate was measured and judged as it would be now."""
    now = engine(outcome.part)
    return outcome.engine in {now, *_EARLIER.get(now, ())}
