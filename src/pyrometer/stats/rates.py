"""Rates and lines through points, where a measurement may be missing."""

from collections.abc import Sequence

SECOND_NS = 1_000_000_000


def per(amount: float | None, count: float | None) -> float | None:
    """The amount for each of ``count``; None where either is missing or there are none."""
    return amount / count if amount is not None and count else None


def per_second(amount: float | None, duration_ns: float) -> float | None:
    """The amount in each second; None where it is missing or no time went by."""
    return amount * SECOND_NS / duration_ns if amount is not None and duration_ns else None


def slope(points: Sequence[tuple[float, float, float]]) -> float | None:
    """The slope of the least-squares line through (x, y, weight) points; None where all have one x."""
    weight = sum(point[2] for point in points)
    if not weight:
        return None
    middle_x = sum(x * w for x, _, w in points) / weight
    middle_y = sum(y * w for _, y, w in points) / weight
    spread = sum(w * (x - middle_x) ** 2 for x, _, w in points)
    return sum(w * (x - middle_x) * (y - middle_y) for x, y, w in points) / spread if spread else None
