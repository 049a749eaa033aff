"""What a scope costs, against an empty context manager, a plain call, and other tools.

Everything is timed in one interleaved run (see ``interleaved.py``). Exits with 1 unless each
of our own figures is shown to keep its limit, with the whole 99 % intervals of both its ratios.

A ratio is of the times of two loops, as anyone would time them; the net ratio is the same less what
an empty loop takes, and so is further from 1 on either side. A limit must be kept by both.
"""

import argparse
import contextlib
import functools
import json
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

from interleaved import Ratio, Subject, Timings, measure, net_of, pin_to_one_core, ratio
from peers import Peers, call_loop, find_peers

import pyrometer
from pyrometer._native import KIND

EMPTY_LOOP = "an empty loop"
NULLCONTEXT = "with contextlib.nullcontext(): pass"
PLAIN_CALL = "a plain call"

# A limit is kept or the run fails; a goal is only shown.
SCOPE_LIMITS = {
    "scope reused, on": 1.0,
    'scope("x") inline, on': 1.6,
    "scope reused, off": 0.9,
    'scope("x") inline, off': 0.9,
}
CALL_LIMITS = {"@profiled, on": 5.0, "@profiled, off": 2.0}
GOALS = {"@profiled, on": 3.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One subject's figures; ``verdict`` is empty where there is no limit.

    ``net_ns`` is the net ratio times what the reference took in the median: were each subject given
    its own median, one that met the machine in a slow hour would seem dearer than it is.
    """

    name: str
    reference: str
    net_ns: float
    gross: Ratio
    net: Ratio
    limit: float | None
    goal: float | None
    verdict: str


def empty_loop(count: int) -> None:
    """What every other loop does besides its own work."""
    for _ in repeat(None, count):
        pass


def nullcontext_loop(count: int) -> None:
    """The reference of every scope."""
    for _ in repeat(None, count):
        with contextlib.nullcontext():
            pass


def nullcontext_reused_loop(count: int) -> None:
    """The reference's own cheapest form."""
    reused = contextlib.nullcontext()
    for _ in repeat(None, count):
        with reused:
            pass


def scope_reused_loop(count: int) -> None:
    """One scope object, entered again and again."""
    reused = pyrometer.scope("x")
    for _ in repeat(None, count):
        with reused:
            pass


def scope_inline_loop(count: int) -> None:
    """A scope as most people write it."""
    for _ in repeat(None, count):
        with pyrometer.scope("x"):
            pass


def work() -> None:
    """The plain call."""


@pyrometer.profiled
def profiled_work() -> None:
    """The same, as a scope."""


def own_marks() -> tuple[Subject, ...]:
    """The ways to write a scope, and what they are measured against."""
    return (
        Subject(name=NULLCONTEXT, loop=nullcontext_loop),
        Subject(name="nullcontext() reused", loop=nullcontext_reused_loop),
        Subject(name="scope reused, on", loop=scope_reused_loop, surroundings=pyrometer.profile),
        Subject(name='scope("x") inline, on', loop=scope_inline_loop, surroundings=pyrometer.profile),
        Subject(name="scope reused, off", loop=scope_reused_loop),
        Subject(name='scope("x") inline, off', loop=scope_inline_loop),
    )


def own_calls() -> tuple[Subject, ...]:
    """A profiled function, the plain call it is measured against, and the least a wrapper can cost."""
    profiled_loop = call_loop(profiled_work)
    return (
        Subject(name=PLAIN_CALL, loop=call_loop(work)),
        Subject(name="functools.partial, the barest wrapper", loop=call_loop(functools.partial(work))),
        Subject(name="@profiled, on", loop=profiled_loop, surroundings=pyrometer.profile),
        Subject(name="@profiled, off", loop=profiled_loop),
    )


def judge(limit: float | None, *figures: Ratio) -> str:
    """PASS when every interval lies within the limit, FAIL when one lies beyond it, else UNCLEAR."""
    if limit is None:
        return ""
    if all(figure.high <= limit for figure in figures):
        return "PASS"
    return "FAIL" if any(figure.low > limit for figure in figures) else "UNCLEAR"


def rows_for(subjects: Sequence[Subject], reference: str, gross: Timings, net: Timings) -> list[Row]:
    """The figures of all subjects that share a reference."""
    limits = SCOPE_LIMITS | CALL_LIMITS
    reference_ns = statistics.median(net[reference])
    rows = []
    for subject in subjects:
        net_ratio = ratio(net, subject.name, reference)
        gross_ratio = ratio(gross, subject.name, reference)
        limit = limits.get(subject.name)
        rows.append(
            Row(
                name=subject.name,
                reference=reference,
                net_ns=net_ratio.estimate * reference_ns,
                gross=gross_ratio,
                net=net_ratio,
                limit=limit,
                goal=GOALS.get(subject.name),
                verdict=judge(limit, gross_ratio, net_ratio),
            )
        )
    return rows


def render(title: str, rows: Sequence[Row]) -> str:
    """A table of one reference's subjects."""
    interval_head = f"{'99 % interval':>16}"
    heads = f"{'net ns':>9}  {'ratio':>7}  {interval_head}  {'net ratio':>9}  {interval_head}  {'limit':>12}"
    lines = [f"{title:<38}{heads}"]
    for row in rows:
        limit = "" if row.limit is None else f"≤ {row.limit:g}"
        goal = "" if row.goal is None else f" (goal {row.goal:g})"
        interval = f"{row.gross.low:.3g} to {row.gross.high:.3g}"
        net_interval = f"{row.net.low:.3g} to {row.net.high:.3g}"
        timed = f"{row.net_ns:>9.1f}  {row.gross.estimate:>7.3g}  {interval:>16}"
        figures = f"{timed}  {row.net.estimate:>9.3g}  {net_interval:>16}"
        lines.append(f"{row.name:<38}{figures}  {limit + goal:>12}  {row.verdict}".rstrip())
    return "\n".join(lines)


def run(rounds: int, sample_ms: float, seed: int, peers: Peers) -> list[Row]:
    """Time everything together, and work out the figures."""
    marks = own_marks() + peers.marks
    calls = own_calls() + peers.calls
    gross = measure(
        (Subject(name=EMPTY_LOOP, loop=empty_loop), *marks, *calls),
        rounds=rounds,
        sample_ns=round(sample_ms * 1e6),
        shuffler=random.Random(seed),
    )
    net = net_of(gross, EMPTY_LOOP)
    return rows_for(marks, NULLCONTEXT, gross, net) + rows_for(calls, PLAIN_CALL, gross, net)


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Measure what a scope costs, beside other tools.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: wider intervals")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which subjects are visited")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()

    rounds = 40 if options.quick else 200
    pinning = pin_to_one_core()
    peers = find_peers()
    python = sys.version.split()[0]
    print(f"recorder: {KIND}, Python {python}, {rounds} rounds in random order, {pinning}")
    print("each ratio is to the first line of its table; net: less what an empty loop takes\n")
    rows = run(rounds, 2.0 if options.quick else 3.0, options.seed, peers)
    print(render("a block that does nothing", [row for row in rows if row.reference == NULLCONTEXT]))
    print()
    print(render("a function that does nothing", [row for row in rows if row.reference == PLAIN_CALL]))
    if peers.missing:
        print(f"\nnot installed: {', '.join(peers.missing)} (make bench installs them)")
    if options.json is not None:
        facts = {"recorder": KIND, "python": python, "rounds": rounds, "missing": peers.missing}
        options.json.write_text(json.dumps(facts | {"rows": [asdict(row) for row in rows]}, indent=2))
    missed = [row.name for row in rows if row.verdict not in {"", "PASS"}]
    print(f"\nFAIL: not shown to keep the limit: {', '.join(missed)}" if missed else "\nPASS")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
