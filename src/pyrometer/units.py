"""Quantities and how a person reads them."""

_TIME_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def format_duration(duration_ns: float) -> str:
    """A duration in the largest unit that leaves at least one whole digit: ``1.234 ms``."""
    for size_ns, unit in _TIME_UNITS:
        if abs(duration_ns) >= size_ns:
            return f"{_three_digits(duration_ns / size_ns)} {unit}"
    return f"{duration_ns:.0f} ns"


def format_bytes(size_bytes: float) -> str:
    """A size in binary units: ``1.50 GiB``."""
    for unit_bytes, unit in _BYTE_UNITS:
        if abs(size_bytes) >= unit_bytes:
            return f"{_three_digits(size_bytes / unit_bytes)} {unit}"
    return f"{size_bytes:.0f} B"


def format_share(share: float) -> str:
    """A fraction as a percentage with one decimal: ``12.3 %``."""
    return f"{100 * share:.1f} %"


def _three_digits(value: float) -> str:
    """At least three significant digits, never an exponent."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"
