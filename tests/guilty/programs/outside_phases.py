"""Inputs are prepared with numpy in the loop; its twin has them prepared before."""

import numpy as np
import torch
from loop import GUILTY, net, train


def prepare() -> torch.Tensor:
    """The spectrum of some noise."""
    noise = np.random.default_rng(0).standard_normal((64, 4_096))
    return torch.from_numpy(np.abs(np.fft.rfft(noise))[:, :64].astype("float32"))


batches = (prepare() for _ in range(60))
train(net(), batches if GUILTY else list(batches))
