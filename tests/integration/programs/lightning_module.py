"""A Lightning module under its Trainer: two epochs of 12 training and 4 validation batches.

python lightning_module.py [--bar]
"""

import logging
import sys
import warnings

import lightning
import torch
from outcome import tell
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Batch = tuple[Tensor, Tensor]


class Classifier(lightning.LightningModule):
    """A small net, as Lightning wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
        self.losses: list[float] = []

    def training_step(self, batch: Batch, _index: int) -> Tensor:
        """The loss of a training batch."""
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.net(inputs), labels)
        self.log("loss", loss, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: Batch, _index: int) -> None:
        """The loss of a validation batch."""
        inputs, labels = batch
        self.losses.append(nn.functional.cross_entropy(self.net(inputs), labels).item())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam on all weights."""
        return torch.optim.Adam(self.parameters())


def loader(batches: int) -> DataLoader[tuple[Tensor, ...]]:
    """Batches of 8."""
    count = 8 * batches
    return DataLoader(TensorDataset(torch.randn(count, 16), torch.randint(3, (count,))), batch_size=8)


def main() -> None:
    """Fit, and tell what came out."""
    # Its advice on worker processes and GPUs.
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar="--bar" in sys.argv,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, loader(12), loader(4))
    tell(model, model.losses)


if __name__ == "__main__":
    main()
