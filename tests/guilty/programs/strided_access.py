"""Short rows looked up all over a long table; its twin multiplies matrices."""

import torch
from loop import GUILTY
from torch import nn

if GUILTY:
    model: nn.Module = nn.Embedding(4_000_000, 4)
    inputs = torch.randint(0, 4_000_000, (1_000_000,))
else:
    model, inputs = nn.Linear(1_024, 1_024), torch.randn(1_024, 1_024)
with torch.inference_mode():
    for _ in range(20):
        model(inputs)
