"""A generator and a discriminator in turns: two optimizers, two backward passes to a batch, 25 batches."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
loader = DataLoader(TensorDataset(torch.randn(400, 2)), batch_size=16, shuffle=True)
generator_optimizer = torch.optim.Adam(generator.parameters())
discriminator_optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.01)
loss_function = nn.BCEWithLogitsLoss()
real, made_up = torch.ones(16, 1), torch.zeros(16, 1)
losses = []
for (points,) in loader:
    fakes = generator(torch.randn(16, 4))
    discriminator_optimizer.zero_grad()
    found_out = loss_function(discriminator(points), real) + loss_function(
        discriminator(fakes.detach()), made_up
    )
    found_out.backward()
    discriminator_optimizer.step()
    generator_optimizer.zero_grad()
    fooled = loss_function(discriminator(fakes), real)
    fooled.backward()
    generator_optimizer.step()
    losses += [found_out.item(), fooled.item()]
tell(nn.ModuleList([generator, discriminator]), losses)
