"""A window of steps: every figure is over the steps in it, and over no others."""

import pytest

import pyrometer
from pyrometer.capture import torch_watch
from pyrometer.record.torch_run import TorchRun
from pyrometer.session import _run_so_far

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


def _record(monkeypatch: pytest.MonkeyPatch, first: int, end: int) -> None:
    monkeypatch.setattr(torch_watch, "settings", torch_watch.Settings(window=(first, end)))
    pyrometer.reset()


def _seen() -> TorchRun:
    run = _run_so_far().torch
    assert run is not None
    return run


def test_passes_and_batches_outside_the_window_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    _record(monkeypatch, 20, 30)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        for (points,) in DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=2):
            optimizer.zero_grad()
            model(points).sum().backward()
            optimizer.step()
    run = _seen()
    (group,) = run.groups
    (loader,) = run.loaders
    assert [step.index for step in group.first] == list(range(20, 30))
    assert group.samples == 20
    assert (group.batches, loader.batches, loader.timed_batches) == (10, 10, 10)
    assert loader.wait_ns <= group.total_ns
    # Without the core a local variable gives no name, and the class does.
    names = {"model", "Linear"}
    timed = [node.calls for strand in run.calls for node in strand.nodes if node.name in names]
    assert run.backward_passes == 10
    assert timed == [10, run.timed_backward_passes]
    assert run.timed_backward_passes >= 1


def test_tokens_outside_the_window_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    _record(monkeypatch, 3, 8)
    model = torch.nn.Embedding(7, 2)
    tokens = torch.zeros(1, 4, dtype=torch.int64)
    with pyrometer.profile(), torch.no_grad():
        for _ in range(12):
            model(tokens)
            tokens = torch.cat((tokens, tokens[:, -1:]), dim=1)
    (generation,) = _seen().generations
    assert (generation.passes, generation.tokens) == (5, 5)
    assert sum(position.tokens for position in generation.positions) == 5
