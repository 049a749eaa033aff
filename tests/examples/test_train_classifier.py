import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.examples.programs import EXAMPLES, nodes_by_path, run_program

pytestmark = pytest.mark.torch

PROGRAM = EXAMPLES / "train_classifier.py"
EPOCHS = 3
BATCHES = 40
OPTIONS = ["--epochs", str(EPOCHS), "--batches", str(BATCHES), "--seed", "7"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> CompletedProcess[str]:
    return run_program([PROGRAM, *OPTIONS], tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiled") / "run.json"


@pytest.fixture(scope="module")
def profiled(run_file: Path) -> CompletedProcess[str]:
    command: list[str | Path] = ["-m", "pyrometer", "run", "-o", run_file, PROGRAM, *OPTIONS]
    return run_program(command, run_file.parent)


def test_it_learns_well_above_chance(plain: CompletedProcess[str]) -> None:
    assert (plain.returncode, plain.stderr) == (0, "")
    accuracies = [float(percent) for percent in re.findall(r"accuracy ([\d.]+)%", plain.stdout)]
    assert len(accuracies) == 1 + EPOCHS
    assert accuracies[0] < 25
    assert accuracies[-1] > 75


def test_the_net_has_the_parameters_it_is_known_for(plain: CompletedProcess[str]) -> None:
    assert plain.stdout.startswith("67,210 parameters, 40 batches of 32")


def test_profiling_changes_nothing_it_prints(
    plain: CompletedProcess[str], profiled: CompletedProcess[str]
) -> None:
    assert profiled.returncode == 0
    assert profiled.stdout == plain.stdout


def test_the_scopes_of_a_step_stand_under_the_epoch(profiled: CompletedProcess[str], run_file: Path) -> None:
    assert profiled.returncode == 0
    calls = {path: node.calls for path, node in nodes_by_path(run_file).items()}
    parts = ("data", "forward", "loss", "backward", "optimizer")
    around = {("epoch",): EPOCHS, ("epoch", "evaluation"): EPOCHS, ("evaluation",): 1}
    assert calls == around | {("epoch", part): EPOCHS * BATCHES for part in parts}


def test_an_option_out_of_range_is_told_with_its_value(tmp_path: Path) -> None:
    refused = run_program([PROGRAM, "--batches", "0"], tmp_path)
    assert refused.returncode == 2
    assert "argument --batches: must be a whole number from 1 on, not '0'" in refused.stderr
