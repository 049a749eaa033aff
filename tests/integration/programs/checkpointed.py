"""A model whose blocks run again in the backward pass (activation checkpointing): 20 training steps."""

import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two blocks with dropout, both checkpointed, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.1)) for _ in range(2)
        )
        self.head = nn.Linear(16, 1)

    def forward(self, states: Tensor) -> Tensor:
        """Through the blocks, nothing of them kept."""
        for block in self.blocks:
            states = checkpoint(block, states, use_reentrant=False)
        value: Tensor = self.head(states)
        return value


torch.set_num_threads(1)
torch.manual_seed(0)
model = Net()
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
