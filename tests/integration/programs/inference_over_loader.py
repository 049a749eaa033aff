"""A model applied to 30 batches of 8, without gradients."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).eval()
loader = DataLoader(TensorDataset(torch.randn(240, 16)), batch_size=8)
with torch.no_grad():
    sums = [model(inputs).sum().item() for (inputs,) in loader]
tell(model, sums)
