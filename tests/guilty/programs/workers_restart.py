"""Short epochs, each of which starts its workers anew."""

from loop import GUILTY, Samples, loader, net, train

train(net(), loader(Samples(16 * 12), num_workers=1, persistent_workers=not GUILTY), epochs=6)
