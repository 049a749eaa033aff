"""Small PyTorch programs to watch in this process, and what was seen of them."""

from collections.abc import Callable
from typing import Any

from pyrometer.capture import losses
from pyrometer.record.torch_run import StepGroup, TorchRun
from pyrometer.session import _run_so_far


def seen() -> TorchRun:
    """What is known of the PyTorch work so far."""
    run = _run_so_far().torch
    assert run is not None
    return run


def groups_by_label(run: TorchRun) -> dict[tuple[str, str], StepGroup]:
    """The groups of steps by (kind, label)."""
    return {(group.kind, group.label): group for group in run.groups}


def failures() -> list[tuple[str, str]]:
    """What our hooks failed at; not that the Python twin counts no bytes."""
    return [(collector, reason) for collector, reason in losses.failures if collector != "memory"]


def net() -> Any:
    """Three layers, from 16 features to 4 classes."""
    from torch import nn

    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def loader(batches: int = 10) -> Any:
    """Batches of four for ``net()``, made in the program's own process."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    samples = batches * 4
    data = TensorDataset(torch.ones(samples, 16), torch.zeros(samples, dtype=torch.long))
    return DataLoader(data, batch_size=4)


def train(model: Any, batches: Any, optimizer: Any = None, after_step: Callable[[], object] = int) -> None:
    """The usual loop."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer
    for inputs, targets in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        after_step()


def compiled(function: Any) -> Any:
    """The function, compiled by Dynamo alone."""
    import torch

    return torch.compile(function, backend="eager")


def forget_compiled() -> None:
    """Have Dynamo begin anew."""
    import torch

    dynamo: Any = torch._dynamo
    dynamo.reset()
