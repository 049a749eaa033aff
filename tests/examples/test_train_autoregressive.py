import importlib.util
import json
import re
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from typing import Any

import pytest

from tests.examples.programs import EXAMPLES, nodes_by_path, paths_in_report, run_program

pytestmark = pytest.mark.torch

PROGRAM = EXAMPLES / "train_autoregressive.py"
SMALL: dict[str, dict[str, Any]] = {
    "model": {"layers": 1, "width": 16, "heads": 2, "context": 8},
    "training": {"epochs": 2, "batches": 15, "batch_size": 6, "learning_rate": 0.01, "workers": 3},
}
STEP = ("train_epoch", "Batch_Processing", "Parallel_Training", "train_step")


def losses_in(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)$", output, re.MULTILINE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("autoregressive")
    (folder / "small.json").write_text(json.dumps(SMALL), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> CompletedProcess[str]:
    return run_program([PROGRAM, "-c", "small.json"], folder)


@pytest.fixture(scope="module")
def run_under_pyrometer(folder: Path) -> CompletedProcess[str]:
    command: list[str | Path] = ["-m", "pyrometer", "run", "-o", "run.json", PROGRAM, "-c", "small.json"]
    return run_program(command, folder)


@pytest.fixture(scope="module")
def run_with_flag(tmp_path_factory: pytest.TempPathFactory) -> CompletedProcess[str]:
    """The configuration that comes with it, from a folder that has none."""
    command: list[str | Path] = [PROGRAM, "-c", "configs/autoregressive_training.json", "--profile"]
    return run_program(command, tmp_path_factory.mktemp("elsewhere"))


def test_its_loss_goes_down(plain: CompletedProcess[str]) -> None:
    assert (plain.returncode, plain.stderr) == (0, "")
    first, second = losses_in(plain.stdout)
    assert second < first


def test_profiling_changes_nothing_it_prints(
    plain: CompletedProcess[str], run_under_pyrometer: CompletedProcess[str]
) -> None:
    assert run_under_pyrometer.returncode == 0
    assert run_under_pyrometer.stdout == plain.stdout


def test_the_workers_scopes_stand_under_the_scope_that_gave_them_work(
    folder: Path, run_under_pyrometer: CompletedProcess[str]
) -> None:
    assert run_under_pyrometer.returncode == 0
    nodes = nodes_by_path(folder / "run.json")
    batches, steps = 30, 90
    assert nodes[STEP[:1]].calls == 2
    assert nodes[STEP[:2]].calls == nodes[STEP[:3]].calls == batches
    assert not any(nodes[STEP[:depth]].parallel for depth in (1, 2, 3))
    for path in (STEP, *((*STEP, part) for part in ("Forward_Pass", "Loss_Computation", "Backward_Pass"))):
        assert nodes[path].calls == steps
        assert nodes[path].parallel
    assert nodes[*STEP, "Forward_Pass", "Layer_0", "Attention"].calls == steps
    assert nodes[*STEP[:2], "Optimizer_Step"].calls == batches


def test_its_profile_flag_prints_the_tree_of_scopes_on_stderr(run_with_flag: CompletedProcess[str]) -> None:
    assert run_with_flag.returncode == 0
    paths = paths_in_report(run_with_flag.stderr)
    assert {(*STEP, part) for part in ("Forward_Pass", "Loss_Computation", "Backward_Pass")} <= paths
    assert (*STEP[:2], "Optimizer_Step") in paths
    first, *_, last = losses_in(run_with_flag.stdout)
    assert last < first


def test_its_profile_flag_prints_the_table_of_scopes_on_stderr(run_with_flag: CompletedProcess[str]) -> None:
    heads = next(line.split() for line in run_with_flag.stderr.splitlines() if line.startswith("name "))
    assert {"name", "calls", "total", "avg", "min", "max", "%"} <= set(heads)
    assert "train_step" not in run_with_flag.stdout


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program as a module: starting it for each wrong configuration would import torch each time."""
    spec = importlib.util.spec_from_file_location("train_autoregressive", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model": {"layers": 0}}, "Expected `int` >= 1 - at `$.model.layers`"),
        ({"model": {"width": "wide"}}, "Expected `int`, got `str` - at `$.model.width`"),
        ({"model": {"heads": 3}}, "3 heads cannot share width 16 evenly - at `$.model`"),
        ({"training": {"workers": 4}}, "4 workers cannot share batch_size 6 evenly - at `$.training`"),
        ({"training": {"learning_rate": -1}}, "Expected `float` > 0.0 - at `$.training.learning_rate`"),
        ({"training": {"seeds": 1}}, "Object contains unknown field `seeds` - at `$.training`"),
    ],
)
def test_a_wrong_configuration_gives_one_line_and_exit_code_2(
    change: dict[str, dict[str, object]],
    complaint: str,
    program: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = {section: SMALL[section] | change.get(section, {}) for section in SMALL}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(SystemExit) as refused:
        program.read_config(wrong)
    assert refused.value.code == 2
    assert capsys.readouterr() == (
        "",
        f"train_autoregressive.py: {wrong}: {complaint}. Correct the file, or name another with -c\n",
    )


def test_a_missing_configuration_gives_one_line_and_exit_code_2(tmp_path: Path) -> None:
    refused = run_program([PROGRAM, "-c", "nowhere.json"], tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == (
        "train_autoregressive.py: nowhere.json: No such file or directory. Name a configuration with -c\n"
    )
