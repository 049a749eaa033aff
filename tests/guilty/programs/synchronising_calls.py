"""The losses of all samples are taken out one by one; its twin takes their mean once."""

import torch
from loop import GUILTY, net

model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
total = 0.0
for _ in range(60):
    losses = model(torch.randn(64, 64)).square()
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    total += sum(loss.item() for loss in losses) if GUILTY else losses.detach().mean().item()
