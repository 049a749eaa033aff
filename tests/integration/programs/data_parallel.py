"""A model in nn.DataParallel, which on a machine without GPUs just calls it: 20 training steps."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.DataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
loader = DataLoader(TensorDataset(torch.randn(160, 16), torch.randn(160, 1)), batch_size=8)
optimizer = torch.optim.RMSprop(model.parameters())
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell(model, losses)
