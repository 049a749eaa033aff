"""Nobody gains by what goes on while it waits, and nobody loses by what the other side has cached."""

import json
import os
import signal
from pathlib import Path

import pytest

from pyrometer.cli.measuring import bytecode_alike, check_writable, end_cleanly_on_termination
from pyrometer.errors import UsageError
from pyrometer.experiment.errors import RefusedError
from pyrometer.experiment.experiment import Conditions, Contender, Experiment
from pyrometer.experiment.imported import source_root_of
from pyrometer.experiment.paced_process import Side, Surroundings
from pyrometer.experiment.planning import Wanted

_LOOP = """
from pyrometer.capture import pacing
import threading, time

made = 0
while made < 100_000:
    sum(range(20_000))
    made += 1
    if made == START:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    pacing.active.steps_ended(1, samples=1)
"""


def contender(folder: Path, name: str, thread_after: int) -> Contender:
    script = folder / f"{name}.py"
    script.write_text(_LOOP.replace("START", str(thread_after)))
    side = Side(name=name, arguments=(str(script),), folder=folder, program_folder=folder)
    return Contender(side=side, tree=None)


def experiment(tmp_path: Path, thread_after: int) -> Experiment:
    conditions = Conditions(wanted=Wanted(rounds=3), allowed=frozenset({"program", "inputs"}))
    return Experiment(
        contender(tmp_path, "plain", -1), contender(tmp_path, "threaded", thread_after), conditions
    )


def test_a_candidate_that_has_a_thread_is_halted_though_the_baseline_has_none(tmp_path: Path) -> None:
    assert experiment(tmp_path, 1).plan.in_blocks
    assert not experiment(tmp_path, -1).plan.in_blocks


def test_what_was_measured_before_a_thread_began_is_measured_again_in_blocks(tmp_path: Path) -> None:
    measuring = experiment(tmp_path, -1)
    plan = measuring.plan
    assert not plan.in_blocks
    # The plan is made, and was made of a program without the thread: it begins with the first timed turn.
    warmup = 1 + sum(plan.warmup_turns)
    contender(tmp_path, "threaded", warmup + plan.lead_steps + 1)
    (pair,) = measuring.measure(1)
    assert measuring.plan.in_blocks
    assert len(pair.candidate.rounds) == measuring.plan.rounds


def test_processes_of_one_thread_run_on_one_core(tmp_path: Path) -> None:
    script = tmp_path / "where.py"
    script.write_text(
        "import os\n"
        + _LOOP.replace("START", "-1").replace(
            "sum(range(20_000))",
            "pacing.active.note = str(sorted(os.sched_getaffinity(0))); sum(range(20_000))",
        )
    )
    side = Side(name="it", arguments=(str(script),), folder=tmp_path, program_folder=tmp_path)
    both = Contender(side=side, tree=None)
    for threads, on_one_core in ((1, True), (None, False)):
        conditions = Conditions(wanted=Wanted(rounds=3, threads=threads))
        (pair,) = Experiment(both, both, conditions).measure(1)
        cores = {process.note for process in (pair.baseline, pair.candidate, pair.control) if process}
        assert len(cores) == 1
        usable = len(os.sched_getaffinity(0))
        assert (len(json.loads(str(cores.pop()))) == 1) is (on_one_core or usable == 1)


def test_a_tree_without_bytecode_is_no_slower_than_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with bytecode_alike([tmp_path]) as folder:
        assert folder is not None
        side = Side(name="it", arguments=("x.py",), folder=tmp_path, program_folder=tmp_path)
        environment = Surroundings(hash_seed=1, threads=None, bytecode=folder).environment(side)
        assert environment["PYTHONPYCACHEPREFIX"] == str(folder)
        assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert not folder.exists()
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    with bytecode_alike([tmp_path]) as beside_the_code:
        assert beside_the_code is None


def test_a_tree_that_cannot_be_written_keeps_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    # The tests may run as root, who may write everywhere.
    monkeypatch.setattr("os.access", lambda *_: False)
    with bytecode_alike([tmp_path]) as folder:
        assert folder is not None


def test_a_result_that_could_not_be_written_is_told_first(tmp_path: Path) -> None:
    check_writable("--summary", None, endings=(".md",))
    check_writable("--summary", str(tmp_path / "new.md"), endings=(".md",))
    for place in (tmp_path / "nowhere" / "new.md",):
        with pytest.raises(UsageError, match="cannot be written"):
            check_writable("--summary", str(place), endings=(".md",))


def test_a_result_never_takes_the_place_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "settings.json").write_text("{}\n")
    (tmp_path / "gate.json").write_text('{"format": "pyrometer-gate"}')
    with pytest.raises(UsageError, match=r"train\.py"):
        check_writable("-o", str(tmp_path / "train.py"), endings=(".json",), begins="pyrometer-gate")
    with pytest.raises(UsageError, match="something else"):
        check_writable("-o", str(tmp_path / "settings.json"), endings=(".json",), begins="pyrometer-gate")
    check_writable("-o", str(tmp_path / "gate.json"), endings=(".json",), begins="pyrometer-gate")


def test_a_command_that_is_told_to_end_ends_as_by_exit() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number in before:
            # As under nohup it may be ignored, which stays so.
            signal.signal(number, signal.SIG_DFL)
        end_cleanly_on_termination()
        for number in before:
            with pytest.raises(SystemExit) as ended:
                signal.raise_signal(number)
            assert ended.value.code == 128 + number
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_program_that_swallows_its_end_is_refused_at_once(tmp_path: Path) -> None:
    script = tmp_path / "swallows.py"
    script.write_text(
        _LOOP.replace("START", "-1").replace(
            "    pacing.active.steps_ended(1, samples=1)",
            "    try:\n        pacing.active.steps_ended(1)\n    except BaseException:\n"
            "        print('on we go', flush=True)",
        )
    )
    side = Side(name="it", arguments=(str(script),), folder=tmp_path, program_folder=tmp_path)
    both = Contender(side=side, tree=None)
    with pytest.raises(
        RefusedError, match=r"did not end when it was told to[\s\S]*the last it said:\non we go"
    ):
        Experiment(both, both, Conditions(wanted=Wanted(rounds=3))).measure(1)


@pytest.mark.torch
def test_a_program_with_too_few_steps_is_measured_whole_and_says_so(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "standard_net.py"
    arguments = (str(script), "--batches", "3")
    side = Side(name="it", arguments=arguments, folder=tmp_path, program_folder=script.parent)
    both = Contender(side=side, tree=None)
    plan = Experiment(both, both, Conditions()).plan
    assert plan.unit == "program"
    assert plan.few_steps is not None
    assert 0 < plan.few_steps < 10


def test_the_way_out_names_the_folder_that_has_the_module() -> None:
    files = {"src/model/__init__.py", "src/model/core.py", "tool.py", "packages/mono/mono/core.py"}
    assert source_root_of("model", files) == "src"
    assert source_root_of("model.core", files) == "src"
    assert source_root_of("tool", files) == "."
    assert source_root_of("numpy", files) is None
