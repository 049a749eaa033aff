"""Programs that spin for known times in known trees, against what the recorder says of them.

The truth is what each program measures around its own spins, since a busy neighbour can stop
any of them. Each program runs several times, and a node's error is the median over these runs.
Exits with 1 unless every node's total and self time are within 1 % of the truth, or within 1 µs
for each call (of its own and, for self time, of its children), whichever is more.
"""

import argparse
import asyncio
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyrometer
from pyrometer._native import KIND

RELATIVE_LIMIT = 0.01
LIMIT_NS_A_CALL = 1_000
SPIN_NS = 500_000
CALLS = 60
RECURSION_DEPTH = 4

Path = tuple[str, ...]


class Truth:
    """What a program measured of itself: how long it was where."""

    def __init__(self) -> None:
        # A list, because appending is safe from several threads at once.
        self._spins: list[tuple[Path, int, int]] = []

    def spin(self, *path: str, duration_ns: int = SPIN_NS, thread_root: int = 0) -> None:
        """Stay at ``path`` for a while.

        A thread's scopes are no part of the time of the scope that started it: ``thread_root``
        is how many names of the path stand above the thread.
        """
        started_ns = now_ns = time.perf_counter_ns()
        while now_ns - started_ns < duration_ns:
            now_ns = time.perf_counter_ns()
        self._spins.append((path, thread_root, now_ns - started_ns))

    def wait_for(self, *path: str, threads: list[threading.Thread]) -> None:
        """Start the threads and stay at ``path`` until all are done."""
        started_ns = time.perf_counter_ns()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._spins.append((path, 0, time.perf_counter_ns() - started_ns))

    def times_ns(self) -> dict[Path, tuple[int, int]]:
        """The total and the self time at each path."""
        total_ns: dict[Path, int] = defaultdict(int)
        self_ns: dict[Path, int] = defaultdict(int)
        for path, thread_root, spent_ns in self._spins:
            self_ns[path] += spent_ns
            for length in range(thread_root + 1, len(path) + 1):
                total_ns[path[:length]] += spent_ns
        return {path: (total_ns[path], self_ns[path]) for path in total_ns}


def flat(truth: Truth) -> None:
    """Scopes side by side, one after the other."""
    for _ in range(CALLS):
        with pyrometer.scope("short"):
            truth.spin("short", duration_ns=SPIN_NS // 4)
        with pyrometer.scope("long"):
            truth.spin("long")


def tiny(truth: Truth) -> None:
    """So many calls, each so short, that the recorder's own cost would show."""
    for _ in range(100 * CALLS):
        with pyrometer.scope("tiny"):
            truth.spin("tiny", duration_ns=5_000)


def nested(truth: Truth) -> None:
    """Scopes within scopes, and the same name at two places."""
    for _ in range(CALLS):
        with pyrometer.scope("outer"):
            truth.spin("outer")
            with pyrometer.scope("middle"):
                truth.spin("outer", "middle")
                with pyrometer.scope("inner"):
                    truth.spin("outer", "middle", "inner")
            with pyrometer.scope("inner"):
                truth.spin("outer", "inner")


def recursion(truth: Truth) -> None:
    """A function that calls itself, each level a node of its own."""

    @pyrometer.profiled("descend")
    def descend(*path: str) -> None:
        truth.spin(*path)
        if len(path) < RECURSION_DEPTH:
            descend(*path, "descend")

    for _ in range(CALLS):
        descend("descend")


def threads(truth: Truth) -> None:
    """Threads under the scope that starts them, in turn holding the interpreter's lock."""

    def work() -> None:
        for _ in range(CALLS):
            with pyrometer.scope("work"):
                truth.spin("parallel", "work", thread_root=1)

    with pyrometer.scope("parallel"):
        truth.wait_for("parallel", threads=[threading.Thread(target=work) for _ in range(3)])


def generator(truth: Truth) -> None:
    """A scope held across ``yield``: it is not inside while its consumer works."""

    def produce() -> Iterator[None]:
        with pyrometer.scope("produce"):
            for _ in range(CALLS):
                truth.spin("consume", "produce")
                yield

    with pyrometer.scope("consume"):
        for _ in produce():
            truth.spin("consume", duration_ns=SPIN_NS // 2)
            with pyrometer.scope("use"):
                truth.spin("consume", "use")


def tasks(truth: Truth) -> None:
    """Scopes held across ``await`` by interleaved tasks."""

    async def work(name: str) -> None:
        with pyrometer.scope(name):
            for _ in range(CALLS):
                truth.spin(name)
                await asyncio.sleep(0)

    async def main() -> None:
        with pyrometer.scope("gather"):
            truth.spin("gather", duration_ns=20 * SPIN_NS)
            await asyncio.gather(work("one"), work("two"), work("two"))

    asyncio.run(main())


PROGRAMS: tuple[Callable[[Truth], None], ...] = (flat, tiny, nested, recursion, threads, generator, tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One node in one run of a program."""

    true_ns: int
    error_ns: int
    allowed_ns: float


Readings = dict[tuple[Path, str], list[Reading]]


def run_once(program: Callable[[Truth], None], readings: Readings) -> None:
    """Run a program under the recorder and add how far off each node was."""
    truth = Truth()
    pyrometer.reset()
    with pyrometer.profile():
        program(truth)
    nodes = {node.path: node for _, node in pyrometer.results().tree.walk()}
    times_ns = truth.times_ns()
    if nodes.keys() != times_ns.keys():
        raise SystemExit(f"FAIL: {program.__name__} has {sorted(times_ns)}, recorded were {sorted(nodes)}")
    for path, (total_ns, self_ns) in times_ns.items():
        node = nodes[path]
        calls = node.calls
        boundaries = calls + sum(child.calls for child in node.children if not child.starts_strand)
        for kind, true_ns, measured_ns, marks in (
            ("total", total_ns, node.total_ns, calls),
            ("self", self_ns, node.self_ns, boundaries),
        ):
            allowed_ns = max(RELATIVE_LIMIT * true_ns, LIMIT_NS_A_CALL * marks)
            reading = Reading(true_ns=true_ns, error_ns=measured_ns - true_ns, allowed_ns=allowed_ns)
            readings[path, kind].append(reading)


def judge(program: Callable[[Truth], None], readings: Readings) -> bool:
    """Print a line for each node; whether all are near enough to the truth."""
    all_kept = True
    for (path, kind), seen in readings.items():
        true_ns = statistics.median(reading.true_ns for reading in seen)
        error_ns = statistics.median(reading.error_ns for reading in seen)
        allowed_ns = statistics.median(reading.allowed_ns for reading in seen)
        kept = abs(error_ns) <= allowed_ns
        all_kept = all_kept and kept
        name = f"{program.__name__}: {' > '.join(path)} ({kind})"
        error = f"{error_ns / 1e3:>+12.2f} {error_ns / true_ns:>+10.3%}"
        figures = f"{true_ns / 1e6:>10.3f} {error} {allowed_ns / 1e3:>12.1f}"
        print(f"{name:<56}{figures}  {'PASS' if kept else 'FAIL'}")
    return all_kept


def main() -> int:
    """Run every program, print every node's error, and say whether all keep the limit."""
    parser = argparse.ArgumentParser(
        description="Compare what is recorded with what programs know of themselves."
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program (default: %(default)s)")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, not {options.repeats}")
    print(f"recorder: {KIND}, Python {sys.version.split()[0]}, median of {options.repeats} runs")
    print(f"{'node':<56}{'true ms':>10} {'error µs':>12} {'error':>10} {'allowed µs':>12}")
    all_kept = True
    for program in PROGRAMS:
        readings: Readings = defaultdict(list)
        for _ in range(options.repeats):
            run_once(program, readings)
        all_kept = judge(program, readings) and all_kept
    print("PASS" if all_kept else "FAIL: at least one node is too far from the truth")
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
