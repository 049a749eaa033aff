"""What ``import pyrometer`` adds to the start of a program.

Starts ``python -c pass`` and ``python -c 'import pyrometer'`` in turn, so that what else the machine does
falls on both alike, and prints the medians and their difference with a 95 % bootstrap interval.
"""

import argparse
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

BUDGET_MS = 30
RESAMPLES = 2_000


def start_ms(statement: str) -> float:
    """How long a fresh interpreter takes to run one statement and end."""
    began_ns = time.perf_counter_ns()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return (time.perf_counter_ns() - began_ns) / 1e6


def difference_interval_ms(plain: Sequence[float], imported: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of the difference of medians, over resampled rounds.

    A round's two starts are drawn together: they ran next to each other and share the machine's mood.
    """
    generator = random.Random(0)
    rounds = list(zip(plain, imported, strict=True))
    differences = []
    for _ in range(RESAMPLES):
        drawn = generator.choices(rounds, k=len(rounds))
        differences.append(
            statistics.median(after for _, after in drawn) - statistics.median(before for before, _ in drawn)
        )
    fortieths = statistics.quantiles(differences, n=40)
    return fortieths[0], fortieths[-1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What `import pyrometer` adds to the start of a program.")
    parser.add_argument("--rounds", type=int, default=100, help="starts of each kind (default: %(default)s)")
    rounds: int = parser.parse_args().rounds
    plain: list[float] = []
    imported: list[float] = []
    # The first start of each may compile and read from disk; it is not counted.
    start_ms("pass")
    start_ms("import pyrometer")
    for _ in range(rounds):
        plain.append(start_ms("pass"))
        imported.append(start_ms("import pyrometer"))
    low_ms, high_ms = difference_interval_ms(plain, imported)
    difference_ms = statistics.median(imported) - statistics.median(plain)
    print(f"python -c pass                 {statistics.median(plain):7.2f} ms  (median of {rounds})")
    print(f"python -c 'import pyrometer'   {statistics.median(imported):7.2f} ms")
    print(f"import pyrometer adds          {difference_ms:7.2f} ms  (95 %: {low_ms:.2f} to {high_ms:.2f})")
    verdict = "kept" if high_ms <= BUDGET_MS else "not shown to be kept"
    print(f"budget                         {BUDGET_MS:7.2f} ms  {verdict}")


if __name__ == "__main__":
    main()
