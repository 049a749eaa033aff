"""Many objects that live, and new ones in each step; its twin has the old ones left out of the search."""

import gc

import torch
from loop import GUILTY, net, train

kept = [[index] for index in range(1_500_000)]
if not GUILTY:
    gc.freeze()
    gc.disable()


def make_objects(_step: int) -> None:
    """Objects that refer to each other, a dozen thousand of them."""
    for _ in range(12_000):
        pair: list[object] = []
        pair.append(pair)


train(net(), [torch.randn(16, 64)] * 60, after=make_objects)
