"""Samples are fetched from something slow, in the program's own process."""

from loop import GUILTY, Samples, loader, net, train

train(net(hidden=1_024, layers=4), loader(Samples(640, fetch_s=0.002 if GUILTY else 0.0)))
