"""A model with a scripted part: 20 training steps."""

import warnings

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# torch calls scripting deprecated; many programs still do it.
warnings.simplefilter("ignore", DeprecationWarning)
torch.set_num_threads(1)
torch.manual_seed(0)
body = torch.jit.script(nn.Sequential(nn.Linear(16, 32), nn.ReLU()))
model = nn.Sequential(body, nn.Linear(32, 1))
loader = DataLoader(TensorDataset(torch.randn(160, 16), torch.randn(160, 1)), batch_size=8)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell(model, losses)
