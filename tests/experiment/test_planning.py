"""How long turns are to be, for programs whose steps take what the test says."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.experiment.paced_process import PacedProcess, Side
from pyrometer.experiment.planning import (
    LEAST_ROUNDS,
    Wanted,
    Warmed,
    is_steady,
    lay_out,
    plan_turns,
    whole_program,
    with_fewer_steps,
)
from pyrometer.record.trials import Plan
from pyrometer.record.turns import Turn
from pyrometer.store.run_files import write_run
from tests.compared_runs import Net, net_run

MS = 1_000_000


@pytest.mark.parametrize(
    ("series", "steady"),
    [
        ([1.0] * 9, False),  # two windows of five are ten
        ([1.0] * 10, True),
        ([9.0, 9.0, *[1.0] * 10], True),
        ([100.0] * 5 + [102.0] * 5, True),
        ([100.0] * 5 + [103.0] * 5, False),
        ([100.0] * 5 + [97.0] * 5, False),
        ([1.0] * 7 + [50.0, 50.0, 1.0], True),  # two of five are outliers
        ([1.0] * 7 + [50.0, 50.0, 50.0], False),
    ],
)
def test_steady_is_when_the_last_two_windows_of_five_agree(series: list[float], steady: bool) -> None:
    assert is_steady(series) is steady


def warmed(
    step_ns: float,
    *,
    turns: Sequence[int] = (1,) * 12,
    helpers: int = 0,
    prefetched_batches: int = 0,
    has_gpu: bool = False,
) -> Warmed:
    """A program that has warmed up, with steps that take so long."""
    last = Turn(
        steps=1,
        duration_ns=round(step_ns),
        helpers=helpers,
        prefetched_batches=prefetched_batches,
        has_gpu=has_gpu,
    )
    return Warmed(turns=tuple(turns), step_ns=(step_ns,) * len(turns), last=last)


def test_quick_steps_make_turns_of_four_milliseconds_after_one_that_leads() -> None:
    plan = lay_out([warmed(10_000)], Wanted())
    assert (plan.turn_steps, plan.lead_steps, plan.rounds, plan.in_blocks) == (400, 1, 24, False)
    assert plan.is_warm
    assert plan.warmup_turns == (1,) * 12


def test_a_step_that_is_long_enough_is_a_turn() -> None:
    plan = lay_out([warmed(50 * MS)], Wanted())
    assert (plan.turn_steps, plan.lead_steps, plan.rounds) == (1, 0, 24)


@pytest.mark.parametrize(("step_s", "rounds"), [(0.25, 24), (0.5, 12), (1, 6), (2, 3), (60, 3)])
def test_with_long_steps_a_pair_has_fewer_rounds_but_three(step_s: float, rounds: int) -> None:
    assert lay_out([warmed(step_s * 1e9)], Wanted()).rounds == rounds


def test_what_the_user_wants_is_done() -> None:
    plan = lay_out([warmed(10_000)], Wanted(rounds=3, threads=None, unit="call", calls_per_step=50))
    assert (plan.rounds, plan.threads, plan.unit, plan.calls_per_step) == (3, None, "call", 50)


def test_loader_workers_make_blocks_in_which_their_queues_are_used_up_first() -> None:
    plan = lay_out([warmed(10 * MS, helpers=2, prefetched_batches=4)], Wanted())
    assert plan.in_blocks
    assert plan.lead_steps == 5
    assert plan.turn_steps == 20  # 0.2 s
    assert plan.rounds == 6
    # Never so few that most of a block came out of the queue.
    slow = lay_out([warmed(1_000 * MS, helpers=2, prefetched_batches=4)], Wanted())
    assert slow.turn_steps == 8


def test_a_gpu_makes_blocks_too_and_so_does_who_asks_for_them() -> None:
    assert lay_out([warmed(10 * MS, has_gpu=True)], Wanted()).in_blocks
    assert lay_out([warmed(10 * MS)], Wanted(in_blocks=True)).in_blocks


def test_two_programs_get_one_plan_that_suits_both() -> None:
    quick, slow = warmed(100_000, turns=(1,) * 12), warmed(8 * MS, turns=(1,) * 30, helpers=1)
    plan = lay_out([quick, slow], Wanted())
    # One needs to be halted: both are. The quick one's turns are long enough, and both warm up alike.
    assert plan.in_blocks
    assert plan.turn_steps == 2_000
    assert plan.warmup_turns == (1,) * 30
    assert lay_out([slow, quick], Wanted()) == plan


@given(
    made=st.integers(0, 3_000),
    step_ns=st.floats(1_000, 1e9),
    warmup=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    helpers=st.integers(0, 1),
    prefetched=st.integers(0, 16),
)
def test_a_short_program_is_never_asked_for_more_steps_than_it_makes(
    made: int, step_ns: float, warmup: list[int], helpers: int, prefetched: int
) -> None:
    full = lay_out([warmed(step_ns, turns=warmup, helpers=helpers, prefetched_batches=prefetched)], Wanted())
    plan = with_fewer_steps(full, made)
    if plan.unit == "program":
        assert plan == whole_program(Wanted(), few_steps=made)
        return
    # The first is over before the warm-up begins, the last only at the end.
    assert _steps_of(plan) <= made - 2
    assert LEAST_ROUNDS <= plan.rounds <= full.rounds
    assert 1 <= plan.turn_steps <= full.turn_steps
    assert plan.lead_steps <= full.lead_steps
    assert plan.in_blocks is full.in_blocks
    assert full.warmup_turns[: len(plan.warmup_turns)] == plan.warmup_turns
    assert len(plan.warmup_ns) == len(plan.warmup_turns)
    if _steps_of(full) <= made - 2 and sum(full.warmup_turns) <= (made - 2) // 3:
        assert plan == full


def _steps_of(plan: Plan) -> int:
    return sum(plan.warmup_turns) + plan.rounds * (plan.lead_steps + plan.turn_steps)


def test_fewer_steps_leave_the_warm_up_no_steadier_than_it_was_by_then() -> None:
    unsteady = Warmed(
        turns=(1,) * 30,
        step_ns=(*(10.0 * MS - number * MS / 4 for number in range(20)), *(5.0 * MS,) * 10),
        last=Turn(steps=1, duration_ns=5 * MS),
    )
    full = lay_out([unsteady], Wanted())
    assert full.is_warm
    short = with_fewer_steps(full, 40)
    assert len(short.warmup_turns) == 12
    assert not short.is_warm


class Pilot:
    """A program that makes so many steps, each of which takes what a function of its number says."""

    def __init__(self, folder: Path, *, steps: int, step_ns: Sequence[float] | float) -> None:
        self.run_file = folder / "run.json"
        self.side = Side(name="it", arguments=("w.py",), folder=folder, program_folder=folder)
        self._steps = steps
        self._step_ns = step_ns
        self.made = 0
        if steps:
            write_run(net_run(Net(steps=steps)), self.run_file)

    def first_turn(self) -> Turn | None:
        return self.take_turn(steps=1)

    def take_turn(self, *, steps: int, lead: int = 0) -> Turn | None:
        duration_ns = 0.0
        for _ in range(lead + steps):
            self.made += 1
            duration_ns += self._next_ns()
        return Turn(steps=steps, duration_ns=round(duration_ns)) if self.made < self._steps else None

    def _next_ns(self) -> float:
        if isinstance(self._step_ns, float | int):
            return self._step_ns
        return self._step_ns[min(self.made, len(self._step_ns)) - 1]


def planned(*pilots: Pilot, wanted: Wanted | None = None) -> Plan:
    return plan_turns(cast("list[PacedProcess]", list(pilots)), wanted or Wanted())


def test_warm_up_takes_a_fifth_of_a_second_at_least(tmp_path: Path) -> None:
    plan = planned(Pilot(tmp_path, steps=100_000, step_ns=MS / 2))
    # Three single steps, and then turns of four: 2 ms.
    assert plan.warmup_turns[:4] == (1, 1, 1, 4)
    assert 400 <= sum(plan.warmup_turns) < 404
    assert (plan.turn_steps, plan.rounds, plan.is_warm) == (8, 24, True)


def test_warm_up_waits_until_steps_are_steady(tmp_path: Path) -> None:
    slowly = [50 * MS - number * MS / 2 for number in range(60)]
    plan = planned(Pilot(tmp_path, steps=100_000, step_ns=[*slowly, 20 * MS]))
    assert not plan.is_warm  # it would have taken longer than is waited for
    soon = planned(Pilot(tmp_path, steps=100_000, step_ns=[60 * MS, 40 * MS, 30 * MS, *[20 * MS] * 2]))
    assert soon.is_warm
    assert soon.step_ns == 20 * MS


def test_a_program_without_steps_is_taken_as_a_whole(tmp_path: Path) -> None:
    assert planned(Pilot(tmp_path, steps=0, step_ns=MS)) == whole_program(Wanted())
    both = planned(Pilot(tmp_path, steps=10_000, step_ns=MS), Pilot(tmp_path, steps=0, step_ns=MS))
    assert both.unit == "program"


def test_a_short_program_makes_do_with_its_steps(tmp_path: Path) -> None:
    plan = planned(Pilot(tmp_path, steps=25, step_ns=10 * MS))
    assert plan.unit == "step"
    assert _steps_of(plan) <= 23
    assert planned(Pilot(tmp_path, steps=5, step_ns=10 * MS)).unit == "program"


def test_the_shorter_of_two_programs_decides(tmp_path: Path) -> None:
    (tmp_path / "long").mkdir()
    (tmp_path / "short").mkdir()

    def pilots() -> tuple[Pilot, Pilot]:
        return (
            Pilot(tmp_path / "long", steps=100_000, step_ns=10 * MS),
            Pilot(tmp_path / "short", steps=25, step_ns=10 * MS),
        )

    plan = planned(*pilots())
    assert _steps_of(plan) <= 23
    assert planned(*reversed(pilots())) == plan


def test_a_program_that_vanishes_without_a_word_is_an_error(tmp_path: Path) -> None:
    pilot = Pilot(tmp_path, steps=25, step_ns=10 * MS)
    pilot.run_file.unlink()
    with pytest.raises(ProgramFailedError, match=r"os\._exit"):
        planned(pilot)


def test_a_plan_can_be_kept_as_it_is() -> None:
    plan = lay_out([warmed(10_000)], Wanted())
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
