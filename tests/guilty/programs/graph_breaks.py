"""A compiled model that prints; its twin does not."""

import torch
from loop import GUILTY
from torch import Tensor, nn


class Talking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden: Tensor = self.linear(inputs)
        if GUILTY:
            torch._dynamo.graph_break()
        return hidden.relu()


model = torch.compile(Talking(), backend="eager")
with torch.no_grad():
    for _ in range(20):
        model(torch.randn(16, 64))
