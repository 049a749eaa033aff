"""A model through torch.compile in one graph: 20 training steps."""

import torch
from outcome import tell
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
loader = DataLoader(TensorDataset(torch.randn(160, 16), torch.randn(160, 1)), batch_size=8)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(compiled(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"graphs {counters['stats']['unique_graphs']}, breaks {sum(counters['graph_break'].values())}")
tell(model, losses)
