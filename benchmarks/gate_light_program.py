"""A light program for gates to measure: steps of about 1 ms of plain Python, with work added on demand.

Starts fast, since a gate starts thirty processes of it and more. Work is counted in small equal units, so
that ``--extra 12`` of 400 is 3 % more work, and not a time that was multiplied. Ways to be difficult:

``--tree NODE``     the units are spread over ten nested scopes, and the extra ones are that scope's
``--drift SINCE``   the work grows with the clock, by 2 % a second since that time
``--first FILE``    whoever finds the file's first byte set works 10 % more for so many steps, and clears it
``--outliers 0.1``  one process in ten does 30 % more
``--bursts 50``     every 50th step does the work of 25 more: half as much again on the average, and a usual
                    step no more than before
"""

import mmap
import os
import random
import sys
import time
from collections.abc import Callable
from itertools import repeat
from operator import itemgetter

import pyrometer
from pyrometer.capture import pacing

UNITS = 400
DRIFT_A_SECOND = 0.02
FIRST_IS_SLOWER_BY = 0.1
OUTLIER_IS_SLOWER_BY = 0.3
BURSTS_ADD = 0.5

WORDS = ("the", "gate", "runs", "the", "code", "of", "the", "baseline", "beside", "the", "other", "one")
BRANCHES = {
    "step": ("load", "forward", "backward"),
    "load": ("read", "decode"),
    "forward": ("embed", "attend", "mix"),
    "backward": ("update",),
}
OWN_UNITS = {
    "step": 20,
    "load": 20,
    "read": 40,
    "decode": 60,
    "forward": 20,
    "embed": 40,
    "attend": 80,
    "mix": 40,
    "backward": 40,
    "update": 40,
}


def work(units: int) -> None:
    """So many units, of some microseconds each: a small dictionary, filled and sorted."""
    for _ in repeat(None, units):
        counts: dict[str, int] = {}
        for word in WORDS:
            counts[word] = counts.get(word, 0) + len(word)
        sorted(counts.items(), key=itemgetter(1))


def tree_step(units: dict[str, int], node: str = "step") -> None:
    """A step in scopes: each does units of its own, and then what is below it."""
    with pyrometer.scope(node):
        work(units[node])
        for child in BRANCHES.get(node, ()):
            tree_step(units, child)


def step_of(options: dict[str, str]) -> Callable[[], None]:
    """What a step does."""
    units = UNITS + int(options.get("--extra", "0"))
    if "--tree" in options:
        own_units = dict(OWN_UNITS)
        own_units[options["--tree"]] += units - UNITS
        return lambda: tree_step(own_units)
    if "--drift" in options:
        since_s = float(options["--drift"])
        return lambda: work(round(units * (1 + DRIFT_A_SECOND * (time.time() - since_s))))
    if "--first" in options:
        return first_is_slower(options["--first"], units)
    if int(options.get("--bursts", "0")):
        return in_bursts(units, int(options["--bursts"]))
    if random.SystemRandom().random() < float(options.get("--outliers", "0")):
        units = round(units * (1 + OUTLIER_IS_SLOWER_BY))
    return lambda: work(units)


def in_bursts(units: int, every: int) -> Callable[[], None]:
    """Steps of which one in so many has half of all their work to do on top."""
    made = 0

    def step() -> None:
        nonlocal made
        made += 1
        work(units + (round(BURSTS_ADD * units * every) if made % every == 0 else 0))

    return step


def first_is_slower(file: str, units: int) -> Callable[[], None]:
    """Steps that are slower for whoever is the first in a round: the measuring side sets the byte then."""
    slower_steps = mmap.mmap(os.open(file, os.O_RDWR), 1)
    slower = round(units * (1 + FIRST_IS_SLOWER_BY))
    left = 0

    def step() -> None:
        nonlocal left
        if slower_steps[0]:
            left, slower_steps[0] = slower_steps[0], 0
        work(slower if left > 0 else units)
        left -= 1

    return step


def main() -> None:
    """Make steps until told to end."""
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    pacer = pacing.active
    if pacer is None:
        sys.exit("there is nobody to measure it; use gate_error_rate.py")
    step = step_of(options)
    while True:
        step()
        pacer.steps_ended()


if __name__ == "__main__":
    main()
