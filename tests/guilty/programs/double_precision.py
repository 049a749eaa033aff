"""Parameters and data in float64; its twin has float32."""

import torch
from loop import GUILTY, net, train

dtype = torch.float64 if GUILTY else torch.float32
train(net().to(dtype), [torch.randn(64, 64, dtype=dtype)] * 60)
