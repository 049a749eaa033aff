"""Programs that wait for their turns, in processes of their own."""

import errno
import os
import random
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.experiment.paced_process import Side, Surroundings, running
from pyrometer.experiment.pairs import measure_pair
from pyrometer.experiment.planning import Wanted, plan_turns, whole_program
from pyrometer.record.trials import Plan

_LOOP = """
import os, sys
from pyrometer.capture import pacing
import pyrometer

made = 0
while made < int(sys.argv[1]):
    with pyrometer.scope("work"):
        for _ in range(3):
            with pyrometer.scope("part"):
                sum(range(1_000))
    made += 1
    print(made, flush=True)
    pacing.active.steps_ended(1, samples=8)
"""

_SURROUNDINGS = Surroundings(hash_seed=7, threads=1)


def side(folder: Path, text: str, *arguments: str, name: str = "it") -> Side:
    script = folder / "program.py"
    script.write_text(text)
    return Side(name=name, arguments=(str(script), *arguments), folder=folder, program_folder=folder)


def plan(**fields: object) -> Plan:
    usual = {
        "unit": "step",
        "warmup_turns": (1, 1, 1),
        "warmup_ns": (1e6, 1e6, 1e6),
        "is_warm": True,
        "lead_steps": 1,
        "turn_steps": 2,
        "rounds": 3,
        "in_blocks": False,
        "threads": 1,
        "step_ns": 1e6,
    }
    return Plan(**(usual | fields))  # type: ignore[arg-type]


def test_a_program_makes_as_many_steps_as_it_is_told(tmp_path: Path) -> None:
    with running({"one": side(tmp_path, _LOOP, "100")}, _SURROUNDINGS, tmp_path) as processes:
        process = processes["one"]
        first = process.first_turn()
        turn = process.take_turn(steps=5, lead=2)
        assert first is not None
        assert turn is not None
        assert (first.steps, turn.steps, turn.samples) == (1, 5, 40)
        # One before the first wait, two that lead, five that count.
        assert process.last_words().splitlines()[-1] == "8"


def test_a_turn_tells_what_was_called_in_its_timed_steps(tmp_path: Path) -> None:
    with running({"one": side(tmp_path, _LOOP, "100")}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        turn = processes["one"].take_turn(steps=4, lead=1)
    assert turn is not None
    calls = {node.path: node.calls for node in turn.nodes}
    assert calls == {("scope", "work"): 4, ("scope", "work", "part"): 12}
    own_ns = sum(node.self_ns for node in turn.nodes)
    assert 0 < own_ns <= turn.duration_ns


def test_a_program_that_is_told_to_end_ends_as_by_exit(tmp_path: Path) -> None:
    text = "import atexit\natexit.register(lambda: print('goodbye', flush=True))\n" + _LOOP
    with running({"one": side(tmp_path, text, "100")}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        farewell = processes["one"].end()
        assert farewell is not None
        assert farewell.imported["__main__"] == str((tmp_path / "program.py").resolve())
        assert processes["one"].last_words().splitlines() == ["1", "goodbye"]
        assert processes["one"].run_file.exists()


def test_a_program_that_ends_by_itself_has_no_more_turns(tmp_path: Path) -> None:
    with running({"one": side(tmp_path, _LOOP, "3")}, _SURROUNDINGS, tmp_path) as processes:
        assert processes["one"].first_turn() is not None
        assert processes["one"].take_turn(steps=10) is None


def test_a_program_that_fails_says_so_with_its_last_words(tmp_path: Path) -> None:
    failing = side(tmp_path, "raise SystemExit('no data here')", name="main")
    with (
        running({"one": failing}, _SURROUNDINGS, tmp_path) as processes,
        pytest.raises(ProgramFailedError, match=r"exit code 1 \(main\).*\nno data here") as failure,
    ):
        processes["one"].first_turn()
    assert failure.value.exit_code == 5


def test_ends_are_waited_for_where_the_system_cannot_be_asked_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux before 5.3, as on many clusters."""

    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    late = "import atexit, pathlib\natexit.register(pathlib.Path('ended').touch)\n"
    with running({"one": side(tmp_path, late + _LOOP, "9")}, _SURROUNDINGS, tmp_path) as processes:
        assert processes["one"].first_turn() is not None
        assert processes["one"].end() is not None
    assert (tmp_path / "ended").exists()


def test_nothing_is_left_running(tmp_path: Path) -> None:
    forking = (
        "import os, time\nif (child := os.fork()) == 0:\n    time.sleep(1_000)\nprint(child, flush=True)\n"
    )
    with running({"one": side(tmp_path, forking + _LOOP, "9")}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        child = os.pidfd_open(int(processes["one"].last_words().splitlines()[0]))
        assert not has_ended(child, within_s=0)
    assert has_ended(child, within_s=10)
    os.close(child)


def has_ended(process: int, *, within_s: float) -> bool:
    return bool(select.select([process], [], [], within_s)[0])


_WITH_A_CHILD = """
import os, sys, time
from pyrometer.capture import pacing

program = os.getpid()
if os.fork() == 0:
    # As workers of a loader do: they end once nobody is there for them, if they are not halted.
    while os.getppid() == program:
        time.sleep(0.1)
    os._exit(0)
while True:
    pacing.active.steps_ended()
"""

_MEASURING = """
import sys, time
from pathlib import Path
from pyrometer.experiment.paced_process import Side, Surroundings, running

folder = Path(sys.argv[1])
side = Side(name="it", arguments=(str(folder / "program.py"),), folder=folder, program_folder=folder)
with running({"one": side}, Surroundings(hash_seed=7, threads=1), folder) as processes:
    processes["one"].first_turn()
    processes["one"].stop()
    print(processes["one"]._process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what it started is found in /proc")
def test_what_was_halted_does_not_outlive_whoever_halted_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_WITH_A_CHILD)
    command = [sys.executable, "-c", _MEASURING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as measuring:
        assert measuring.stdout is not None
        group = int(measuring.stdout.readline())
        halted = [psutil.Process(group), *psutil.Process(group).children()]
        assert len(halted) == 2
        while any(process.status() != psutil.STATUS_STOPPED for process in halted):
            os.sched_yield()  # the signal is on its way
        measuring.kill()
    _, alive = psutil.wait_procs(halted, timeout=60)
    assert alive == []


def test_threads_and_hash_seed_are_those_of_the_pair(tmp_path: Path) -> None:
    text = (
        "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ['PYTHONHASHSEED'], flush=True)\n" + _LOOP
    )
    with running({"one": side(tmp_path, text, "9")}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        assert processes["one"].last_words().splitlines()[0] == "1 7"


def test_the_program_does_not_see_how_it_was_started(tmp_path: Path) -> None:
    text = (
        "import os, sys\nprint(sorted(n for n in os.environ if 'PYROMETER_LAUNCH' in n or n == 'PYTHONPATH'),"
        " sys.argv, flush=True)\n" + _LOOP
    )
    with running({"one": side(tmp_path, text, "9")}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        shown = processes["one"].last_words().splitlines()[0]
    assert shown == f"[] {[str(tmp_path / 'program.py'), '9']}"


def test_a_pair_has_a_round_of_each_side_and_a_control(tmp_path: Path) -> None:
    one = side(tmp_path, _LOOP, "1000")
    measured = measure_pair(
        {"baseline": one, "candidate": one, "control": one},
        plan(),
        _SURROUNDINGS,
        scratch=tmp_path,
        chooser=random.Random(1),
    )
    for process in (measured.pair.baseline, measured.pair.candidate, measured.pair.control):
        assert process is not None
        assert [(turn.steps, turn.samples) for turn in process.rounds] == [(2, 16)] * 3
        assert len(process.warmup_ns) == 3
        assert {node.path[-1]: node.calls for node in process.nodes} == {"work": 1, "part": 3}
    assert all(node.change_ns == 0 for node in measured.pair.baseline.nodes)
    assert set(measured.runs) == {"baseline", "candidate", "control"}


def test_before_a_turn_there_are_now_so_many_steps_and_now_one_more(tmp_path: Path) -> None:
    """What is done in every third step would fall into the same one of three always."""
    one = side(tmp_path, _LOOP, "1000")
    kept = tmp_path / "kept"
    kept.mkdir()
    made = plan(rounds=40)
    measure_pair(
        {"baseline": one, "candidate": one}, made, _SURROUNDINGS, scratch=kept, chooser=random.Random(1)
    )
    steps = {int(file.read_text().split()[-1]) for file in kept.rglob("output.txt")}
    fewest = 1 + sum(made.warmup_turns) + made.rounds * (made.lead_steps + made.turn_steps)
    # Alike on both sides; of forty rounds about half have one more.
    assert len(steps) == 1
    assert fewest + 10 < steps.pop() < fewest + 30


def test_a_side_that_ends_too_soon_is_an_error(tmp_path: Path) -> None:
    one = side(tmp_path, _LOOP, "4")
    with pytest.raises(ProgramFailedError, match="ended before its turns were over"):
        measure_pair(
            {"baseline": one, "candidate": one},
            plan(),
            _SURROUNDINGS,
            scratch=tmp_path,
            chooser=random.Random(1),
        )


def test_a_program_without_steps_is_measured_as_a_whole(tmp_path: Path) -> None:
    text = "import pyrometer\nwith pyrometer.scope('all'):\n    sum(range(100_000))\n"
    one = side(tmp_path, text)
    with running({"pilot": one}, _SURROUNDINGS, tmp_path) as processes:
        found = plan_turns([processes["pilot"]], Wanted())
    assert found == whole_program(Wanted())
    measured = measure_pair(
        {"baseline": one, "candidate": one}, found, _SURROUNDINGS, scratch=tmp_path, chooser=random.Random(1)
    )
    for process in (measured.pair.baseline, measured.pair.candidate):
        assert [turn.steps for turn in process.rounds] == [1]
        assert [node.path for node in process.nodes] == [("scope", "all")]
    assert set(measured.farewells) == {"baseline", "candidate"}


def test_a_program_with_helpers_takes_turns_in_blocks(tmp_path: Path) -> None:
    text = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        + _LOOP
    )
    with running({"pilot": side(tmp_path, text, "100000")}, _SURROUNDINGS, tmp_path) as processes:
        found = plan_turns([processes["pilot"]], Wanted())
    assert found.in_blocks
    one = side(tmp_path, text, "100000")
    measured = measure_pair(
        {"baseline": one, "candidate": one},
        plan(in_blocks=True),
        _SURROUNDINGS,
        scratch=tmp_path,
        chooser=random.Random(1),
    )
    assert len(measured.pair.candidate.rounds) == 3


@pytest.mark.torch
def test_steps_of_a_training_program_are_found_by_themselves(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "standard_net.py"
    training = Side(
        name="it", arguments=(str(script), "--batches", "40"), folder=tmp_path, program_folder=script.parent
    )
    with running({"one": training}, _SURROUNDINGS, tmp_path) as processes:
        processes["one"].first_turn()
        turn = processes["one"].take_turn(steps=3, lead=1)
        assert turn is not None
        assert (turn.steps, turn.samples, turn.helpers, turn.has_gpu) == (3, 96, 0, False)
        calls = {node.path: node.calls for node in turn.nodes}
        assert calls["module", "forward", "model", "model.0"] == 3
        assert calls["module", "optimizer"] == 3
        farewell = processes["one"].end()
    assert farewell is not None
    assert farewell.losses == ()


@pytest.mark.torch
def test_a_short_training_program_makes_do_with_its_steps(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "standard_net.py"
    training = Side(
        name="it", arguments=(str(script), "--batches", "20"), folder=tmp_path, program_folder=script.parent
    )
    with running({"pilot": training}, _SURROUNDINGS, tmp_path) as processes:
        found = plan_turns([processes["pilot"]], Wanted())
        # It has ended by itself, and said so.
        assert processes["pilot"].end() is not None
    # 23 steps with its own warm-up; one ends before ours begins, and one is only over at the end.
    assert sum(found.warmup_turns) + found.rounds * (found.lead_steps + found.turn_steps) <= 21
    assert found.rounds >= 3
    measured = measure_pair(
        {"baseline": training, "candidate": training},
        found,
        _SURROUNDINGS,
        scratch=tmp_path,
        chooser=random.Random(1),
    )
    assert len(measured.pair.candidate.rounds) == found.rounds
