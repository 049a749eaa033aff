"""Four batches of 8 to each of ten optimizer steps."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
loader = DataLoader(TensorDataset(torch.randn(320, 16), torch.randn(320, 1)), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for number, (inputs, targets) in enumerate(loader, start=1):
    loss = nn.functional.mse_loss(model(inputs), targets) / 4
    loss.backward()
    losses.append(loss.item())
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
tell(model, losses)
