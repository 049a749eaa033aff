import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.report.adding_up import byte_unit, decimals_for, time_unit, written_to_sum
from pyrometer.report.sparkline import bar, sparkline


def number(text: str) -> int:
    """A printed figure in units of its last place."""
    return int(text.replace(",", "").replace(".", ""))


def test_thirds_are_printed_so_that_they_make_the_whole() -> None:
    assert written_to_sum([100 / 3] * 3, 100, decimals=1) == ["33.4", "33.3", "33.3", "100.0"]


@given(parts=st.lists(st.floats(0, 1e6), min_size=1, max_size=32), decimals=st.integers(0, 3))
def test_as_printed_the_parts_are_the_total_and_each_is_true_to_its_last_place(
    parts: list[float], decimals: int
) -> None:
    total = math.fsum(parts)
    *written, whole = written_to_sum(parts, total, decimals=decimals)
    assert sum(map(number, written)) == number(whole)
    assert abs(number(whole) / 10**decimals - total) <= 0.5 / 10**decimals + 1e-6
    for text, part in zip(written, parts, strict=True):
        assert abs(number(text) / 10**decimals - part) <= 1 / 10**decimals + 1e-6


@pytest.mark.parametrize(
    ("total_ns", "unit", "printed"),
    [
        (0, "µs", "0.000"),
        (812_000, "µs", "812.0"),
        (1_600_000, "ms", "1.600"),
        (41_234_000, "ms", "41.23"),
        (9_999_000_000, "ms", "9,999"),
        (12_000_000_000, "s", "12.00"),
    ],
)
def test_a_column_of_times_has_the_unit_and_the_digits_its_total_asks_for(
    total_ns: int, unit: str, printed: str
) -> None:
    size_ns, name = time_unit(total_ns)
    value = total_ns / size_ns
    assert (name, written_to_sum([value], value, decimals=decimals_for(value))[-1]) == (unit, printed)


def test_a_column_of_sizes_has_the_unit_of_its_total() -> None:
    assert [byte_unit(size)[1] for size in (0, 1_023, 1_024, 5 << 20, 7 << 40)] == [
        "B", "B", "KiB", "MiB", "GiB",
    ]  # fmt: skip


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(share, cells=4) for share in (0, 0.25, 0.53125, 1, 7)] == ["", "█", "██▏", "████", "████"]


def test_a_sparkline_rises_with_memory_and_keeps_the_level_where_nothing_was_sampled() -> None:
    series = [(0, 1 << 20), (1_000, 2 << 20), (8_000, 8 << 20)]
    assert sparkline(series, cells=8) == "▁▂▂▂▂▂▂█  1.00 MiB to 8.00 MiB in 8.00 µs"
    assert sparkline([(5, 7)], cells=3) == "▁▁▁  7 B to 7 B in 0 ns"
