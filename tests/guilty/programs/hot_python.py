"""A running average, value by value in Python; its twin has one for each batch, by torch."""

import torch
from loop import GUILTY, net, train
from torch import Tensor


def smooth(values: Tensor) -> Tensor:
    if not GUILTY:
        return values - 0.1 * values.mean()
    average = 0.0
    for value in values.flatten().tolist():
        average = 0.9 * average + 0.1 * value
        average = average - 0.001 * average * average + 0.0001 * average * average * average
    return values - average


train(net(), (smooth(torch.randn(256, 64)) for _ in range(200)))
