"""Each tenth step has something else to do; its twin's has not."""

import time

import torch
from loop import GUILTY, net, train


def after(step: int) -> None:
    if GUILTY and step % 10 == 0:
        time.sleep(0.05)


train(net(), [torch.randn(16, 64)] * 150, after=after)
