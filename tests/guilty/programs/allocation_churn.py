"""A chain of operations, each with a new result; its twin works in place."""

import torch
from loop import GUILTY
from torch import Tensor, nn


class Chain(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        for _ in range(24):
            values = values * 1.01 if GUILTY else values.mul_(1.01)
        return values


model = Chain()
values = torch.randn(500_000)
with torch.inference_mode():
    for _ in range(40):
        model(values)
