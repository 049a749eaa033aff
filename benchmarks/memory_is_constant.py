"""Memory after a hundred million scopes, against memory after the first million.

The scopes are nested, of several names, written inline and reused, on the main thread, in a pool
and on threads that come and go. Exits with 1 if the process has grown by more than a megabyte.
"""

import argparse
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import psutil

import pyrometer
from pyrometer._native import KIND
from pyrometer.units import format_bytes

LIMIT_BYTES = 1_000_000
EARLY_SCOPES = 1_000_000
LAYERS = 3
SCOPES_IN_A_STEP = 4 + 2 * LAYERS
# A new thread for each: so small that the first million has made more of them than are kept apart.
STEPS_IN_A_CHUNK = 200
SCOPES_IN_A_CHUNK = STEPS_IN_A_CHUNK * SCOPES_IN_A_STEP

step = pyrometer.scope("step")
forward = pyrometer.scope("forward")
attention = pyrometer.scope("attention")
loss = pyrometer.scope("loss")
backward = pyrometer.scope("backward")


def record_steps(steps: int) -> None:
    """The scopes of a training loop that computes nothing."""
    for _ in repeat(None, steps):
        with step:
            with forward:
                for layer in range(LAYERS):
                    with pyrometer.scope(f"layer {layer}"), attention:
                        pass
            with loss:
                pass
            with backward:
                pass


def record_chunk(pool: ThreadPoolExecutor) -> None:
    """Half of the steps here, a quarter on a pool's thread, a quarter on a new one."""
    quarter = STEPS_IN_A_CHUNK // 4
    record_steps(2 * quarter)
    pool.submit(record_steps, quarter).result()
    thread = threading.Thread(target=record_steps, args=(quarter,))
    thread.start()
    thread.join()


def resident_bytes_after(scopes: tuple[int, int]) -> tuple[int, int]:
    """The size of this process after each of two numbers of scopes."""
    process = psutil.Process()
    early, late = (count // SCOPES_IN_A_CHUNK for count in scopes)
    with ThreadPoolExecutor(1) as pool:
        for _ in repeat(None, early):
            record_chunk(pool)
        early_bytes = process.memory_info().rss
        for _ in repeat(None, late - early):
            record_chunk(pool)
        return early_bytes, process.memory_info().rss


def main() -> int:
    """Record, print both sizes, and say whether the limit is kept."""
    parser = argparse.ArgumentParser(description="Show that memory does not grow with the number of scopes.")
    parser.add_argument("--scopes", type=int, default=100_000_000, help="in all (default: %(default)s)")
    options = parser.parse_args()
    if options.scopes < 2 * EARLY_SCOPES:
        parser.error(f"--scopes must be at least {2 * EARLY_SCOPES}, not {options.scopes}")

    started = time.perf_counter()
    with pyrometer.profile():
        early_bytes, late_bytes = resident_bytes_after((EARLY_SCOPES, options.scopes))
    seconds = time.perf_counter() - started
    recorded = pyrometer.results()["step"].calls * SCOPES_IN_A_STEP
    print(f"recorder: {KIND}, {recorded:,} scopes recorded in {seconds:.1f} s")
    print(f"after {EARLY_SCOPES:>13,} scopes: {early_bytes:>13,} bytes resident")
    print(f"after {options.scopes:>13,} scopes: {late_bytes:>13,} bytes resident")
    expected = options.scopes // SCOPES_IN_A_CHUNK * SCOPES_IN_A_CHUNK
    if recorded != expected:
        print(f"FAIL: {expected:,} scopes were entered, not {recorded:,}")
        return 1
    grown_bytes = late_bytes - early_bytes
    kept = grown_bytes <= LIMIT_BYTES
    verdict = "PASS" if kept else "FAIL"
    print(f"{verdict}: grown by {format_bytes(grown_bytes)}, limit {format_bytes(LIMIT_BYTES)}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
