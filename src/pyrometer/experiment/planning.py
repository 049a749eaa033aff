"""How long the turns of two programs are to be: found out on a process that is not counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import msgspec

from pyrometer.experiment.paced_process import PacedProcess
from pyrometer.record.trials import Plan
from pyrometer.record.turns import Turn
from pyrometer.store.run_files import read_run

TURN_NS = 4_000_000
"""What a turn is to take: long enough for the clock, short beside what neighbours do."""
BLOCK_NS = 200_000_000
"""What it is to take where the other side must be halted, with its children."""
ROUNDS = 12
BLOCK_ROUNDS = 6
PAIR_NS = 6_000_000_000
"""With long steps a pair has fewer rounds, so that a side's take no longer; at least ``LEAST_ROUNDS``."""
LEAST_ROUNDS = 3

WARM_STEPS = 3
WARM_NS = 200_000_000
WARM_TURN_NS = 2_000_000
WINDOW = 5
JUDGED_WARMUP = 2 * WINDOW
"""So many turns at the end of the warm-up tell whether a process is steady."""
AGREEMENT = 0.02
PATIENCE_NS = 500_000_000
"""So long at most a program is waited for to become steady, beyond the first ``WARM_NS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user says of the turns; None: found out."""

    rounds: int | None = None
    threads: int | None = 1
    unit: Literal["step", "call"] = "step"
    calls_per_step: int = 1


def plan_turns(pilot: PacedProcess, wanted: Wanted) -> Plan:
    """The plan for a program, from one process of it that goes through all of a pair's steps."""
    if pilot.first_turn() is None:
        return whole_program(wanted)
    steps, series, last = _warm_up(pilot)
    if last is None:
        return whole_program(wanted)
    plan = lay_out(last, wanted, warmup_turns=steps, warmup_ns=series)
    # One more, since a step is known to be over when the next begins.
    if pilot.take_turn(steps=plan.rounds * (plan.lead_steps + plan.turn_steps) + 1) is not None:
        return plan
    run = read_run(pilot.run_file)
    made = 0 if run.torch is None else sum(group.steps for group in run.torch.groups)
    return with_fewer_steps(plan, made)


def _warm_up(pilot: PacedProcess) -> tuple[list[int], list[float], Turn | None]:
    """The steps and what one took in each turn until the program was steady, and the last turn."""
    steps: list[int] = []
    series: list[float] = []
    last: Turn | None = None
    spent_ns = 0
    while spent_ns < WARM_NS + PATIENCE_NS or len(series) < 2 * WINDOW:
        wanted = 1 if len(series) < WARM_STEPS else max(round(WARM_TURN_NS / median(series[-WINDOW:])), 1)
        turn = pilot.take_turn(steps=wanted)
        if turn is None:
            break
        last = turn
        steps.append(wanted)
        series.append(turn.duration_ns / turn.steps)
        spent_ns += turn.duration_ns
        if len(series) >= WARM_STEPS and spent_ns >= WARM_NS and is_steady(series):
            break
    return steps, series, last


def is_steady(series: Sequence[float]) -> bool:
    """Whether the medians of the last two windows of five agree."""
    if len(series) < 2 * WINDOW:
        return False
    before, after = median(series[-2 * WINDOW : -WINDOW]), median(series[-WINDOW:])
    return abs(after - before) <= AGREEMENT * before


def lay_out(turn: Turn, wanted: Wanted, *, warmup_turns: Sequence[int], warmup_ns: Sequence[float]) -> Plan:
    """Turns for a program with enough steps; ``turn`` is the last one of its warm-up."""
    step_ns = median(warmup_ns[-WINDOW:])
    in_blocks = turn.helpers > 0 or turn.has_gpu
    if in_blocks:
        # What lies ready after a rest is used up before the clock runs.
        lead = turn.prefetched_batches + 1
        steps = max(math.ceil(BLOCK_NS / step_ns), 2 * turn.prefetched_batches, 1)
    else:
        steps = max(math.ceil(TURN_NS / step_ns), 1)
        # The first step of a turn finds the other's data in the caches.
        lead = 1 if steps > 1 else 0
    affordable = math.floor(PAIR_NS / (step_ns * (lead + steps)))
    usual = BLOCK_ROUNDS if in_blocks else ROUNDS
    return Plan(
        unit=wanted.unit,
        warmup_turns=tuple(warmup_turns),
        warmup_ns=tuple(warmup_ns),
        is_warm=is_steady(warmup_ns),
        lead_steps=lead,
        turn_steps=steps,
        rounds=wanted.rounds or max(min(usual, affordable), LEAST_ROUNDS),
        in_blocks=in_blocks,
        threads=wanted.threads,
        step_ns=step_ns,
        calls_per_step=wanted.calls_per_step,
    )


def with_fewer_steps(plan: Plan, made: int) -> Plan:
    """The plan for a program that makes only so many steps; the whole program, where they are too few."""
    # The first is over before the warm-up begins, and the last is only known to be over at the end.
    usable = made - 2
    warmup = list(plan.warmup_turns)
    while warmup and (len(warmup) > WARM_STEPS and sum(warmup) > usable // 3):
        warmup.pop()
    steps, lead = plan.turn_steps, plan.lead_steps
    left = usable - sum(warmup)
    while steps > 1 and LEAST_ROUNDS * (lead + steps) > left:
        steps //= 2
        lead = lead if steps > 1 or plan.in_blocks else 0
    rounds = left // (lead + steps)
    if rounds < LEAST_ROUNDS:
        return whole_program(Wanted(threads=plan.threads))
    return msgspec.structs.replace(
        plan,
        warmup_turns=tuple(warmup),
        warmup_ns=plan.warmup_ns[: len(warmup)],
        is_warm=is_steady(plan.warmup_ns[: len(warmup)]),
        lead_steps=lead,
        turn_steps=steps,
        rounds=min(rounds, plan.rounds),
    )


def whole_program(wanted: Wanted) -> Plan:
    """The plan for a program without steps: all of it is one, from its start to its end."""
    return Plan(
        unit="program",
        warmup_turns=(),
        warmup_ns=(),
        is_warm=False,
        lead_steps=0,
        turn_steps=1,
        rounds=1,
        in_blocks=False,
        threads=wanted.threads,
        step_ns=0.0,
    )
