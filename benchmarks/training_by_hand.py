"""Trains a model of ``training_program.py`` with timers placed by hand around every phase.

The last line printed holds, for each step, what each phase took in ns. Nothing here knows of any
profiler: run it by itself, or under ``pyrometer run``.
"""

import argparse
import json
from itertools import chain, repeat
from time import perf_counter_ns as now

import torch
from torch import nn
from training_program import MODELS


def main() -> None:
    """Train, and print what the timers say."""
    parser = argparse.ArgumentParser(description="Train a small model, timed by hand.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loader, optimizer, _ = MODELS[options.model]()
    parameters = list(model.parameters())
    loss_function = nn.CrossEntropyLoss()
    batches = chain.from_iterable(repeat(loader))
    logged: list[float] = []
    steps = []
    step_began = now()
    for _ in range(options.steps):
        began = now()
        inputs, targets = next(batches)
        fetched = now()
        optimizer.zero_grad()
        cleared = now()
        scores = model(inputs)
        predicted = now()
        loss = loss_function(scores, targets)
        judged = now()
        loss.backward()
        derived = now()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        clipped = now()
        # In no phase: what a program logs.
        logged.extend(value * 0.5 for value in range(2_000))
        wrote = now()
        optimizer.step()
        step_ended = now()
        steps.append(
            {
                "data": fetched - began,
                "clearing": cleared - fetched,
                "forward": predicted - cleared,
                "loss": judged - predicted,
                "backward": derived - judged,
                "clipping": clipped - derived,
                "optimizer": step_ended - wrote,
                "other": (wrote - clipped) + (began - step_began),
            }
        )
        step_began = step_ended
        # In no phase either: the step's graph is freed here, not where the next one takes its names.
        del inputs, targets, scores, loss
    print(json.dumps(steps))


if __name__ == "__main__":
    main()
