"""Columns of figures in one unit that add up as they are printed."""

import math
from collections.abc import Sequence

_TIME_UNITS = ((1e9, "s", 1e10), (1e6, "ms", 1e6), (1e3, "µs", 0.0))
_BYTE_UNITS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_MOST_DECIMALS = 3


def written_to_sum(parts: Sequence[float], total: float, *, decimals: int) -> list[str]:
    """Each part with so many decimals, last the total: as printed, the parts are the total exactly.

    Each is at most one in the last place off its own value. The parts must be positive or 0.
    """
    scale = 10**decimals
    exact = [part * scale for part in parts]
    rounded = [math.floor(value) for value in exact]
    left = round(total * scale) - sum(rounded)
    # Those that lost most by rounding down get the rest.
    order = sorted(range(len(exact)), key=lambda index: rounded[index] - exact[index])
    for index in order[: max(left, 0)]:
        rounded[index] += 1
    return [f"{value / scale:,.{decimals}f}" for value in (*rounded, sum(rounded))]


def time_unit(total_ns: float) -> tuple[float, str]:
    """The unit, in ns and by name, for a column of times that make up ``total_ns``."""
    return next((size, unit) for size, unit, least in _TIME_UNITS if total_ns >= least)


def byte_unit(total_bytes: float) -> tuple[float, str]:
    """The unit, in bytes and by name, for a column of sizes that make up ``total_bytes``."""
    return next((entry for entry in _BYTE_UNITS if total_bytes >= entry[0]), _BYTE_UNITS[-1])


def decimals_for(total: float) -> int:
    """How many decimals give the total four digits, and at most three of them."""
    whole_digits = len(f"{total:.0f}")
    return max(0, min(_MOST_DECIMALS, 4 - whole_digits))
