"""Which of many nodes changed, with one chance of error for all of them together."""

import math
import random
from collections.abc import Iterator, Sequence
from itertools import product
from operator import mul

MAX_COUNTED_PAIRS = 12
"""Up to so many pairs all ways to flip are gone through; beyond, random ones."""
RANDOM_FLIPS = 1_999


def max_t_p_values(differences: Sequence[Sequence[float]], *, seed: int = 0) -> list[float]:
    """For each node, how likely any of them would stand out as much if none had changed.

    A row for each node, with its difference in each pair. The signs of a pair flip together in all
    nodes, so that whatever they have in common is kept; a node stands out by the sum of its
    differences, relative to their size. Two-sided.
    """
    if not differences or not differences[0]:
        return [1.0] * len(differences)
    rows = [_scaled(row) for row in differences]
    observed = [abs(sum(row)) for row in rows]
    as_high = [0] * len(rows)
    ways = 0
    for signs in _flips(len(rows[0]), seed):
        ways += 1
        highest = max(abs(sum(map(mul, row, signs))) for row in rows)
        for node, value in enumerate(observed):
            # Sums in another order differ in the last bits.
            as_high[node] += highest >= value - 1e-9
    return [count / ways for count in as_high]


def _scaled(row: Sequence[float]) -> list[float]:
    size = math.sqrt(sum(map(mul, row, row)))
    return [value / size if size else 0.0 for value in row]


def _flips(pairs: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Ways to flip the signs, the one that flips none first; as many again are their mirror images."""
    if pairs <= MAX_COUNTED_PAIRS:
        for rest in product((1, -1), repeat=pairs - 1):
            yield (1, *rest)
        return
    yield (1,) * pairs
    chooser = random.Random(seed)
    for _ in range(RANDOM_FLIPS):
        yield tuple(chooser.choices((1, -1), k=pairs))
