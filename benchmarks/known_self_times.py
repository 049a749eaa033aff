"""Programs whose functions take known shares of processor time, by construction.

Each function runs until the thread's own processor clock says that its share is used up, so the shares
hold however busy the machine is. The last line printed holds, by function, what it really took, in ns.
"""

import argparse
import json
import threading
from collections import Counter
from collections.abc import Callable
from time import sleep, thread_time_ns
from typing import Any

SHARES = (30, 20, 14, 10, 8, 6, 5, 4, 3)
"""In per cent, of functions called work_30, work_20 and so on."""
SLICE_NS = 200_000

took_ns: Counter[str] = Counter()


BODIES = {
    # The interpreter at work.
    "python": "total = 0\n        for number in range(50): total += number * number",
    # Outside of Python: sorting, and products of matrices.
    "numpy": "matrix.sort(axis=0)",
    "torch": "matrix @ matrix",
}


def make_matrix(kind: str) -> object:
    """What the bodies work on; None where they need nothing."""
    if kind == "torch":
        import torch

        torch.set_num_threads(1)
        return torch.ones(64, 64)
    if kind == "numpy":
        import numpy as np

        return np.ones((64, 64))
    return None


def make(share: int, body: str, matrix: object) -> Callable[[], None]:
    """A function of that name, in which the loop itself stands: so its time is its own."""
    space: dict[str, Any] = {"thread_time_ns": thread_time_ns, "took_ns": took_ns, "matrix": matrix}
    source = f"""
def work_{share}():
    began_ns = thread_time_ns()
    until_ns = began_ns + {SLICE_NS * share // 10}
    while thread_time_ns() < until_ns:
        {body}
    took_ns["work_{share}"] += thread_time_ns() - began_ns
"""
    exec(compile(source, f"<work {share}>", "exec"), space)  # noqa: S102 - functions alike but for their name
    function: Callable[[], None] = space[f"work_{share}"]
    return function


def rest(seconds: float) -> None:
    """Take no processor time; what is counted here all the same was run elsewhere."""
    began_ns = thread_time_ns()
    sleep(seconds)
    took_ns["rest"] += thread_time_ns() - began_ns


def run(seconds: float, functions: list[Callable[[], None]], *, rest_s: float = 0) -> None:
    """Call them in turn until so much processor time has gone by, with a rest after each."""
    end_ns = thread_time_ns() + round(seconds * 1e9)
    while thread_time_ns() < end_ns:
        for function in functions:
            function()
            if rest_s:
                rest(rest_s)


def main() -> None:
    """Run, and print what was spent where."""
    parser = argparse.ArgumentParser(description="Spend known shares of processor time in functions.")
    parser.add_argument("kind", choices=("python", "numpy", "torch", "threads", "bursts"))
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    matrix = make_matrix(options.kind)
    body = BODIES.get(options.kind, BODIES["python"])
    functions = [make(share, body, matrix) for share in SHARES]
    if options.kind == "threads":
        # Each thread has functions of its own, and they run side by side.
        threads = [
            threading.Thread(target=run, args=(options.seconds / 3, functions[number::3]))
            for number in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        run(options.seconds, functions, rest_s=0.003 if options.kind == "bursts" else 0)
    print(json.dumps(took_ns))


if __name__ == "__main__":
    main()
