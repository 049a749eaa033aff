"""Four threads for each core; its twin has one in all."""

import os

import torch
from loop import GUILTY, net, train

torch.set_num_threads(4 * (os.cpu_count() or 1) if GUILTY else 1)
train(net(hidden=1_024), [torch.randn(256, 64)] * 20)
