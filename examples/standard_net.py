"""Trains the standard net on generated data, in plain PyTorch: what a baseline is made with.

python examples/standard_net.py --batch-size 32 --batches 20        trains
pyrometer run --warmup 3 --baseline baseline.json examples/standard_net.py --batch-size 32 --batches 20
pyrometer run --warmup 3 --baseline baseline.json examples/standard_net.py --batch-size 64 --batches 10

Three batches to warm up come before those asked for.
"""

import argparse

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 128
CLASSES = 10
WARMUP_BATCHES = 3


def build_model() -> nn.Sequential:
    """The three-layer net 128 → 256 → 128 → 10, with 67,210 parameters."""
    return nn.Sequential(
        nn.Linear(FEATURES, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def generate_samples(count: int) -> TensorDataset:
    """Points scattered around the centre of their class."""
    centres = torch.randn(CLASSES, FEATURES)
    labels = torch.randint(CLASSES, (count,))
    return TensorDataset(centres[labels] + torch.randn(count, FEATURES), labels)


def train(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> float:
    """One pass over the samples; returns the loss of the last batch."""
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    last_loss = 0.0
    for points, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(points), labels)
        loss.backward()
        optimizer.step()
        last_loss = loss.item()
    return last_loss


def positive(text: str) -> int:
    """An option's value that must be a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def main() -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description="Train the standard net on generated data.")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--batches", type=positive, default=20, help="after the warm-up batches")
    parser.add_argument("--threads", type=positive, default=1, help="threads torch may use")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = build_model()
    batches = WARMUP_BATCHES + options.batches
    samples = generate_samples(batches * options.batch_size)
    loader = DataLoader(samples, batch_size=options.batch_size, shuffle=True)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {batches} batches of {options.batch_size}")
    print(f"loss of the last batch: {train(model, loader):.4f}")


if __name__ == "__main__":
    main()
