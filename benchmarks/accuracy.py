"""Programs that spin for known times in known trees, against what the recorder says of them.

The truth is what each program reads from the clock as the first and the last thing inside each
scope: a busy neighbour can stop it anywhere, so the time it meant to take is not the time it took.
Each program runs several times, and a node's error is the median over these runs. Exits with 1
unless every node's total and self time are within 1 % of the truth, or within 1 µs for each call
(of its own and, for self time, of its children), whichever is more.
"""

import argparse
import asyncio
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns as now

import pyrometer
from pyrometer._native import KIND

RELATIVE_LIMIT = 0.01
LIMIT_NS_A_CALL = 1_000
SPIN_NS = 500_000
CALLS = 60
RECURSION_DEPTH = 4

Path = tuple[str, ...]


class Truth:
    """What a program knows of itself: how long it was inside each scope."""

    def __init__(self) -> None:
        # A list, because appending is safe from several threads at once.
        self._stays: list[tuple[Path, int]] = []
        self._on_threads: set[Path] = set()

    def add(self, *path: str, inside_ns: int, on_thread: bool = False) -> None:
        """A stay at ``path``, on a thread that the scope above it has started or on the same one."""
        self._stays.append((path, inside_ns))
        if on_thread:
            self._on_threads.add(path)

    def times_ns(self) -> dict[Path, tuple[int, int]]:
        """The total and the self time at each path; a thread's time is no part of its starter's."""
        total_ns: dict[Path, int] = defaultdict(int)
        children_ns: dict[Path, int] = defaultdict(int)
        for path, inside_ns in self._stays:
            total_ns[path] += inside_ns
            if path not in self._on_threads:
                children_ns[path[:-1]] += inside_ns
        return {path: (total_ns[path], total_ns[path] - children_ns[path]) for path in total_ns}


def spin(duration_ns: int = SPIN_NS) -> None:
    """Keep the processor busy."""
    end_ns = now() + duration_ns
    while now() < end_ns:
        pass


def flat(truth: Truth) -> None:
    """Scopes side by side, one after the other."""
    for _ in range(CALLS):
        for name, duration_ns in (("short", SPIN_NS // 5), ("long", SPIN_NS)):
            with pyrometer.scope(name):
                entered_ns = now()
                spin(duration_ns)
                left_ns = now()
            truth.add(name, inside_ns=left_ns - entered_ns)


def tiny(truth: Truth) -> None:
    """So many calls, each so short, that a recorder which times itself too would be found out."""
    for _ in range(100 * CALLS):
        with pyrometer.scope("tiny"):
            entered_ns = now()
            spin(5_000)
            left_ns = now()
        truth.add("tiny", inside_ns=left_ns - entered_ns)


def nested(truth: Truth) -> None:
    """Scopes within scopes, and the same name at two places."""
    for _ in range(CALLS):
        with pyrometer.scope("outer"):
            outer_ns = now()
            spin()
            with pyrometer.scope("middle"):
                middle_ns = now()
                spin()
                with pyrometer.scope("inner"):
                    inner_ns = now()
                    spin()
                    inner_ns = now() - inner_ns
                middle_ns = now() - middle_ns
            with pyrometer.scope("inner"):
                other_ns = now()
                spin()
                other_ns = now() - other_ns
            outer_ns = now() - outer_ns
        truth.add("outer", inside_ns=outer_ns)
        truth.add("outer", "middle", inside_ns=middle_ns)
        truth.add("outer", "middle", "inner", inside_ns=inner_ns)
        truth.add("outer", "inner", inside_ns=other_ns)


def recursion(truth: Truth) -> None:
    """A function that calls itself, each level a node of its own."""

    @pyrometer.profiled("descend")
    def descend(*path: str) -> int:
        entered_ns = now()
        spin()
        if len(path) < RECURSION_DEPTH:
            deeper = (*path, "descend")
            truth.add(*deeper, inside_ns=descend(*deeper))
        return now() - entered_ns

    for _ in range(CALLS):
        truth.add("descend", inside_ns=descend("descend"))


def threads(truth: Truth) -> None:
    """Threads under the scope that starts them, taking turns with the interpreter's lock."""

    def work() -> None:
        for _ in range(CALLS):
            with pyrometer.scope("work"):
                entered_ns = now()
                spin()
                left_ns = now()
            truth.add("parallel", "work", inside_ns=left_ns - entered_ns, on_thread=True)

    with pyrometer.scope("parallel"):
        entered_ns = now()
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        left_ns = now()
    truth.add("parallel", inside_ns=left_ns - entered_ns)


def generator(truth: Truth) -> None:
    """A scope held across ``yield``: it is not inside while its consumer works."""
    slices_ns = []

    def produce() -> Iterator[None]:
        with pyrometer.scope("produce"):
            for _ in range(CALLS):
                resumed_ns = now()
                spin()
                slices_ns.append(now() - resumed_ns)
                yield

    with pyrometer.scope("consume"):
        consume_ns = now()
        for _ in produce():
            spin()
            with pyrometer.scope("use"):
                use_ns = now()
                spin()
                use_ns = now() - use_ns
            truth.add("consume", "use", inside_ns=use_ns)
        consume_ns = now() - consume_ns
    truth.add("consume", inside_ns=consume_ns)
    truth.add("consume", "produce", inside_ns=sum(slices_ns))


def tasks(truth: Truth) -> None:
    """Scopes held across ``await`` by interleaved tasks."""

    async def work(name: str) -> None:
        with pyrometer.scope(name):
            for _ in range(CALLS):
                resumed_ns = now()
                spin()
                truth.add(name, inside_ns=now() - resumed_ns)
                await asyncio.sleep(0)

    async def main() -> None:
        with pyrometer.scope("gather"):
            entered_ns = now()
            spin(20 * SPIN_NS)
            together = asyncio.gather(work("one"), work("two"), work("two"))
            truth.add("gather", inside_ns=now() - entered_ns)
            await together

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
