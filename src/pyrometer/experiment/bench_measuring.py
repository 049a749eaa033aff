"""Benchmarks measured in fresh processes that take turns, so that a busy neighbour meets all alike."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pyrometer.experiment.bench_discovery import side_of
from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.experiment.experiment import LARGEST_HASH_SEED
from pyrometer.experiment.paced_process import PacedProcess, Side, Surroundings, running
from pyrometer.experiment.planning import (
    PATIENCE_NS,
    WARM_NS,
    WARM_STEPS,
    WINDOW,
    Wanted,
    Warmed,
    is_steady,
    lay_out,
)
from pyrometer.experiment.scratch import scratch_folder
from pyrometer.record.benchmarks import (
    Benchmark,
    BenchmarkNote,
    BenchmarkProcess,
    CallTurn,
    MeasuredBenchmark,
)
from pyrometer.record.trials import Plan
from pyrometer.record.turns import Order, Turn

GROUP_SIZE = 8
"""So many benchmarks are alive at once: each has all of its arguments in memory."""


class BenchmarkRunner:
    """Measures benchmarks, each in so many processes; ``folder`` is where those run.

    One that fails is measured no further, and the others are.
    """

    def __init__(
        self,
        *,
        folder: Path,
        processes: int,
        threads: int | None,
        chooser: random.Random,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._processes = processes
        self._threads = threads
        self._chooser = chooser
        self._tell = tell

    def measure(self, benchmarks: Sequence[Benchmark]) -> tuple[MeasuredBenchmark, ...]:
        """What came of each, in the order given."""
        seen = [_Seen(benchmark=benchmark) for benchmark in benchmarks]
        for number, one in enumerate(seen, start=1):
            self._tell(f"looking at {one.benchmark.name}, {number} of {len(seen)}")
            self._look_at(one)
        groups = [seen[start : start + GROUP_SIZE] for start in range(0, len(seen), GROUP_SIZE)]
        for number, group in enumerate(groups, start=1):
            hash_seeds: list[int] = []
            while len(hash_seeds) < self._processes:
                # Two processes of each: what they do differently, they do for no reason.
                hash_seeds += [self._chooser.randint(0, LARGEST_HASH_SEED)] * 2
            for index, hash_seed in enumerate(hash_seeds[: self._processes], start=1):
                which = f", group {number} of {len(groups)}" if len(groups) > 1 else ""
                self._tell(f"process {index} of {self._processes} of each benchmark{which}")
                self._take_turns([one for one in group if one.failure is None], hash_seed)
        return tuple(one.told() for one in seen)

    def _side(self, one: "_Seen", calls: int) -> Side:
        file, name = Path(one.benchmark.file), one.benchmark.name
        return side_of(name, file=file, folder=self._folder, calls=calls, name=name)

    def _look_at(self, one: "_Seen") -> None:
        """How many calls a step has, and what one allocates: from a process that is not counted."""
        with (
            scratch_folder() as scratch,
            running({"0": self._side(one, 0)}, self._surroundings(0), scratch) as processes,
            one.noting_failures(),
        ):
            turn = _expect(processes["0"].first_turn(), processes["0"])
            one.pilot = _note_of(turn)
            processes["0"].end()

    def _take_turns(self, group: Sequence["_Seen"], hash_seed: int) -> None:
        """One process of each, all alive at once."""
        sides = {str(index): self._side(one, one.calls) for index, one in enumerate(group)}
        with (
            scratch_folder() as scratch,
            running(self._shuffled(sides), self._surroundings(hash_seed), scratch) as processes,
        ):
            visits = [_Visit(seen=one, process=processes[str(index)]) for index, one in enumerate(group)]
            for visit in visits:
                visit.start()
            for visit in self._chooser.sample(visits, len(visits)):
                visit.warm_up()
            while any(visit.is_due for visit in visits):
                for visit in self._chooser.sample(visits, len(visits)):
                    if visit.is_due:
                        visit.take_turn()
            for visit in visits:
                visit.end(hash_seed)
            for visit in visits:
                # By itself, so that what it has registered for its end is done.
                visit.process.wait_for_the_end()

    def _shuffled(self, sides: Mapping[str, Side]) -> dict[str, Side]:
        return {name: sides[name] for name in self._chooser.sample(list(sides), len(sides))}

    def _surroundings(self, hash_seed: int) -> Surroundings:
        return Surroundings(hash_seed=hash_seed, threads=self._threads)


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What is known of a benchmark so far."""

    benchmark: Benchmark
    pilot: BenchmarkNote | None = None
    processes: list[BenchmarkProcess] = field(default_factory=list)
    failure: str | None = None

    @property
    def calls(self) -> int:
        return 1 if self.pilot is None else self.pilot.calls

    @contextmanager
    def noting_failures(self) -> Iterator[None]:
        try:
            yield
        except ProgramFailedError as error:
            self.failure = str(error)

    def told(self) -> MeasuredBenchmark:
        return MeasuredBenchmark(
            benchmark=self.benchmark,
            memory=None if self.pilot is None else self.pilot.memory,
            why_uncounted=None if self.pilot is None else self.pilot.why_uncounted,
            processes=tuple(self.processes),
            failure=self.failure,
        )


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One process of a benchmark, from its start to its end."""

    seen: _Seen
    process: PacedProcess
    plan: Plan | None = None
    warmup: list[Turn] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        """Whether it has turns to take."""
        return self.plan is not None and self.seen.failure is None and len(self.turns) < self.plan.rounds

    def start(self) -> None:
        """Wait until its arguments are made; all others' too, before one of them warms up."""
        with self.seen.noting_failures():
            _expect(self.process.first_turn(), self.process)

    def warm_up(self) -> None:
        """Let it make calls until two windows of turns agree, or patience is at its end."""
        if self.seen.failure is not None:
            return
        with self.seen.noting_failures():
            spent_ns = 0
            while not self._is_warmed_up(spent_ns):
                self.warmup.append(_expect(self.process.take_turn(steps=1), self.process))
                spent_ns += self.warmup[-1].duration_ns
            wanted = Wanted(unit="call", calls_per_step=self.seen.calls)
            steps = tuple(turn.steps for turn in self.warmup)
            warmed = Warmed(turns=steps, step_ns=tuple(self._series()), last=self.warmup[-1])
            self.plan = lay_out([warmed], wanted)
            self._rest()

    def _is_warmed_up(self, spent_ns: int) -> bool:
        if len(self.warmup) < WARM_STEPS or spent_ns < WARM_NS:
            return False
        return spent_ns >= WARM_NS + PATIENCE_NS or is_steady(self._series())

    def _series(self) -> list[float]:
        return [turn.duration_ns / turn.steps for turn in self.warmup]

    def take_turn(self) -> None:
        """One of the turns that count."""
        if self.plan is None:
            return
        with self.seen.noting_failures():
            turn = self.process.take_turn(lead=self.plan.lead_steps, steps=self.plan.turn_steps)
            self.turns.append(_expect(turn, self.process))
            self._rest()

    def _rest(self) -> None:
        if self.plan is not None and self.plan.in_blocks:
            self.process.stop()

    def end(self, hash_seed: int) -> None:
        """Have it end, and keep what it did if it did all of it."""
        self.process.order(Order(ends=True))
        if self.seen.failure is not None or not self.turns:
            return
        last = self.turns[-1]
        self.seen.processes.append(
            BenchmarkProcess(
                hash_seed=hash_seed,
                turns=self._in_calls(self.turns),
                warmup=self._in_calls(self.warmup),
                is_warm=is_steady(self._series()) if len(self.warmup) >= 2 * WINDOW else None,
                resident_peak_bytes=last.peak_bytes,
                note=_note_of(last),
            )
        )

    def _in_calls(self, turns: Sequence[Turn]) -> tuple[CallTurn, ...]:
        return tuple(CallTurn(turn.duration_ns, turn.steps * self.seen.calls) for turn in turns)


def _expect(turn: Turn | None, process: PacedProcess) -> Turn:
    if turn is None:
        raise ProgramFailedError(process.side.name, 0, process.last_words())
    return turn


def _note_of(turn: Turn) -> BenchmarkNote:
    return msgspec.json.decode(turn.note or "", type=BenchmarkNote)
