"""Batches that take no time to make, for workers beyond need."""

from loop import GUILTY, Samples, loader, net, train

train(net(hidden=1_024, layers=4), loader(Samples(16 * 100), num_workers=4 if GUILTY else 1))
