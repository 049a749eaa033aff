"""The data caches of this machine, as Linux describes them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyrometer.record.limits import Cache

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def data_caches(cores: Sequence[int] | None = None, root: Path = Path("/")) -> tuple[Cache, ...]:
    """Each level that these cores use, the smallest first; nothing where the system does not tell."""
    shared: dict[int, set[str]] = {}
    first: dict[int, tuple[int, int]] = {}
    for core in usable_core_numbers() if cores is None else cores:
        for folder in sorted((root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
            described = _described(folder)
            if described is not None:
                level, size_bytes, sharers = described
                shared.setdefault(level, set()).add(sharers)
                first.setdefault(level, (size_bytes, _cores_in(sharers)))
    return tuple(
        Cache(level=level, size_bytes=size, shared_by=sharers, count=len(shared[level]))
        for level, (size, sharers) in sorted(first.items())
    )


def usable_core_numbers() -> list[int]:
    """The cores this process may run on; nothing where the system does not number them."""
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


def _described(folder: Path) -> tuple[int, int, str] | None:
    """(level, bytes, which cores share it) of a cache that holds data."""
    try:
        kind, level, size, sharers = (
            (folder / name).read_text().strip() for name in ("type", "level", "size", "shared_cpu_list")
        )
        size_bytes = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
    except (OSError, ValueError):
        return None
    known = kind != "Instruction" and level.isdecimal() and 1 <= int(level) <= 9 and size_bytes > 0
    return (int(level), size_bytes, sharers) if known else None


def _cores_in(ranges: str) -> int:
    """How many are in ``0-3,8``; 1 where that cannot be read."""
    count = 0
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or not (high or low).isdecimal():
            return 1
        count += int(high or low) - int(low) + 1
    return max(count, 1)
