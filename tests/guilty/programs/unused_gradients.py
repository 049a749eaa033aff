"""Inference that records gradients; its twin does not."""

import torch
from loop import GUILTY, net

model = net()
with torch.set_grad_enabled(GUILTY):
    for _ in range(40):
        model(torch.randn(64, 64))
