"""A slow collate function; its twin takes as long to fetch the samples."""

import time

import torch
from loop import GUILTY, Samples, loader, net, train
from torch import Tensor


def collate(samples: list[Tensor]) -> Tensor:
    if GUILTY:
        time.sleep(0.008)
    return torch.stack(samples)


train(net(), loader(Samples(640, fetch_s=0.0 if GUILTY else 0.0005), collate_fn=collate))
