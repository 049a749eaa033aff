"""A large matrix for one sample at a time; its twin has a batch of them."""

import torch
from loop import GUILTY
from torch import nn

model = nn.Linear(2_048, 2_048)
inputs = torch.randn(1 if GUILTY else 512, 2_048)
with torch.inference_mode():
    for _ in range(200 if GUILTY else 20):
        model(inputs)
