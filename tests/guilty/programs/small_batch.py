"""Batches of 16 that cost no more than the last ones, of 4; its twin's cost grows with the batch."""

import torch
from loop import GUILTY, loader, net, train
from torch import nn

if GUILTY:
    model: nn.Module = net(hidden=16, layers=24)
    size, count = 16, 16 * 8 + 4
else:
    model = net(width=512, hidden=1_024, layers=3)
    size, count = 256, 256 * 8 + 32

train(model, loader(torch.randn(count, 64 if GUILTY else 512), batch_size=size), epochs=6)  # type: ignore[arg-type]
