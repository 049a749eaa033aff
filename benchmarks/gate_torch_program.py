"""A small training program for gates to measure: eight layers, a batch of 64, steps of about 2 ms.

``--slow NAME --extra N`` has one layer multiply N more small matrices in its forward pass, which nothing
else depends on: real work, of that layer only. ``--threads N`` is what torch may use.
"""

import argparse
from collections import OrderedDict

import torch
from torch import Tensor, nn

WIDTH = 128
LAYERS = ("embed", "first", "second", "third", "fourth", "fifth", "sixth", "head")


class Layer(nn.Module):
    """A linear map and what follows it, with work on top that leads nowhere."""

    def __init__(self, extra: int) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self._extra = extra
        self._rows = torch.randn(16, WIDTH)

    def forward(self, points: Tensor) -> Tensor:
        """The layer's output."""
        if self._extra:
            with torch.no_grad():
                for _ in range(self._extra):
                    torch.mm(self._rows, self.linear.weight)
        return torch.relu(self.linear(points))


def main() -> None:
    """Train until told to end."""
    parser = argparse.ArgumentParser(description="Train a small net, for gates to measure.")
    parser.add_argument("--slow", choices=LAYERS, default=LAYERS[0])
    parser.add_argument("--extra", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    layers = {name: Layer(options.extra if name == options.slow else 0) for name in LAYERS}
    model = nn.Sequential(OrderedDict(layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    criterion = nn.MSELoss()
    points, goals = torch.randn(64, WIDTH), torch.randn(64, WIDTH)
    while True:
        optimizer.zero_grad()
        criterion(model(points), goals).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
