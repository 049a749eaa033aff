"""200 steps of a transformer with dropout on sequences of 16 tokens, gradients clipped."""

import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

TOKENS = 50
LENGTH = 16


class Transformer(nn.Module):
    """Two layers over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores for each place."""
        scores: Tensor = self.head(self.encoder(self.embedding(tokens)))
        return scores


torch.set_num_threads(1)
torch.manual_seed(0)
model = Transformer()
tokens = torch.randint(TOKENS, (800, LENGTH + 1))
loader = DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=4, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
tell(model, losses)
