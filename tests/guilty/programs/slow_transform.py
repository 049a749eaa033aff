"""A slow transform; its twin takes as long to fetch the samples."""

import time

from loop import GUILTY, Samples, loader, net, train
from torch import Tensor


def transform(sample: Tensor) -> Tensor:
    if GUILTY:
        time.sleep(0.0005)
    return sample


samples = Samples(640, fetch_s=0.0 if GUILTY else 0.0005, transform=transform)
train(net(), loader(samples, num_workers=1))
