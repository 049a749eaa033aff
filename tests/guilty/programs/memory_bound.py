"""A large matrix for one sample at a time; its twin has a batch of them."""

import torch
from loop import GUILTY
from torch import nn

model = nn.Linear(640, 640)
inputs = torch.randn(1 if GUILTY else 512, 640)
with torch.inference_mode():
    for _ in range(400 if GUILTY else 40):
        model(inputs)
