import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.units import (
    compact_count,
    compact_duration,
    compact_share,
    format_bytes,
    format_count,
    format_duration,
    format_share,
)

UNIT_NS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (1_234, "1.23 µs"),
        (9_996, "10.0 µs"),
        (996_000, "996 µs"),
        (999_600, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (1_500_000_000, "1.50 s"),
        (3_600_000_000_000, "3600 s"),
        (36_000_000_000_000, "10.0 h"),
    ],
)
def test_a_duration_is_written_in_the_unit_that_fits(duration_ns: float, text: str) -> None:
    assert format_duration(duration_ns) == text
    assert compact_duration(duration_ns) == text.replace(" ", "")


def test_an_absurdly_long_duration_still_fits_its_cell() -> None:
    assert compact_duration(2**63) == ">9999d"
    assert format_duration(2**63) == "106752 d"


@given(duration_ns=st.integers(0, 2**63) | st.floats(0, 1e18))
def test_a_compact_duration_takes_six_characters_and_is_within_half_a_percent(duration_ns: float) -> None:
    text = compact_duration(duration_ns)
    assert len(text) <= 6
    if not text.startswith(">"):
        number = text.rstrip("nµmshd")
        written_ns = float(number) * UNIT_NS[text.removeprefix(number)]
        assert written_ns == pytest.approx(duration_ns, rel=0.0051, abs=0.51)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (99_999, "99999"),
        (100_000, "100k"),
        (999_600, "1.00M"),
        (12_345_678, "12.3M"),
        (2 * 10**12, ">999G"),
    ],
)
def test_a_large_count_is_shortened(count: int, text: str) -> None:
    assert compact_count(count) == text


@given(count=st.integers(0, 2**63))
def test_a_compact_count_takes_five_characters(count: int) -> None:
    assert len(compact_count(count)) <= 5


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0"),
        (0.0001, "<0.1"),
        (0.0005, "0.1"),
        (0.1234, "12.3"),
        (1, "100.0"),
        (9.999, "999.9"),
        (42, ">999"),
    ],
)
def test_a_share_is_a_percentage_and_a_trace_is_not_zero(share: float, text: str) -> None:
    assert compact_share(share) == text
    assert format_share(share) == f"{text} %"


@given(share=st.floats(0, 1e6))
def test_a_compact_share_takes_five_characters(share: float) -> None:
    assert len(compact_share(share)) <= 5


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_536, "1.50 KiB"),
        (1_023.7 * 1_024, "1.00 MiB"),
        (16 << 30, "16.0 GiB"),
        (3 << 40, "3.00 TiB"),
    ],
)
def test_a_size_is_written_in_binary_units(size_bytes: float, text: str) -> None:
    assert format_bytes(size_bytes) == text


def test_a_count_agrees_with_its_noun() -> None:
    assert format_count(1, "call") == "1 call"
    assert format_count(12_345, "call") == "12,345 calls"
    assert format_count(0, "entry", "entries") == "0 entries"
