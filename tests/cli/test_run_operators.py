"""``pyrometer run --ops`` and ``--trace``: what is asked for, and what a program's user gets."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROFILED, Folder
from tests.cli.test_run_options import launch_options

TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters())
for inputs in torch.utils.data.DataLoader(torch.ones(400, 4), batch_size=8):
    model(inputs).sum().backward()
    optimizer.step()
print(model.weight.sum().item())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("program.py", TRAINING)
    return folder


@pytest.mark.parametrize(
    ("options", "ops"),
    [
        ([], 0),
        (["--ops"], 5),
        (["--ops", "--no-live"], 5),
        (["--ops", "7"], 7),
        (["--ops=7"], 7),
        (["--deep"], 5),
        (["--deep", "--ops", "0"], 0),
        (["--trace", "trace.json"], 5),
        (["--trace", "trace.json", "--ops", "2"], 2),
    ],
)
def test_operators_are_seen_where_they_are_asked_for(folder: Folder, options: list[str], ops: int) -> None:
    assert launch_options(folder, *options)["ops"] == ops


def test_the_settings_ask_too_and_options_overrule_them(folder: Folder) -> None:
    folder.write("pyproject.toml", "[tool.pyrometer.run]\nops = 9\n")
    assert launch_options(folder)["ops"] == 9
    assert launch_options(folder, "--ops")["ops"] == 5


def test_what_follows_the_program_is_the_programs(folder: Folder) -> None:
    folder.write("program.py", "import sys; print(sys.argv[1:])")
    ended = folder.profiled("--ops", "program.py", "--ops", "3")
    assert (ended.stdout, ended.stderr, ended.code) == ("['--ops', '3']\n", "", 0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--ops", "1001"], "--ops is 1001, but must be a whole number of steps from 0 to 1000"),
        (["--ops", "-1"], "--ops is -1, but must be a whole number of steps from 0 to 1000"),
        (["--trace", "t.txt"], "--trace is 't.txt', but must name a file that ends in .json or .json.gz"),
        (["--trace", "t.json", "--ops", "0"], "--trace needs operators to write; leave --ops 0 out"),
        (
            ["--trace", "notes.json"],
            "notes.json exists and is no trace of ours; name another file, or remove this one",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_one_line_and_nothing_is_run(
    folder: Folder, options: list[str], problem: str
) -> None:
    folder.write("notes.json", "[1]")
    ended = folder.run(*PROFILED, *options, "program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("", f"pyrometer: {problem}\n", 2)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["trace.json", "new/trace.json.gz"])
def test_the_operators_of_a_few_steps_are_recorded_and_written_as_a_trace(folder: Folder, name: str) -> None:
    plain = folder.plain("program.py")
    for _ in range(2):  # the second replaces the first
        ended = folder.profiled("--ops", "3", "--trace", name, "program.py")
        # torch's profiler says nothing on stderr, and the program's output is its own.
        assert (ended.stdout, ended.stderr, ended.code) == (plain.stdout, "", 0)
    torch = folder.record().torch
    assert torch is not None
    assert torch.operators is not None
    (window,) = torch.operators.windows
    assert (window.steps, window.label) == (3, "SGD")
    path = folder.programs / name
    text = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
    trace: dict[str, Any] = json.loads(text)
    names = [event["name"] for event in trace["traceEvents"]]
    assert sum(name.startswith("step ") for name in names) == 3
    assert names.count("aten::addmm") >= 3


@pytest.mark.torch
def test_a_program_that_fails_in_the_window_keeps_what_the_window_held(folder: Folder) -> None:
    folder.write(
        "program.py",
        f"steps = 0\n{TRAINING}".replace(
            "    optimizer.step()",
            """    optimizer.step()
    steps += 1
    if steps > 40:
        raise SystemExit(3)""",
        ),
    )
    ended = folder.profiled("--ops", "1000", "program.py")
    assert ended.code == 3
    torch = folder.record().torch
    assert torch is not None
    assert torch.operators is not None
    (window,) = torch.operators.windows
    assert 0 < window.steps < 40


def test_a_trace_of_a_program_without_torch_is_none_and_says_so(folder: Folder) -> None:
    folder.write("program.py", "print('it ran')")
    ended = folder.run(*PROFILED, "--no-report", "--trace", "trace.json", "program.py")
    assert (ended.stdout, ended.code) == ("it ran\n", 0)
    assert "no trace: the program did not use PyTorch" in ended.stderr
    assert not (folder.programs / "trace.json").exists()
