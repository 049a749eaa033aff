"""What else the machine does while gates are measured: neighbours of our own, and how much is others'."""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

SLOW_S = (0.3, 3.0)
"""For so long a neighbour is busy, and then idle: longer than most pairs take their turns."""
FAST_S = (0.02, 0.3)
"""Switches several times within a pair."""


@contextlib.contextmanager
def neighbours(count: int, between_s: tuple[float, float]) -> Iterator[None]:
    """So many processes that are busy and idle by turns, for random times; ended at the end."""
    command = [sys.executable, __file__, *map(str, between_s)]
    started = [subprocess.Popen([*command, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _be_a_neighbour(shortest_s: float, longest_s: float, parent: int) -> None:
    chooser = random.SystemRandom()
    while os.getppid() == parent:
        busy_until_s = time.monotonic() + chooser.uniform(shortest_s, longest_s)
        while time.monotonic() < busy_until_s:
            sum(range(2_000))
        time.sleep(chooser.uniform(shortest_s, longest_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUse:
    """Seconds of all cores so far: all that were used, and those of this process and what it started."""

    at_s: float
    used_s: float
    ours_s: float

    @classmethod
    def now(cls) -> "CpuUse":
        """As of now; processes that live and were started by others that ended are not found."""
        times = psutil.cpu_times()
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        # A guest's time is in the user's as well.
        guest_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        own = os.times()
        ours_s = own.user + own.system + own.children_user + own.children_system
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                spent = child.cpu_times()
                ours_s += spent.user + spent.system
        return cls(at_s=time.monotonic(), used_s=sum(times) - idle_s - guest_s, ours_s=ours_s)


def cores_of_others(began: CpuUse, ended: CpuUse) -> float:
    """How many cores others kept busy on the average between two moments, hypervisor's theft included."""
    others_s = (ended.used_s - began.used_s) - (ended.ours_s - began.ours_s)
    return max(others_s, 0.0) / (ended.at_s - began.at_s)


def machine_facts() -> str:
    """The machine in a line."""
    model = "unknown CPU"
    cpu_file = Path("/proc/cpuinfo")
    if cpu_file.exists():
        names = [line for line in cpu_file.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} cores of {model}, Python {version}, {sys.platform}"


if __name__ == "__main__":
    _be_a_neighbour(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
