"""Samples are fetched from something slow, in the program's own process."""

from loop import GUILTY, Samples, loader, net, train

train(net(), loader(Samples(640, fetch_s=0.0005 if GUILTY else 0.0)))
