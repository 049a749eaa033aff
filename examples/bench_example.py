"""Functions to be measured by themselves: ``pyrometer bench examples/bench_example.py``."""

import random

import pyrometer


def make_numbers(size: int) -> list[float]:
    """The argument of a call; made once in a process, and not timed."""
    chooser = random.Random(7)
    return [chooser.random() for _ in range(size)]


@pyrometer.benchmark(parameters={"size": [100, 1_000]}, setup=make_numbers)
def bench_sort(numbers: list[float]) -> list[float]:
    """A new list, so that each call is given the numbers in the order in which they were made."""
    return sorted(numbers)


@pyrometer.benchmark(parameters={"words": [200]})
def bench_join(words: int) -> str:
    """A parameter that the function takes itself."""
    return " ".join(str(number) for number in range(words))
