"""Trains a small classifier, with a scope around each part of a training step.

python examples/train_classifier.py                  trains; the scopes cost next to nothing
pyrometer run examples/train_classifier.py           the same, and tells where the time went
"""

import argparse

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pyrometer

FEATURES = 128
CLASSES = 10
# Chosen so that the classes overlap: the net has something to learn for several epochs.
NOISE = 3.0
EVALUATION_SAMPLES = 2_000


def build_model() -> nn.Sequential:
    """The three-layer net 128 → 256 → 128 → 10, with 67,210 parameters."""
    return nn.Sequential(
        nn.Linear(FEATURES, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def generate_samples(count: int, centres: Tensor) -> TensorDataset:
    """Points scattered around the centre of their class."""
    labels = torch.randint(CLASSES, (count,))
    points = centres[labels] + NOISE * torch.randn(count, FEATURES)
    return TensorDataset(points, labels)


def train_epoch(
    model: nn.Module,
    loader: DataLoader[tuple[Tensor, ...]],
    optimizer: torch.optim.Optimizer,
) -> float:
    """One pass over the samples; returns the mean loss."""
    total_loss = 0.0
    batches = iter(loader)
    for _ in range(len(loader)):
        with pyrometer.scope("data"):
            points, labels = next(batches)
        with pyrometer.scope("forward"):
            scores = model(points)
        with pyrometer.scope("loss"):
            loss = nn.functional.cross_entropy(scores, labels)
            total_loss += loss.item()
        with pyrometer.scope("backward"):
            optimizer.zero_grad()
            loss.backward()
        with pyrometer.scope("optimizer"):
            optimizer.step()
    return total_loss / len(loader)


@pyrometer.profiled("evaluation")
def evaluate(model: nn.Module, samples: TensorDataset) -> float:
    """The share of samples the model puts into their class."""
    points, labels = samples.tensors
    with torch.no_grad():
        predicted = model(points).argmax(dim=1)
    correct = int((predicted == labels).sum())
    return correct / len(labels)


def positive(text: str) -> int:
    """An option's value that must be a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def main() -> None:
    """Train as the options say, printing loss and accuracy after each epoch."""
    parser = argparse.ArgumentParser(description="Train a small classifier on generated data.")
    parser.add_argument("--epochs", type=positive, default=10)
    parser.add_argument("--batches", type=positive, default=100, help="batches in an epoch")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=positive, default=1, help="threads torch may use")
    options = parser.parse_args()

    # One thread by default: for so small a net a second one costs more than it gains.
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    centres = torch.randn(CLASSES, FEATURES)
    training_samples = generate_samples(options.batches * options.batch_size, centres)
    evaluation_samples = generate_samples(EVALUATION_SAMPLES, centres)
    loader = DataLoader(training_samples, batch_size=options.batch_size, shuffle=True)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {options.batches} batches of {options.batch_size} an epoch")
    print(f"before training: accuracy {evaluate(model, evaluation_samples):.1%}")
    for epoch in range(1, options.epochs + 1):
        with pyrometer.scope("epoch"):
            loss = train_epoch(model, loader, optimizer)
            accuracy = evaluate(model, evaluation_samples)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
