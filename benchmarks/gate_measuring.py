"""Gates measured as the product does it, each told in a line of JSON.

A gate with one candidate is the product's own ``measure_pair`` and ``judge`` at the planned looks, from a
plan that all gates of a program share. Where several candidates share a baseline and a control, they take
turns in the same way, and each has a verdict of its own: those on equal amounts of extra work stay
independent of each other.
"""

import hashlib
import math
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from pyrometer.experiment.pairs import BASELINE, CANDIDATE, CONTROL, measure_pair, take_turns
from pyrometer.experiment.planning import Wanted, is_steady, plan_turns
from pyrometer.record.trials import Pair, Plan, ProcessTurns, Round
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
    """What a gate is to be tried on: a baseline, and candidates by percent of extra work."""

    part: str
    workload: str
    load: str
    baseline: Side
    candidates: Mapping[float, Side]
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


@dataclass(slots=True)
class _Arm:
    """One candidate, pair by pair."""

    extra: float
    pairs: list[Pair] = field(default_factory=list)
    judgement: Judgement | None = None


@dataclass(slots=True, kw_only=True)
class _Course:
    """What is known of a gate besides its pairs."""

    trial: Trial
    plan: Plan
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


def run_gates(
    trial: Trial,
    plan: Plan,
    *,
    seed: int,
    looks: Sequence[Look] = LOOKS,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Outcome] | None:
    """A verdict on each candidate, each at the first planned look that gives one; None if time ran out."""
    chooser = Orders(seed)
    if trial.before_a_round is not None:
        act = trial.before_a_round
        chooser.act = lambda: act(plan)
    arms = {f"+{extra:g}": _Arm(extra) for extra in trial.candidates}
    course = _Course(trial=trial, plan=plan)
    outcomes: list[Outcome] = []
    for look in looks:
        open_arms = {name: arm for name, arm in arms.items() if arm.judgement is None}
        for _ in range(look.pairs - len(next(iter(open_arms.values())).pairs)):
            if is_over():
                return None
            chooser.chosen = []
            for name, pair in _measure(trial, plan, list(open_arms), chooser).items():
                open_arms[name].pairs.append(pair)
            course.orders.append(chooser.chosen)
        for arm in open_arms.values():
            metric = default_metric(arm.pairs)
            judgement = judge(
                candidate_ratios(arm.pairs, metric),
                control_ratios(arm.pairs, metric),
                averages=average_ratios(arm.pairs, metric),
                max_slowdown=0.0,
                look=look,
                is_last=look is looks[-1],
            )
            if judgement.verdict is not None:
                arm.judgement = judgement
                outcomes.append(_outcome(course, arm, judgement))
        if len(outcomes) == len(arms):
            break
    return outcomes


def measured_change(trial: Trial, plan: Plan, *, pairs: int) -> float:
    """By how much the one candidate is slower, from a few pairs and without a verdict."""
    chooser = Orders(0)
    (name,) = (f"+{extra:g}" for extra in trial.candidates)
    measured = [_measure(trial, plan, [name], chooser)[name] for _ in range(pairs)]
    return math.expm1(pooled_median(candidate_ratios(measured, Metric.LATENCY)))


def _measure(trial: Trial, plan: Plan, arms: Sequence[str], chooser: Orders) -> dict[str, Pair]:
    surroundings = Surroundings(
        hash_seed=chooser.randint(0, LARGEST_HASH_SEED),
        threads=trial.threads,
    )
    candidates = {f"+{extra:g}": program for extra, program in trial.candidates.items()}
    with tempfile.TemporaryDirectory(prefix="gate-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        if len(candidates) == 1:
            sides = {BASELINE: trial.baseline, CANDIDATE: candidates[arms[0]], CONTROL: trial.baseline}
            measured = measure_pair(sides, plan, surroundings, scratch=scratch, chooser=chooser)
            return {arms[0]: measured.pair}
        sides = {BASELINE: trial.baseline, CONTROL: trial.baseline, **{arm: candidates[arm] for arm in arms}}
        told = _measure_many(sides, plan, surroundings, scratch=scratch, chooser=chooser)
    return {
        arm: Pair(
            hash_seed=surroundings.hash_seed,
            baseline=told[BASELINE],
            candidate=told[arm],
            control=told[CONTROL],
        )
        for arm in arms
    }


def _measure_many(
    sides: Mapping[str, Side],
    plan: Plan,
    surroundings: Surroundings,
    *,
    scratch: Path,
    chooser: random.Random,
) -> dict[str, ProcessTurns]:
    """Any number of fresh processes that start, warm up and take turns in random order, as a pair's do."""
    started = {name: sides[name] for name in chooser.sample(list(sides), len(sides))}
    taken = take_turns(started, plan, surroundings, scratch=scratch, chooser=chooser)
    return {
        name: ProcessTurns(
            rounds=tuple(
                Round(turn.duration_ns, turn.steps, turn.samples, turn.preemptions) for turn in seen.turns
            ),
            warmup_ns=tuple(seen.warmup_ns),
            is_warm=is_steady(seen.warmup_ns),
        )
        for name, seen in taken.seen.items()
    }


# What came of it.


def _outcome(course: _Course, arm: _Arm, judgement: Judgement) -> Outcome:
    trial, plan, orders = course.trial, course.plan, course.orders
    if _engine_on_disk(trial.part) != engine(trial.part):
        raise SystemExit("The sources have changed while they were measured: this gate is not kept.")
    ended = CpuUse.now()
    metric = default_metric(arm.pairs)
    only = len(trial.candidates) == 1
    return Outcome(
        part=trial.part,
        workload=trial.workload,
        load=trial.load,
        extra=arm.extra,
        verdict=judgement.verdict or "",
        reason=judgement.reason,
        pairs=judgement.pairs,
        change=_rounded(judgement.change),
        p_slower=_rounded(judgement.p_slower),
        p_control=_rounded(judgement.p_control),
        ratios=_medians(candidate_ratios(arm.pairs, metric)),
        control=_medians(control_ratios(arm.pairs, metric)),
        before=_step_times(arm.pairs[0].baseline),
        after=_step_times(arm.pairs[1].candidate),
        by_position=_deviations(arm.pairs, [each[1:] for each in orders]) if only else [],
        by_start=_deviations(arm.pairs, [[each[0]] * plan.rounds for each in orders]) if only else [],
        slowed=trial.slowed,
        told=[] if trial.slowed is None else _told_places(arm.pairs, judgement),
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
