"""A layer that goes over its input row by row; its twin takes all of it at once."""

import torch
from loop import GUILTY, train
from torch import Tensor, nn


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1_024, 1_024) / 1_024)
        self.small = nn.Parameter(torch.randn(8, 8))

    def forward(self, inputs: Tensor) -> Tensor:
        if GUILTY:
            return torch.stack([torch.tanh(row[:8] @ self.small * 2 + 1) for row in inputs])
        return torch.tanh(inputs @ self.weight * 2 + 1)


train(Rows(), [torch.randn(128, 1_024)] * 40)
