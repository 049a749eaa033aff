"""Small drawings made of characters."""

from collections.abc import Sequence

from pyrometer.units import format_bytes, format_duration

_HEIGHTS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SPARKLINE_CELLS = 32


def bar(share: float, *, cells: int) -> str:
    """A bar of so many cells for the whole, filled to an eighth of a cell."""
    eighths = round(max(0.0, min(share, 1.0)) * cells * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(series: Sequence[tuple[int, int]], *, cells: int = _SPARKLINE_CELLS) -> str:
    """Sizes over time, from the least to the most: each cell is the highest of its stretch of time."""
    first_ns, last_ns = series[0][0], series[-1][0]
    highest: list[int | None] = [None] * cells
    for time_ns, size in series:
        cell = (time_ns - first_ns) * cells // max(last_ns - first_ns, 1)
        cell = max(0, min(cell, cells - 1))
        highest[cell] = max(size, highest[cell] or 0)
    least, most = min(size for _, size in series), max(size for _, size in series)
    drawn = "".join(_height(size - least, most - least) for size in _filled(highest))
    return f"{drawn}  {format_bytes(least)} to {format_bytes(most)} in {format_duration(last_ns - first_ns)}"


def _height(above: int, span: int) -> str:
    return _HEIGHTS[min(above * len(_HEIGHTS) // span, len(_HEIGHTS) - 1)] if span else _HEIGHTS[0]


def _filled(sizes: Sequence[int | None]) -> list[int]:
    """Stretches without a sample keep the size before them."""
    filled: list[int] = []
    for size in sizes:
        filled.append(filled[-1] if size is None else size)
    return filled
