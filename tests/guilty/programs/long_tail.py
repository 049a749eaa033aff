"""Each tenth step has something else to do; its twin's has not."""

import time

import torch
from loop import GUILTY, net, train


def after(step: int) -> None:
    # Each step waits, so that what a busy machine adds to one is no tail of its own.
    time.sleep(0.1 if GUILTY and step % 10 == 0 else 0.01)


train(net(), [torch.randn(16, 64)] * 150, after=after)
