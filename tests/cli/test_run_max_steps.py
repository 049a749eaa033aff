"""``pyrometer run --max-steps N``: the program ends after N steps, as by ``sys.exit()`` in its loop."""

import json
from pathlib import Path

import pytest

from pyrometer.record.run import Run
from tests.cli.running import PROFILED, Ended, Folder

_NET = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Counted(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.ones(8), 0

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fetched = made = 0

def train(inputs, targets):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
"""
_WITH_LOADER = (
    _NET
    + """
try:
    for epoch in range(3):
        for inputs, targets in DataLoader(Counted(), batch_size=4):
            fetched += 1
            train(inputs, targets)
finally:
    print("fetched", fetched, flush=True)
"""
)
_WITHOUT_LOADER = (
    _NET
    + """
try:
    while made < 300:
        made += 1
        train(torch.ones(4, 8), torch.zeros(4, dtype=torch.long))
finally:
    print("begun", made, flush=True)
"""
)

pytestmark = pytest.mark.torch


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def run(folder: Folder, source: str, steps: int, *, native: bool = True) -> Ended:
    """The program under the profiler, on the C core or on its twin."""
    folder.environment["PYROMETER_NATIVE"] = "1" if native else "0"
    folder.write("train.py", source)
    return folder.profiled("--max-steps", str(steps), "train.py")


def steps_of(run: Run) -> int:
    assert run.torch is not None
    return sum(group.steps for group in run.torch.groups)


@pytest.mark.parametrize(("steps", "native"), [(1, True), (7, True), (250, True), (7, False)])
def test_with_a_loader_exactly_so_many_batches_are_used(folder: Folder, steps: int, native: bool) -> None:
    source = "import atexit\natexit.register(print, 'saved')\n" + _WITH_LOADER
    ended = run(folder, source, steps, native=native)
    # What stands in `finally`, and then what is registered with `atexit`.
    assert (ended.stdout, ended.code) == (f"fetched {steps}\nsaved\n", 0), ended.stderr
    record = folder.record()
    assert steps_of(record) == steps
    assert record.outcome.status == "finished"


@pytest.mark.parametrize(("steps", "native"), [(1, True), (30, True), (30, False)])
def test_without_a_loader_at_most_one_more_step_is_begun(folder: Folder, steps: int, native: bool) -> None:
    ended = run(folder, _WITHOUT_LOADER, steps, native=native)
    assert ended.code == 0, ended.stderr
    word, begun = ended.stdout.split()
    assert word == "begun"
    assert steps <= int(begun) <= steps + 1
    assert steps_of(folder.record()) == steps


def test_workers_of_a_loader_end_too(folder: Folder) -> None:
    source = _WITH_LOADER.replace("batch_size=4)", "batch_size=4, num_workers=2)")
    ended = run(folder, source, 5)
    assert (ended.stdout, ended.code) == ("fetched 5\n", 0), ended.stderr
    assert steps_of(folder.record()) == 5


def test_marked_steps_count_as_well(folder: Folder) -> None:
    source = """
    import torch
    import pyrometer

    made = 0
    try:
        while True:
            with pyrometer.step():
                made += 1
                torch.ones(8).sum()
    finally:
        print("made", made)
    """
    ended = run(folder, source, 6)
    assert (ended.stdout, ended.code) == ("made 6\n", 0), ended.stderr
    assert steps_of(folder.record()) == 6


@pytest.mark.parametrize("native", [True, False])
def test_a_loop_that_swallows_the_end_gets_it_again_at_the_next_step(folder: Folder, native: bool) -> None:
    source = (
        _NET
        + """
ends = []
while len(ends) < 3 and made < 300:
    made += 1
    try:
        train(torch.ones(4, 8), torch.zeros(4, dtype=torch.long))
    except SystemExit:
        ends.append(made)
print(ends)
"""
    )
    ended = run(folder, source, 5, native=native)
    assert ended.code == 0, ended.stderr
    first, second, third = json.loads(ended.stdout)
    assert 5 <= first <= 6
    assert second - first <= 2
    assert third - second <= 2
    record = folder.record()
    assert steps_of(record) == 5
    went_on = [loss.count for loss in record.losses if "went on" in loss.reason]
    assert went_on == [2]


def test_a_program_with_fewer_steps_ends_by_itself(folder: Folder) -> None:
    ended = run(folder, _WITH_LOADER, 1_000)
    assert (ended.stdout, ended.code) == ("fetched 300\n", 0), ended.stderr
    assert steps_of(folder.record()) == 300


def test_a_program_without_steps_runs_to_its_end(folder: Folder) -> None:
    ended = run(folder, "print('all of it')", 1)
    assert (ended.stdout, ended.code) == ("all of it\n", 0)
    assert [loss.reason for loss in folder.record().losses if "--max-steps" in loss.reason]


def test_passes_without_a_loader_are_known_to_be_steps_after_seventeen(folder: Folder) -> None:
    source = (
        _NET
        + """
try:
    with torch.no_grad():
        while made < 300:
            made += 1
            model(torch.ones(4, 8))
finally:
    print(made)
"""
    )
    ended = run(folder, source, 3)
    assert ended.code == 0, ended.stderr
    # The eighteenth is begun when it is known.
    assert int(ended.stdout) == 18
    assert steps_of(folder.record()) == 3


def test_a_window_of_steps_is_not_widened(folder: Folder) -> None:
    folder.write("train.py", _WITH_LOADER)
    ended = folder.profiled("--max-steps", "20", "--steps", "5:15", "train.py")
    assert (ended.stdout, ended.code) == ("fetched 20\n", 0), ended.stderr
    assert steps_of(folder.record()) == 10


def test_operators_are_seen_in_the_steps_there_are(folder: Folder) -> None:
    folder.write("train.py", _WITH_LOADER)
    ended = folder.profiled("--max-steps", "12", "--ops", "2", "--warmup", "3", "train.py")
    assert (ended.stdout, ended.code) == ("fetched 12\n", 0), ended.stderr
    record = folder.record()
    assert record.torch is not None
    assert record.torch.operators is not None
    assert len(record.torch.operators.windows) == 1
    assert steps_of(record) + record.torch.operators.left_out_steps == 12


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-steps", "0"], "--max-steps"),
        (["--max-steps", "5", "--cachegrind"], "--max-steps needs steps"),
    ],
)
def test_a_number_that_cannot_be_used_is_refused(folder: Folder, options: list[str], problem: str) -> None:
    folder.write("train.py", "print('it ran')")
    ended = folder.run(*PROFILED, *options, "train.py")
    assert ended.code == 2
    assert problem in ended.stderr
    assert ended.stdout == ""
