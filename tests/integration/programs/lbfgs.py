"""L-BFGS: ten steps, each calling its closure as often as it likes."""

import torch
from outcome import tell
from torch import Tensor, nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
inputs, targets = torch.randn(64, 8), torch.randn(64, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
losses: list[float] = []


def closure() -> Tensor:
    """The loss, with gradients."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    losses.append(loss.item())
    return loss


for _ in range(10):
    optimizer.step(closure)
print(f"closure calls {len(losses)}")
tell(model, losses)
