"""The plain loops that the programs of this folder are made of."""

import sys
import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

GUILTY = sys.argv[1] == "guilty"

torch.manual_seed(0)
torch.set_num_threads(1)


class Samples(Dataset[Tensor]):
    """So many samples, each of which takes a while to fetch, and is transformed if there is a transform."""

    def __init__(
        self,
        count: int,
        *,
        width: int = 64,
        fetch_s: float = 0.0,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.values = torch.randn(count, width)
        self.fetch_s = fetch_s
        self.transform = transform

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Tensor:
        if self.fetch_s:
            time.sleep(self.fetch_s)
        value = self.values[index]
        return value if self.transform is None else self.transform(value)


def net(*, width: int = 64, hidden: int = 512, layers: int = 3) -> nn.Module:
    """A feed-forward net."""
    between = [layer for _ in range(layers - 2) for layer in (nn.Linear(hidden, hidden), nn.ReLU())]
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), *between, nn.Linear(hidden, 1))


def train(
    model: nn.Module,
    batches: Iterable[Tensor],
    *,
    epochs: int = 1,
    optimizer: torch.optim.Optimizer | None = None,
    after: Callable[[int], object] = int,
) -> None:
    """Train on the batches; ``after`` is called at the end of each step."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-4)
    step = 0
    for _ in range(epochs):
        for batch in batches:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(step)
            step += 1


def loader(dataset: Dataset[Tensor], *, batch_size: int = 16, **options: object) -> "DataLoader[Tensor]":
    """A loader over the samples."""
    return DataLoader(dataset, batch_size=batch_size, **options)  # type: ignore[arg-type]
