"""Trains one of three small models, and tells how long its steps take.

An ordinary training loop with its own stopwatch around it. ``--steps`` times so many steps after the
warm-up; ``--blocks`` reads a number of steps from each line of standard input, makes them, and prints
what they took, so that several programs can be visited in turn. It knows nothing of any profiler:
every tool starts this same file.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

TOKENS = 256
CONTEXT = 64
WIDTH = 128
WARM_UP_STEPS = {"net": 200, "transformer": 20, "convnet": 20}


class Training(NamedTuple):
    """What a loop needs; ``clip`` bounds the norm of the gradients."""

    model: nn.Module
    loader: DataLoader[tuple[Tensor, ...]]
    optimizer: torch.optim.Optimizer
    clip: float | None = None


class Transformer(nn.Module):
    """Four layers over tokens, with dropout, a score for each token at each place."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True, norm_first=True)
            for _ in range(4)
        )
        self.head = nn.Linear(WIDTH, TOKENS)
        self.register_buffer("later", torch.triu(torch.full((CONTEXT, CONTEXT), -math.inf), diagonal=1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores with the tokens' places second, as cross-entropy wants them."""
        states = self.tokens(tokens) + self.places(torch.arange(CONTEXT))
        for layer in self.layers:
            states = layer(states, src_mask=self.later, is_causal=True)
        scores: Tensor = self.head(states)
        return scores.transpose(1, 2)


def net() -> Training:
    """Three linear layers, batch 32, Adam: so little work a step that any cost shows."""
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    samples = TensorDataset(torch.randn(3_200, 128), torch.randint(10, (3_200,)))
    return Training(
        model,
        DataLoader(samples, batch_size=32, shuffle=True),
        torch.optim.Adam(model.parameters(), lr=1e-4),
    )


def transformer() -> Training:
    """Next tokens of sequences of 64, batch 8, AdamW, clipped gradients."""
    model = Transformer()
    tokens = torch.randint(TOKENS, (800, CONTEXT + 1))
    samples = TensorDataset(tokens[:, :-1], tokens[:, 1:])
    return Training(
        model,
        DataLoader(samples, batch_size=8, shuffle=True),
        torch.optim.AdamW(model.parameters(), lr=1e-4),
        clip=1.0,
    )


def convnet() -> Training:
    """Images of 3 × 32 × 32, batch 32, three convolutions with batch normalisation, SGD."""
    blocks = [
        module
        for before, after in ((3, 16), (16, 32), (32, 64))
        for module in (
            nn.Conv2d(before, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
    ]
    model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))
    samples = TensorDataset(torch.randn(640, 3, 32, 32), torch.randint(10, (640,)))
    return Training(
        model,
        DataLoader(samples, batch_size=32, shuffle=True),
        torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9),
    )


MODELS: dict[str, Callable[[], Training]] = {"net": net, "transformer": transformer, "convnet": convnet}


def train(training: Training, batches: Iterator[tuple[Tensor, ...]], steps: int) -> tuple[int, int]:
    """Make so many steps; returns what they took, in ns: on the clock, and of processor time."""
    model, _, optimizer, clip = training
    started_ns, started_cpu_ns = perf_counter_ns(), process_time_ns()
    for _ in range(steps):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return perf_counter_ns() - started_ns, process_time_ns() - started_cpu_ns


def steps_of(name: str) -> Callable[[int], tuple[int, int]]:
    """What makes so many steps of a model's training, epoch after epoch, without end."""
    training = MODELS[name]()
    batches = chain.from_iterable(repeat(training.loader))
    return lambda count: train(training, batches, count)


def main() -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description="Train a small model and print what a step takes.")
    parser.add_argument("model", choices=MODELS)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--steps", type=int, help="how many to time")
    asked.add_argument("--blocks", action="store_true", help="as many as each line of standard input says")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    make = steps_of(options.model)
    warm_up_ns, _ = make(WARM_UP_STEPS[options.model])
    print(f"warm-up {warm_up_ns}", flush=True)
    for steps in [options.steps] if options.steps else map(int, sys.stdin):
        wall_ns, cpu_ns = make(steps)
        print(f"block {wall_ns / steps:.0f} {cpu_ns / steps:.0f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
