"""One pair after the other: fresh processes of both sides that take turns in random order."""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyrometer.experiment.errors import NotHaltedError, ProgramFailedError
from pyrometer.experiment.paced_process import PacedProcess, Side, Surroundings, running
from pyrometer.experiment.places import places_of
from pyrometer.experiment.planning import JUDGED_WARMUP, is_steady, spread_of
from pyrometer.record.run import Run
from pyrometer.record.trials import NodeFigures, Pair, Plan, ProcessTurns, Round
from pyrometer.record.turns import Farewell, Order, Turn
from pyrometer.store.run_files import read_run

BASELINE, CANDIDATE, CONTROL = "baseline", "candidate", "control"


@dataclass(slots=True)
class Seen:
    """What is known of one process so far."""

    warmup_ns: list[float] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Taken:
    """What processes did in their turns, and told at their ends."""

    seen: dict[str, Seen]
    runs: dict[str, Run] = field(default_factory=dict)
    farewells: dict[str, Farewell] = field(default_factory=dict)

    def keep(self, name: str, farewell: Farewell | None, process: PacedProcess) -> None:
        """Keep what a process left; one that was killed for not ending leaves nothing."""
        if farewell is not None and process.run_file.exists():
            self.farewells[name], self.runs[name] = farewell, read_run(process.run_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A pair, and what its processes told at their ends."""

    pair: Pair
    runs: Mapping[str, Run]
    """By side: what each recorded, with the facts that tell whether they may be compared."""
    farewells: Mapping[str, Farewell]


def measure_pair(
    sides: Mapping[str, Side],
    plan: Plan,
    surroundings: Surroundings,
    *,
    scratch: Path,
    chooser: random.Random,
) -> Measured:
    """One pair by the plan. Sides start, warm up and take their turns in random order.

    Raises ``ProgramFailedError`` if a program fails, or ends before its turns are over, and
    ``NotHaltedError`` if it should have been halted while it waited.
    """
    started = {name: sides[name] for name in chooser.sample(list(sides), len(sides))}
    if plan.unit == "program":
        taken = _whole_programs(started, surroundings, scratch)
    else:
        taken = take_turns(started, plan, surroundings, scratch=scratch, chooser=chooser)
    places = places_of({name: one.turns for name, one in taken.seen.items()}, baseline=BASELINE)
    told = {name: _told(one, places[name]) for name, one in taken.seen.items()}
    pair = Pair(
        hash_seed=surroundings.hash_seed,
        baseline=told[BASELINE],
        candidate=told[CANDIDATE],
        control=told.get(CONTROL),
    )
    return Measured(pair=pair, runs=taken.runs, farewells=taken.farewells)


def take_turns(
    sides: Mapping[str, Side],
    plan: Plan,
    surroundings: Surroundings,
    *,
    scratch: Path,
    chooser: random.Random,
) -> Taken:
    """Any number of fresh processes that take turns by the plan; see ``measure_pair``."""
    names = list(sides)
    taken = Taken(seen={name: Seen() for name in names})
    with running(sides, surroundings, scratch) as processes:
        for name in names:
            _expect(processes[name].first_turn(), processes[name])
        _warm_up_together(processes, plan)
        keep_on_one_core(processes, plan, chooser)
        for name in names:
            _warm_up(processes[name], plan, taken.seen[name])
        for _ in range(plan.rounds):
            lead = plan.lead_steps + chooser.randint(0, spread_of(plan.lead_steps))
            for name in chooser.sample(names, len(names)):
                _take_turn(processes[name], plan, taken.seen[name], lead=lead)
        for name in names:
            processes[name].order(Order(ends=True))
        for name in names:
            taken.keep(name, processes[name].wait_for_the_end(), processes[name])
    return taken


def _expect(turn: Turn | None, process: PacedProcess) -> Turn:
    if turn is None:
        raise ProgramFailedError(process.side.name, 0, "it ended before its turns were over")
    return turn


def keep_on_one_core(processes: Mapping[str, PacedProcess], plan: Plan, chooser: random.Random) -> None:
    """Let all of a pair run on the same core, another one for each pair; only one of them runs at a time.

    Left alone, each stays on a core of its own for all of the pair, and whoever has the one that a
    neighbour is busy on is slower: of 50 identical pairs on a busy machine, one in ten was then off by
    57 % and more, and on one core by 15 %. Programs of several threads have all cores.
    """
    if plan.threads == 1 and not plan.in_blocks and hasattr(os, "sched_setaffinity"):
        core = chooser.choice(sorted(os.sched_getaffinity(0)))
        for process in processes.values():
            process.stay_on(core)


def _warm_up_together(processes: Mapping[str, PacedProcess], plan: Plan) -> None:
    """All but the last turns of the warm-up, in all processes at once: these are looked at by nobody."""
    steps = sum(plan.warmup_turns[:-JUDGED_WARMUP])
    if steps:
        for process in processes.values():
            process.order(Order(steps=steps))
        for process in processes.values():
            _expect(process.receive(), process)
    if plan.in_blocks:
        for process in processes.values():
            process.stop()


def _warm_up(process: PacedProcess, plan: Plan, seen: Seen) -> None:
    """The last turns, by which it is told whether the process is steady."""
    for steps in plan.warmup_turns[-JUDGED_WARMUP:]:
        turn = _expect(process.take_turn(steps=steps), process)
        seen.warmup_ns.append(turn.duration_ns / turn.steps)
    if plan.in_blocks:
        process.stop()


def _take_turn(process: PacedProcess, plan: Plan, seen: Seen, *, lead: int) -> None:
    turn = _expect(process.take_turn(lead=lead, steps=plan.turn_steps), process)
    if (turn.helpers or turn.has_gpu) and not plan.in_blocks:
        raise NotHaltedError
    seen.turns.append(turn)
    if plan.in_blocks:
        process.stop()


def _told(seen: Seen, nodes: tuple[NodeFigures, ...]) -> ProcessTurns:
    last = seen.turns[-1]
    counted = [turn.instructions for turn in seen.turns if turn.instructions is not None]
    return ProcessTurns(
        rounds=tuple(
            Round(turn.duration_ns, turn.steps, turn.samples, turn.preemptions) for turn in seen.turns
        ),
        warmup_ns=tuple(seen.warmup_ns),
        is_warm=is_steady(seen.warmup_ns),
        nodes=nodes,
        peak_bytes=last.peak_bytes,
        peak_live_bytes=last.peak_live_bytes,
        instructions=sum(counted) if len(counted) == len(seen.turns) else None,
        note=last.note,
    )


def _whole_programs(sides: Mapping[str, Side], surroundings: Surroundings, scratch: Path) -> Taken:
    """Programs without steps, one whole after the other; their order is that of ``sides``."""
    taken = Taken(seen={})
    for name, side in sides.items():
        with running({name: side}, replace(surroundings, whole=True), scratch) as processes:
            taken.seen[name] = Seen(turns=[_expect(processes[name].first_turn(), processes[name])])
            taken.keep(name, processes[name].wait_for_the_end(), processes[name])
            processes[name].check_success()
    return taken
