"""Batches take 32 ms to make and the steps less: one worker is too few, eight are not."""

from loop import GUILTY, Samples, loader, net, train

train(
    net(hidden=1_024),
    loader(Samples(16 * 60, fetch_s=0.002), num_workers=1 if GUILTY else 8, persistent_workers=True),
)
