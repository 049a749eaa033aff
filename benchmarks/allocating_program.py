"""Programs that allocate, visited like ``training_program.py``: objects in pure Python, and tokens.

``objects``: a step makes and drops objects of 50 bytes to 4 kB, too little at a time for the system to get
any of it back: giving pages back and forth would take longer than everything else. ``generation``: a step
is one token of a small GPT, with scopes of ours around its parts, as in a program whose author has marked
them.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter_ns, process_time_ns

from pyrometer import scope

WARM_UP_STEPS = 40


def make_objects() -> None:
    """Some hundred objects of all sizes, a few at a time."""
    for size in (100, 600, 1_000, 4_000) * 20:
        kept = [bytearray(size) for _ in range(5)]
        kept.sort(key=len)
    for _ in range(10):
        table = {index: (index, [index] * 40) for index in range(30)}
        rows = [{"name": f"row {index}", "values": values} for index, values in table.items()]
        rows.reverse()


def generation() -> Callable[[], None]:
    """A step that makes the next token of a sequence of 32."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(
        torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True) for _ in range(2)
    ).eval()
    embedding, head = torch.nn.Embedding(256, 128), torch.nn.Linear(128, 256)
    tokens = torch.randint(256, (1, 32))

    def step() -> None:
        nonlocal tokens
        with torch.no_grad(), scope("token"):
            with scope("embedding"):
                states = embedding(tokens)
            for layer in layers:
                with scope("layer"):
                    states = layer(states)
            with scope("choice"):
                newest = head(states[:, -1]).argmax(dim=-1, keepdim=True)
                tokens = torch.cat((tokens[:, 1:], newest), dim=1)

    return step


def run(step: Callable[[], None], steps: int) -> tuple[int, int]:
    """So many steps; what they took, in ns: on the clock, and of processor time."""
    started_ns, started_cpu_ns = perf_counter_ns(), process_time_ns()
    for _ in range(steps):
        step()
    return perf_counter_ns() - started_ns, process_time_ns() - started_cpu_ns


def main() -> None:
    """Work as standard input says."""
    parser = argparse.ArgumentParser(description="Allocate and print what a step takes.")
    parser.add_argument("name", choices=["objects", "generation"])
    parser.add_argument("--blocks", action="store_true", required=True)
    step = generation() if parser.parse_args().name == "generation" else make_objects
    warm_up_ns, _ = run(step, WARM_UP_STEPS)
    print(f"warm-up {warm_up_ns}", flush=True)
    for steps in map(int, sys.stdin):
        wall_ns, cpu_ns = run(step, steps)
        print(f"block {wall_ns / steps:.0f} {cpu_ns / steps:.0f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
