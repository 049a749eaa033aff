"""How long the turns of two programs are to be: found out on a process that is not counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import msgspec

from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.experiment.paced_process import PacedProcess
from pyrometer.record.trials import LEAD_SPREAD, Plan
from pyrometer.record.turns import Turn
from pyrometer.store.run_files import read_run

TURN_NS = 4_000_000
"""What a turn is to take: long enough for the clock, short beside what neighbours do."""
BLOCK_NS = 200_000_000
"""What it is to take where the other side must be halted, with its children."""
ROUNDS = 24
"""Of 40 identical pairs the middle two thirds were within 1.8 % after 12 rounds, 1.1 % after 24 and 48."""
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
    in_blocks: bool = False
    """Whether those that wait are halted whatever the pilots show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmed:
    """A program that has become steady, or did not in time: what its turns took until then."""

    turns: tuple[int, ...]
    """Steps of each."""
    step_ns: tuple[float, ...]
    """What one took in each."""
    last: Turn

    @property
    def usual_ns(self) -> float:
        """What a step takes by then."""
        return median(self.step_ns[-WINDOW:])


def plan_turns(pilots: Sequence[PacedProcess], wanted: Wanted) -> Plan:
    """The plan for programs that are to take turns, from one process of each, which are not counted.

    It suits all of them: what one of them needs, the others do as well.
    """
    found = [_warm_up(pilot) if pilot.first_turn() is not None else None for pilot in pilots]
    warmed = [one for one in found if one is not None]
    if len(warmed) < len(found):
        made = [_steps_made(pilot) for pilot in pilots if pilot.run_file.exists()]
        return whole_program(wanted, few_steps=min(made, default=0) or None)
    plan = lay_out(warmed, wanted)
    needed = plan.rounds * _steps_of_a_round(plan.lead_steps, plan.turn_steps)
    done = max(sum(one.turns) for one in warmed)
    for pilot, one in zip(pilots, warmed, strict=True):
        # One more, since a step is known to be over when the next begins.
        if pilot.take_turn(steps=needed + done - sum(one.turns) + 1) is None:
            plan = with_fewer_steps(plan, _steps_made(pilot))
    return plan


def spread_of(lead_steps: int) -> int:
    """How many more steps than that may come before a turn; none, where all steps are timed."""
    return LEAD_SPREAD if lead_steps else 0


def _steps_of_a_round(lead_steps: int, turn_steps: int) -> int:
    """At most."""
    return lead_steps + spread_of(lead_steps) + turn_steps


def _steps_made(pilot: PacedProcess) -> int:
    if not pilot.run_file.exists():
        raise ProgramFailedError(
            pilot.side.name,
            0,
            "it ended so suddenly that nothing was left to count its steps by, as os._exit() does",
        )
    run = read_run(pilot.run_file)
    return 0 if run.torch is None else sum(group.steps for group in run.torch.groups)


def _warm_up(pilot: PacedProcess) -> Warmed | None:
    """Turns until the program is steady, or it has taken long enough; None where it ended at once."""
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
    return None if last is None else Warmed(turns=tuple(steps), step_ns=tuple(series), last=last)


def is_steady(series: Sequence[float]) -> bool:
    """Whether the medians of the last two windows of five agree."""
    if len(series) < 2 * WINDOW:
        return False
    before, after = median(series[-2 * WINDOW : -WINDOW]), median(series[-WINDOW:])
    return abs(after - before) <= AGREEMENT * before


def lay_out(warmed: Sequence[Warmed], wanted: Wanted) -> Plan:
    """Turns for programs with enough steps."""
    longest = max(warmed, key=lambda one: sum(one.turns))
    quickest_ns, slowest_ns = min(one.usual_ns for one in warmed), max(one.usual_ns for one in warmed)
    in_blocks = wanted.in_blocks or any(one.last.helpers or one.last.has_gpu for one in warmed)
    if in_blocks:
        # What lies ready after a rest is used up before the clock runs.
        prefetched = max(one.last.prefetched_batches for one in warmed)
        lead = prefetched + 1
        steps = max(math.ceil(BLOCK_NS / quickest_ns), 2 * prefetched, 1)
    else:
        # Of the quicker one, as far as the slower one does not take ten times as long.
        steps = max(min(math.ceil(TURN_NS / quickest_ns), math.ceil(10 * TURN_NS / slowest_ns)), 1)
        # The first step of a turn finds the other's data in the caches.
        lead = 1 if steps > 1 else 0
    affordable = math.floor(PAIR_NS / (slowest_ns * _steps_of_a_round(lead, steps)))
    usual = BLOCK_ROUNDS if in_blocks else ROUNDS
    return Plan(
        unit=wanted.unit,
        warmup_turns=longest.turns,
        warmup_ns=longest.step_ns,
        is_warm=all(is_steady(one.step_ns) for one in warmed),
        lead_steps=lead,
        turn_steps=steps,
        rounds=wanted.rounds or max(min(usual, affordable), LEAST_ROUNDS),
        in_blocks=in_blocks,
        threads=wanted.threads,
        step_ns=longest.usual_ns,
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
    while steps > 1 and LEAST_ROUNDS * _steps_of_a_round(lead, steps) > left:
        steps //= 2
        lead = lead if steps > 1 or plan.in_blocks else 0
    rounds = left // _steps_of_a_round(lead, steps)
    if rounds < LEAST_ROUNDS:
        return whole_program(Wanted(threads=plan.threads), few_steps=made)
    return msgspec.structs.replace(
        plan,
        warmup_turns=tuple(warmup),
        warmup_ns=plan.warmup_ns[: len(warmup)],
        is_warm=is_steady(plan.warmup_ns[: len(warmup)]),
        lead_steps=lead,
        turn_steps=steps,
        rounds=min(rounds, plan.rounds),
    )


def whole_program(wanted: Wanted, *, few_steps: int | None = None) -> Plan:
    """The plan for a program without steps, or with too few: all of it is one, from its start to its end."""
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
        few_steps=few_steps,
    )
