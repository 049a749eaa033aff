"""The outputs of each step are kept; its twin keeps a figure."""

import time

import torch
from loop import GUILTY, net, train

kept: list[object] = []


def keep(step: int) -> None:
    """Half a megabyte a step, or a figure."""
    kept.append(torch.ones(250_000) if GUILTY else float(step))
    time.sleep(0.01)


train(net(), [torch.randn(16, 64)] * 200, after=keep)
