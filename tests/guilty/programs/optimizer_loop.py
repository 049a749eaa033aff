"""Adam as it comes, which updates one parameter after the other; its twin is fused."""

import torch
from loop import GUILTY, net, train

model = net(hidden=128, layers=8)
train(
    model,
    [torch.randn(16, 64)] * 100,
    optimizer=torch.optim.Adam(model.parameters(), fused=None if GUILTY else True),
)
