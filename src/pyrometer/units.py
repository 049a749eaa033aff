"""Quantities and how a person reads them.

The ``format_`` functions write for running text (``1.23 ms``), the ``compact_`` ones for
the cells of a narrow table: at most six characters whatever the value, the unit included.
"""

from itertools import pairwise

_SECOND_NS = 1_000_000_000
# Each unit with the number of it at which the next one takes over.
_TIME_UNITS = ((1, "ns", 1_000), (1_000, "µs", 1_000), (1_000_000, "ms", 1_000), (_SECOND_NS, "s", 10_000))
_LONG_TIME_UNITS = ((3_600 * _SECOND_NS, "h", 10_000), (86_400 * _SECOND_NS, "d", 10_000))
_BYTE_UNITS = tuple(
    (1 << 10 * power, unit, 1_024) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))
)
_COUNT_UNITS = ((1, "", 100_000), (10**3, "k", 1_000), (10**6, "M", 1_000), (10**9, "G", 1_000))

_PREFIXES = ("", "k", "M", "G", "T", "P")


def format_duration(duration_ns: float) -> str:
    """A duration in the largest unit that leaves at least one whole digit: ``1.23 ms``."""
    return _in_fitting_unit(duration_ns, _TIME_UNITS + _LONG_TIME_UNITS, " ")


def format_bytes(size_bytes: float) -> str:
    """A size in binary units: ``1.50 GiB``."""
    return _in_fitting_unit(size_bytes, _BYTE_UNITS, " ")


def format_rate(per_second: float, unit: str) -> str:
    """So much a second, in powers of a thousand: ``25.3 GB/s``, ``1.21 TFLOP/s``."""
    units = (*((1_000**power, f"{prefix}{unit}/s", 1_000) for power, prefix in enumerate(_PREFIXES)),)
    return _in_fitting_unit(per_second, units, " ")


def three_digits(value: float) -> str:
    """A number to three digits, never with an exponent: ``0.123``, ``12.3``, ``1234``."""
    return f"{value:.3f}" if 0 < abs(value) < 0.9995 else _three_digits(value)


def format_share(share: float) -> str:
    """A fraction as a percentage with one decimal: ``12.3 %``, and ``<0.1 %`` for a trace."""
    return f"{compact_share(share)} %"


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 call``, ``12,345 calls``."""
    noun = singular if count == 1 else plural or f"{singular}s"
    return f"{count:,} {noun}"


def compact_duration(duration_ns: float) -> str:
    """A duration of at most six characters: ``1.23ms``, ``4567s``, ``2.78h``, ``>9999d``."""
    units = _TIME_UNITS + _LONG_TIME_UNITS
    return ">9999d" if _overflows(duration_ns, units) else _in_fitting_unit(duration_ns, units, "")


def compact_count(count: int) -> str:
    """A count of at most five characters: exact below 100,000, then ``123k``, ``1.23M``, ``>999G``."""
    return ">999G" if _overflows(count, _COUNT_UNITS) else _in_fitting_unit(count, _COUNT_UNITS, "")


def compact_bytes(size_bytes: float) -> str:
    """A size of at most seven characters below 1,024 TiB: ``1.50GiB``."""
    return _in_fitting_unit(size_bytes, _BYTE_UNITS, "")


def compact_share(share: float) -> str:
    """A fraction as a percentage of at most five characters and no sign: ``12.3``, ``<0.1``, ``>999``."""
    percentage = 100 * share
    if 0 < percentage < 0.05:
        return "<0.1"
    return ">999" if percentage >= 999.95 else f"{percentage:.1f}"


_Units = tuple[tuple[int, str, int], ...]


def _overflows(value: float, units: _Units) -> bool:
    size, _, most = units[-1]
    return value / size >= most - 0.5


def _in_fitting_unit(value: float, units: _Units, gap: str) -> str:
    """The value in the first unit whose limit it stays below as written; the last unit takes the rest.

    As written, because 999,999 ns is 1.00 ms and not 1000 µs. The first unit is whole.
    """
    number, unit = f"{value:.0f}", units[0][1]
    for (_, _, most), (size, next_unit, _) in pairwise(units):
        if abs(float(number)) < most:
            break
        number, unit = _three_digits(value / size), next_unit
    return f"{number}{gap}{unit}"


def _three_digits(value: float) -> str:
    """At least three significant digits, never an exponent."""
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
