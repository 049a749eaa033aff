"""200 steps of an LSTM that predicts the next value of a series."""

import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    """An LSTM and what reads its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 16, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(16, 1)

    def forward(self, series: Tensor) -> Tensor:
        """The next value."""
        states, _ = self.lstm(series)
        value: Tensor = self.head(states[:, -1])
        return value


torch.set_num_threads(1)
torch.manual_seed(0)
model = Forecaster()
series = torch.sin(torch.arange(1_620) / 7) + 0.1 * torch.randn(1_620)
windows = series.unfold(0, 21, 1)
loader = DataLoader(TensorDataset(windows[:, :20, None], windows[:, 20:]), batch_size=8, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_function = nn.MSELoss()
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = loss_function(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell(model, losses)
