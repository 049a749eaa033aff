import json
import re
from pathlib import Path

import pytest

from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.store.run_files import read_run
from tests.examples.programs import EXAMPLES, run_program

pytestmark = pytest.mark.torch

PROGRAM = EXAMPLES / "standard_net.py"


@pytest.mark.parametrize(
    ("options", "described"),
    [
        ([], "67,210 parameters, 23 batches of 32"),
        (["--batch-size", "64", "--batches", "10"], "67,210 parameters, 13 batches of 64"),
    ],
)
def test_the_standard_configurations_have_three_batches_to_warm_up(
    tmp_path: Path, options: list[str], described: str
) -> None:
    ended = run_program([PROGRAM, *options], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[0] == described


def test_the_net_learns(tmp_path: Path) -> None:
    ended = run_program([PROGRAM, "--batches", "60"], tmp_path)
    [loss] = re.findall(r"loss of the last batch: ([\d.]+)", ended.stdout)
    assert float(loss) < 1.0  # ln 10 = 2.3 for a net that guesses


def test_an_option_out_of_range_is_told_with_its_value(tmp_path: Path) -> None:
    refused = run_program([PROGRAM, "--batch-size", "0"], tmp_path)
    assert refused.returncode == 2
    assert "argument --batch-size: must be a whole number from 1 on, not '0'" in refused.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs and the baseline of both standard configurations, one after the other."""
    folder = tmp_path_factory.mktemp("measured")
    for size, batches in (("32", "20"), ("64", "10")):
        ended = run_program(
            [
                *("-m", "pyrometer", "run", "--warmup", "3", "--baseline", "baseline.json", "-o"),
                *(f"{size}.json", PROGRAM, "--batch-size", size, "--batches", batches),
            ],
            folder,
        )
        assert ended.returncode == 0, ended.stderr
    return folder


def test_its_steps_and_phases_are_found_without_a_word_from_it(measured: Path) -> None:
    results = build_torch_results(read_run(measured / "32.json"))
    assert results is not None
    [group] = results.groups
    assert (group.label, group.steps, group.batches_per_step) == ("Adam", 23, 1)
    assert (group.steady.steps, group.steady.samples) == (20, 20 * 32)
    phases = ["data", "forward", "loss", "backward", "optimizer", "clearing", "other"]
    assert [phase.name for phase in group.phases] == phases
    assert results.modules.parameters == 67_210


def test_both_configurations_make_one_baseline(measured: Path) -> None:
    baseline = json.loads((measured / "baseline.json").read_text(encoding="utf-8"))
    configurations = baseline["configurations"].values()
    assert [one["configuration"]["batch_size"] for one in configurations] == [32, 64]
    assert [len(one["per_batch"]) for one in configurations] == [20, 10]
    assert [one["warmup_batches"] for one in configurations] == [3, 3]
    assert {one["configuration"]["parameters"] for one in configurations} == {67_210}
    assert baseline["gpu_util_avg_percent"] is None
    for one in configurations:
        assert sum(phase["percent"] for phase in one["phases"].values()) == pytest.approx(100)


def test_the_commands_of_the_baseline_measure_the_same_again(measured: Path) -> None:
    before = json.loads((measured / "baseline.json").read_text(encoding="utf-8"))
    [command] = before["commands"]
    _, *arguments = command.split()
    assert command.startswith("pyrometer run --baseline baseline.json --warmup 3 ")
    assert run_program(["-m", "pyrometer", *arguments], measured).returncode == 0
    after = json.loads((measured / "baseline.json").read_text(encoding="utf-8"))
    assert list(after["configurations"]) == list(before["configurations"])
    assert after["timestamp"] > before["timestamp"]
    assert after["configuration"]["argv"] == before["configuration"]["argv"]
