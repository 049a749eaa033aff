"""A program in pure Python with its own stopwatch; visited like ``training_program.py``.

A step sorts, counts words, walks a tree and formats: the interpreter at work, with calls and allocations.
"""

import argparse
import random
import sys
from collections import Counter
from time import perf_counter_ns, process_time_ns

WARM_UP_STEPS = 50


class Tree:
    """A binary tree of numbers."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.children: list[Tree] = []

    def add(self, value: int) -> None:
        """Put a number below."""
        if len(self.children) < 2:
            self.children.append(Tree(value))
        else:
            self.children[value & 1].add(value >> 1)

    def total(self) -> int:
        """All numbers together."""
        return self.value + sum(child.total() for child in self.children)


def step(chance: random.Random) -> int:
    """Some work of each kind."""
    values = [chance.randrange(1 << 20) for _ in range(200)]
    tree = Tree(0)
    for value in sorted(values):
        tree.add(value)
    words = Counter(f"word {value % 17}" for value in values)
    return tree.total() + sum(len(word) * count for word, count in words.items())


def run(chance: random.Random, steps: int) -> tuple[int, int]:
    """So many steps; what they took, in ns: on the clock, and of processor time."""
    started_ns, started_cpu_ns = perf_counter_ns(), process_time_ns()
    for _ in range(steps):
        step(chance)
    return perf_counter_ns() - started_ns, process_time_ns() - started_cpu_ns


def main() -> None:
    """Work as standard input says."""
    parser = argparse.ArgumentParser(description="Work in pure Python and print what a step takes.")
    parser.add_argument("name")
    parser.add_argument("--blocks", action="store_true", required=True)
    parser.parse_args()
    chance = random.Random(0)
    warm_up_ns, _ = run(chance, WARM_UP_STEPS)
    print(f"warm-up {warm_up_ns}", flush=True)
    for steps in map(int, sys.stdin):
        wall_ns, cpu_ns = run(chance, steps)
        print(f"block {wall_ns / steps:.0f} {cpu_ns / steps:.0f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
