"""A program that does everything that makes stacks hard to read, sampled as fast as can be.

    python -m tests.native.sampler_stress SECONDS

Ends with 0 if nothing was lost of what the program itself can tell: signals, results, exceptions, system
calls that were not interrupted. Prints what was sampled.
"""

import gc
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pyrometer._native import core

wrong: list[str] = []
signals_heard = 0


def hear(*_: object) -> None:
    global signals_heard
    signals_heard += 1


def recurse(depth: int) -> int:
    return 0 if depth == 0 else 1 + recurse(depth - 1)


def recursion() -> None:
    if recurse(900) != 900:
        wrong.append("recursion")


def numbers(count: int) -> Iterator[int]:
    for number in range(count):
        if number % 3:
            yield number
        else:
            yield from iter([number])


def generators() -> None:
    waiting = [numbers(20) for _ in range(20)]
    if sum(sum(generator) for generator in waiting) != 20 * 190:
        wrong.append("generators")


def exceptions() -> None:
    def fail(depth: int) -> None:
        try:
            if depth == 0:
                raise KeyError("deep")
            fail(depth - 1)
        finally:
            gc.is_tracked(depth)

    for _ in range(20):
        try:
            fail(30)
        except KeyError:
            continue
        wrong.append("exceptions")


def made_and_forgotten() -> None:
    for number in range(20):
        space: dict[str, Any] = {}
        exec(f"def made_{number}():\n    return [{number} for _ in range(30)]", space)  # noqa: S102
        if space[f"made_{number}"]() != [number] * 30:
            wrong.append("made functions")
    gc.collect(0)


class Cycle:
    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        recurse(5)


def garbage() -> None:
    for _ in range(50):
        Cycle()
    gc.collect()


def short_threads() -> None:
    threads = [threading.Thread(target=recurse, args=(50,)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def queues() -> None:
    passed: queue.Queue[int] = queue.Queue()

    def fill() -> None:
        for number in range(100):
            passed.put(number)

    threading.Thread(target=fill).start()
    if sum(passed.get() for _ in range(100)) != 4_950:
        wrong.append("queues")


def forks() -> None:
    # AddressSanitizer's allocator is not held still while a process forks: where another thread is in
    # it, the child waits for its lock forever.
    if "ASAN_OPTIONS" in os.environ:
        return
    child = os.fork()
    if child == 0:
        os._exit(recurse(100) != 100)
    if os.waitpid(child, 0)[1] != 0:
        wrong.append("a forked child failed")


def system_calls() -> None:
    began = time.monotonic()
    select.select([], [], [], 0.005)
    if time.monotonic() - began < 0.005:
        wrong.append("a system call was cut short")


PARTS: tuple[Callable[[], None], ...] = (
    recursion, generators, exceptions, made_and_forgotten, garbage, short_threads, queues, system_calls,
)  # fmt: skip


def main() -> int:
    """Run all parts on several threads until time is up."""
    end = time.monotonic() + float(sys.argv[1])
    signal.signal(signal.SIGALRM, hear)
    recorder = core.Recorder()
    recorder.start()
    scope = recorder.scope("part")
    sampler = core.Sampler(scopes=recorder, interval_ns=100_000, native_instructions=b"\1" * 256)
    sampler.start()

    def work() -> None:
        while time.monotonic() < end:
            for part in PARTS:
                with scope:
                    part()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    sent = 0
    while time.monotonic() < end:
        os.kill(os.getpid(), signal.SIGALRM)
        sent += 1
        while signals_heard < sent:
            recurse(10)
        forks()
        sampler.snapshot()
    for thread in threads:
        thread.join()
    sampler.stop()
    seen = sampler.snapshot()
    if not {row[0] for row in seen["functions"]} & set(globals()):
        wrong.append("no function of this program was met")
    figures = {name: figure for name, figure in seen.items() if isinstance(figure, int)}
    sys.stdout.write(f"{figures}\n" + "".join(f"{text}\n" for text in sorted(set(wrong))))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
