"""One pair after the other: fresh processes of both sides that take turns in random order."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from pyrometer.experiment.errors import NotHaltedError, ProgramFailedError
from pyrometer.experiment.paced_process import PacedProcess, Side, Surroundings, running
from pyrometer.experiment.planning import JUDGED_WARMUP, is_steady
from pyrometer.record.run import Run
from pyrometer.record.trials import MAX_KEPT_NODES, NodeFigures, Pair, Plan, ProcessTurns, Round
from pyrometer.record.turns import Farewell, Order, Turn, TurnNode
from pyrometer.store.run_files import read_run

BASELINE, CANDIDATE, CONTROL = "baseline", "candidate", "control"


@dataclass(slots=True)
class _Seen:
    """What is known of one process of a pair so far."""

    warmup_ns: list[float] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


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
    names = chooser.sample(list(sides), len(sides))
    started = {name: sides[name] for name in names}
    if plan.unit == "program":
        return _whole_programs(started, surroundings, scratch)
    with running(started, surroundings, scratch) as processes:
        seen = {name: _Seen() for name in names}
        for name in names:
            _expect(processes[name].first_turn(), processes[name])
        _warm_up_together(processes, plan)
        for name in names:
            _warm_up(processes[name], plan, seen[name])
        for _ in range(plan.rounds):
            for name in chooser.sample(names, len(names)):
                _take_turn(processes[name], plan, seen[name])
        farewells: dict[str, Farewell] = {}
        runs: dict[str, Run] = {}
        for name in names:
            processes[name].order(Order(ends=True))
        for name in names:
            _say_goodbye(name, processes[name].wait_for_the_end(), processes[name], farewells, runs)
    pair = _pair(surroundings.hash_seed, {name: _told(one, seen[BASELINE]) for name, one in seen.items()})
    return Measured(pair=pair, runs=runs, farewells=farewells)


def _expect(turn: Turn | None, process: PacedProcess) -> Turn:
    if turn is None:
        raise ProgramFailedError(process.side.name, 0, "it ended before its turns were over")
    return turn


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


def _warm_up(process: PacedProcess, plan: Plan, seen: _Seen) -> None:
    """The last turns, by which it is told whether the process is steady."""
    for steps in plan.warmup_turns[-JUDGED_WARMUP:]:
        turn = _expect(process.take_turn(steps=steps), process)
        seen.warmup_ns.append(turn.duration_ns / turn.steps)
    if plan.in_blocks:
        process.stop()


def _take_turn(process: PacedProcess, plan: Plan, seen: _Seen) -> None:
    turn = _expect(process.take_turn(lead=plan.lead_steps, steps=plan.turn_steps), process)
    if (turn.helpers or turn.has_gpu) and not plan.in_blocks:
        raise NotHaltedError
    seen.turns.append(turn)
    if plan.in_blocks:
        process.stop()


def _told(seen: _Seen, baseline: _Seen) -> ProcessTurns:
    last = seen.turns[-1]
    counted = [turn.instructions for turn in seen.turns if turn.instructions is not None]
    return ProcessTurns(
        rounds=tuple(Round(turn.duration_ns, turn.steps, turn.samples) for turn in seen.turns),
        warmup_ns=tuple(seen.warmup_ns),
        is_warm=is_steady(seen.warmup_ns),
        nodes=_nodes(seen.turns, baseline.turns),
        peak_bytes=last.peak_bytes,
        peak_live_bytes=last.peak_live_bytes,
        instructions=sum(counted) if len(counted) == len(seen.turns) else None,
        note=last.note,
    )


def _nodes(turns: Sequence[Turn], baseline: Sequence[Turn]) -> tuple[NodeFigures, ...]:
    """Medians over turns, and over the differences to the turns of the baseline beside them."""
    ours = [{node.path: node for node in turn.nodes} for turn in turns]
    theirs = [{node.path: node for node in turn.nodes} for turn in baseline]
    steps = sum(turn.steps for turn in turns)
    figures = []
    # In the order they are met, parents first; a place that has vanished has changed as well.
    for path in dict.fromkeys(path for nodes in (*ours, *theirs) for path in nodes):
        self_ns = [_a_step(nodes.get(path), turn) for nodes, turn in zip(ours, turns, strict=True)]
        base_ns = [_a_step(nodes.get(path), turn) for nodes, turn in zip(theirs, baseline, strict=True)]
        figures.append(
            NodeFigures(
                path=path,
                calls=sum(nodes[path].calls for nodes in ours if path in nodes) / steps,
                self_ns=median(self_ns),
                change_ns=median(one - other for one, other in zip(self_ns, base_ns, strict=True)),
            )
        )
    kept = {node.path for node in sorted(figures, key=lambda node: -node.self_ns)[:MAX_KEPT_NODES]}
    return tuple(node for node in figures if node.path in kept)


def _a_step(node: TurnNode | None, turn: Turn) -> float:
    return 0.0 if node is None else node.self_ns / turn.steps


def _whole_programs(sides: Mapping[str, Side], surroundings: Surroundings, scratch: Path) -> Measured:
    """Programs without steps, one whole after the other; their order is that of ``sides``."""
    seen: dict[str, _Seen] = {}
    farewells: dict[str, Farewell] = {}
    runs: dict[str, Run] = {}
    for name, side in sides.items():
        with running({name: side}, replace(surroundings, whole=True), scratch) as processes:
            seen[name] = _Seen(turns=[_expect(processes[name].first_turn(), processes[name])])
            _say_goodbye(name, processes[name].wait_for_the_end(), processes[name], farewells, runs)
            processes[name].check_success()
    pair = _pair(surroundings.hash_seed, {name: _told(one, seen[BASELINE]) for name, one in seen.items()})
    return Measured(pair=pair, runs=runs, farewells=farewells)


def _say_goodbye(
    name: str,
    farewell: Farewell | None,
    process: PacedProcess,
    farewells: dict[str, Farewell],
    runs: dict[str, Run],
) -> None:
    """Keep what a process left; one that was killed for not ending leaves nothing."""
    if farewell is not None and process.run_file.exists():
        farewells[name], runs[name] = farewell, read_run(process.run_file)


def _pair(hash_seed: int, told: Mapping[str, ProcessTurns]) -> Pair:
    return Pair(
        hash_seed=hash_seed,
        baseline=told[BASELINE],
        candidate=told[CANDIDATE],
        control=told.get(CONTROL),
    )
