"""Batches made by two worker processes: two epochs of ten training steps."""

import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Samples made when asked for, with random numbers of the worker."""

    def __len__(self) -> int:
        return 80

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        point = torch.full((16,), float(index)) + torch.randn(16)
        return point / 80, point.mean(0, keepdim=True) / 80


def main() -> None:
    """Train, and tell what came out."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    loader = DataLoader(Noisy(), batch_size=8, num_workers=2)
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    tell(model, losses)


if __name__ == "__main__":
    main()
