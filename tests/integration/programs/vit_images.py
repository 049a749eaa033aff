"""A ViT built from a configuration, trained on generated images in a plain loop: 10 steps of 4."""

import torch
from outcome import tell
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification

torch.set_num_threads(1)
torch.manual_seed(0)
config = ViTConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
)
config.num_labels = 5
model = ViTForImageClassification(config).train()
loader = DataLoader(TensorDataset(torch.randn(40, 3, 32, 32), torch.randint(5, (40,))), batch_size=4)
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for images, labels in loader:
    optimizer.zero_grad()
    loss = model(pixel_values=images, labels=labels).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell(model, losses)
