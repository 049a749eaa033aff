"""Three epochs of ten training batches, each followed by five batches of evaluation."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
training = DataLoader(TensorDataset(torch.randn(160, 16), torch.randint(3, (160,))), batch_size=16)
evaluation = DataLoader(TensorDataset(torch.randn(200, 16), torch.randint(3, (200,))), batch_size=40)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for _ in range(3):
    model.train()
    for inputs, labels in training:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        for inputs, labels in evaluation:
            losses.append(nn.functional.cross_entropy(model(inputs), labels).item())
tell(model, losses)
