"""200 steps of the small net, two epochs of 100 batches of 32."""

import torch
from outcome import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
samples = TensorDataset(torch.randn(3_200, 128), torch.randint(10, (3_200,)))
loader = DataLoader(samples, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(model.parameters())
loss_function = nn.CrossEntropyLoss()
losses = []
for _ in range(2):
    for points, labels in loader:
        optimizer.zero_grad()
        loss = loss_function(model(points), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
tell(model, losses)
