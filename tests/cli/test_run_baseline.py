"""``pyrometer run --baseline``: when the file is written, and when not."""

import json
from pathlib import Path

import pytest

from tests.cli.running import PROFILED, Folder

NO_STEPS = "there is no baseline of program.py: no step of a PyTorch program was recorded in it"
TRAINING = """
    import sys
    import torch

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters())
    batch_size = int(sys.argv[1])
    for inputs in torch.utils.data.DataLoader(torch.ones(5 * batch_size, 4), batch_size=batch_size):
        model(inputs).sum().backward()
        optimizer.step()
    {end}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_file_of_something_else_is_refused_before_the_program_starts(folder: Folder) -> None:
    folder.write("program.py", "print('it ran')")
    folder.write("notes.json", "{}")
    ended = folder.profiled("--baseline", "notes.json", "program.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr == (
        f"pyrometer: {folder.programs / 'notes.json'} exists and is not a baseline that could be added to "
        '(it has no "format": "pyrometer-baseline"); name another file, or remove this one\n'
    )
    assert (folder.programs / "notes.json").read_text(encoding="utf-8") == "{}"
    assert not folder.run_file.exists()


def test_a_program_without_steps_is_told_so_and_keeps_its_exit_code(folder: Folder) -> None:
    folder.write("program.py", "import sys; sys.exit(3)")
    ended = folder.profiled("--baseline", "baseline.json", "program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("", f"pyrometer: {NO_STEPS}\n", 3)
    assert not (folder.programs / "baseline.json").exists()


@pytest.mark.torch
def test_each_configuration_that_is_run_is_added(folder: Folder) -> None:
    folder.write("program.py", TRAINING.format(end=""))
    for batch_size in ("8", "16", "8"):
        options = ("--no-report", "--warmup", "1", "--baseline", "new/baseline.json")
        ended = folder.run(*PROFILED, "-o", str(folder.run_file), *options, "program.py", batch_size)
        assert ended.code == 0
        assert ended.stderr == (
            f"pyrometer: baseline written to {folder.programs / 'new' / 'baseline.json'}\n"
            f"pyrometer: run written to {folder.run_file}\n"
        )
    baseline = json.loads((folder.programs / "new" / "baseline.json").read_text(encoding="utf-8"))
    sizes = {key: one["configuration"]["batch_size"] for key, one in baseline["configurations"].items()}
    assert sizes == {"program.py 8": 8, "program.py 16": 16}
    assert (baseline["warmup_batches"], len(baseline["per_batch"])) == (1, 4)


@pytest.mark.torch
def test_a_program_that_failed_changes_no_baseline(folder: Folder) -> None:
    folder.write("program.py", TRAINING.format(end="raise ValueError('diverged')"))
    ended = folder.profiled("--baseline", "baseline.json", "program.py", "8")
    assert ended.code == 1
    assert ended.stderr.splitlines()[-1] == (
        "pyrometer: no baseline of a program that failed; if it should be: pyrometer report "
        f"{folder.run_file} --format baseline -o {folder.programs / 'baseline.json'}"
    )
    assert not (folder.programs / "baseline.json").exists()
