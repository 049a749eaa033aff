"""A model with the user's own hooks of every kind, which change what flows: 20 training steps."""

from typing import Any

import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
first, last = nn.Linear(16, 32), nn.Linear(32, 1)
model = nn.Sequential(first, nn.ReLU(inplace=True), last)
seen: list[str] = []


def before_forward(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Twice the inputs."""
    seen.append("before forward")
    return (2 * inputs[0],)


def after_forward(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
    """Half the output."""
    seen.append("after forward")
    return output / 2


def after_backward(_module: nn.Module, gradients: Any, _outputs: Any) -> Any:
    """Half the gradients."""
    seen.append("after backward")
    return tuple(None if gradient is None else gradient / 2 for gradient in gradients)


first.register_forward_pre_hook(before_forward)
last.register_forward_hook(after_forward)
last.register_full_backward_hook(after_backward)
last.weight.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
loader = DataLoader(TensorDataset(torch.randn(160, 16), torch.randn(160, 1)), batch_size=8)
optimizer = torch.optim.Adam(model.parameters())
optimizer.register_step_post_hook(lambda *_arguments: seen.append("after step"))
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(len(seen), seen[:4])
tell(model, losses)
