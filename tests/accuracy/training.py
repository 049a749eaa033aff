"""A training loop whose parts take time or bytes as the test says, watched in this process."""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import pyrometer
from pyrometer.record.torch_run import StepGroup, TorchRun
from pyrometer.session import _run_so_far

BATCH_SIZE = 4
FEATURES = 8

Do = Callable[[str], object]


def spin(duration_ns: int) -> None:
    """Keep the processor busy for at least so long."""
    end_ns = perf_counter_ns() + duration_ns
    while perf_counter_ns() < end_ns:
        pass


def watch_training(steps: int, **parts: Callable[[], object]) -> TorchRun:
    """What is seen of so many steps, in which each named part does what it is told besides its work.

    Parts: ``data``, ``forward`` and ``backward`` (both of the module ``model.1``), ``loss``,
    ``optimizer``, ``other``.
    """
    import torch
    from torch.utils.data import DataLoader

    def do(part: str) -> None:
        if part in parts:
            parts[part]()

    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, FEATURES), module_that(do), torch.nn.Linear(FEATURES, 1)
    )
    loss_function = loss_that(do)
    optimizer = optimizer_that(do, model)
    with pyrometer.profile():
        for points in DataLoader(samples_that(do, steps), batch_size=BATCH_SIZE):
            optimizer.zero_grad()
            loss = loss_function(model(points), torch.zeros(BATCH_SIZE, 1))
            loss.backward()
            do("other")
            optimizer.step()
    seen = _run_so_far().torch
    assert seen is not None
    return seen


def training_group(seen: TorchRun) -> StepGroup:
    """The one group of steps."""
    (group,) = seen.groups
    assert group.kind == "training"
    return group


def samples_that(do: Do, batches: int) -> Any:
    import torch
    from torch.utils.data import Dataset

    class Samples(Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return batches * BATCH_SIZE

        def __getitem__(self, index: int) -> torch.Tensor:
            if index % BATCH_SIZE == 0:
                do("data")
            return torch.full((FEATURES,), float(index))

    return Samples()


def module_that(do: Do) -> Any:
    import torch

    class Passed(torch.autograd.Function):
        @staticmethod
        def forward(_context: Any, states: torch.Tensor) -> torch.Tensor:
            return states.view_as(states)

        @staticmethod
        def backward(_context: Any, *gradients: Any) -> Any:
            do("backward")
            return gradients[0]

    class Part(torch.nn.Module):
        def forward(self, states: torch.Tensor) -> Any:
            do("forward")
            return Passed.apply(states)  # type: ignore[no-untyped-call]  # torch gives it no types

    return Part()


def loss_that(do: Do) -> Any:
    import torch

    class Loss(torch.nn.MSELoss):
        def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            do("loss")
            return super().forward(scores, targets)

    return Loss()


def optimizer_that(do: Do, model: Any) -> Any:
    import torch

    class Optimizer(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            do("optimizer")
            return super().step(closure)

    return Optimizer(model.parameters(), lr=1e-9)
