"""The first call of a layer loads something; its twin has it loaded."""

import time

import torch
from loop import GUILTY, train
from torch import Tensor, nn


class Loading(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.loaded = not GUILTY

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.loaded:
            time.sleep(1.0)
            self.loaded = True
        outputs: Tensor = self.linear(inputs)
        return outputs


train(Loading(), [torch.randn(16, 64)] * 60)
