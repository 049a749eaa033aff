"""A layer that casts its input to and fro; its twin does not."""

import torch
from loop import GUILTY, train
from torch import Tensor, nn


class Casting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, inputs: Tensor) -> Tensor:
        if GUILTY:
            inputs = inputs.double().t().contiguous().t().contiguous().float()
        outputs: Tensor = self.linear(inputs)
        return outputs


train(Casting(), [torch.randn(512, 512)] * 40)
