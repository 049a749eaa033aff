"""What the markers take, and what they say to everything else."""

from typing import Any

import pytest

from pyrometer.errors import UsageError
from pyrometer.integrations.pytest_limits import Limits, read_limits

pytest_plugins = "pytester"


def limits_of(pytester: pytest.Pytester, marker: str, test: str = "def test_it(data): ...") -> Limits:
    source = f"""
        import pytest, unittest
        def reference(): ...
        def taking(data): ...
        def optional(data, other=1, *more, **named): ...
        def foreign(model): ...
        @pytest.fixture
        def data(): ...
        @pytest.mark.{marker}
        {test}
    """
    return read_limits(pytester.getitem(source, "test_it"))


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("'60 MB'", 60_000_000),
        ("'60MB'", 60_000_000),
        ("' 1.5 GB '", 1_500_000_000),
        ("'2 kB'", 2_000),
        ("'3 KiB'", 3_072),
        ("'1 MiB'", 1_048_576),
        ("'1 GiB'", 1_073_741_824),
        ("'1_000 B'", 1_000),
        ("4096", 4_096),
        ("0", 0),
    ],
)
def test_sizes_are_read_with_their_unit(pytester: pytest.Pytester, written: str, size: int) -> None:
    limit = limits_of(pytester, f"max_memory({written})").memory
    assert limit is not None
    assert (limit.most, limit.warmup) == (size, 0)


@pytest.mark.parametrize(
    ("written", "duration_ns"), [("'50 ms'", 5e7), ("'3us'", 3e3), ("'2 min'", 12e10), ("seconds=0.5", 5e8)]
)
def test_durations_are_read_with_their_unit(
    pytester: pytest.Pytester, written: str, duration_ns: float
) -> None:
    limit = limits_of(pytester, f"max_time({written})").duration
    assert limit is not None
    assert limit.most_ns == duration_ns


@pytest.mark.parametrize(
    ("reference", "fixtures"),
    [("reference", ()), ("taking", ("data",)), ("optional", ("data",)), ("len", None), ("dict", ())],
)
def test_a_reference_is_given_the_fixtures_it_names(
    pytester: pytest.Pytester, reference: str, fixtures: tuple[str, ...] | None
) -> None:
    if fixtures is None:
        with pytest.raises(UsageError, match="the reference takes 'obj', which is no fixture of the test"):
            limits_of(pytester, f"max_time(ratio=2, reference={reference})")
        return
    limit = limits_of(pytester, f"max_time(ratio=2, reference={reference})").ratio
    assert limit is not None
    assert (limit.most, limit.fixtures) == (2.0, fixtures)


WRONG: list[Any] = [
    ("max_memory", r"max_memory\(\) is not how it is called; write max_memory\('60 MB'\)"),
    ("max_memory('60')", r"max_memory: '60' cannot be read; write '60 MB'.* \(units: B, kB, MB, GB, KiB"),
    ("max_memory('sixty MB')", "'sixty MB' cannot be read"),
    ("max_memory('-1 MB')", "'-1 MB' cannot be read"),
    ("max_memory(-1)", "-1 is no size"),
    ("max_memory(True)", "True cannot be read"),
    ("max_memory(1.5)", "1.5 cannot be read"),
    ("max_memory('1 MB', 2)", r"max_memory\('1 MB', 2\) is not how it is called"),
    ("max_memory('1 MB', warmup=-1)", "warmup is -1, but must be a whole number from 0"),
    ("max_memory('1 MB', warm=1)", r"max_memory\('1 MB', warm=1\) is not how it is called"),
    ("max_allocations('many')", "'many' is no number of allocations; write a whole number from 0"),
    ("max_allocations(-1)", "-1 is no number of allocations"),
    ("max_allocations(1.0)", "1.0 is no number of allocations"),
    ("max_time()", r"it needs one limit; write max_time\(ratio=1.2, reference=function\)"),
    ("max_time('1 ms', seconds=1)", "it needs one limit"),
    ("max_time('1 parsec')", "'1 parsec' cannot be read"),
    ("max_time(0.5)", "0.5 cannot be read; write '50 ms'"),
    ("max_time(seconds=0)", "seconds is 0, but must be a number above 0"),
    ("max_time(seconds='1')", "seconds is '1', but must be a number above 0"),
    ("max_time(ratio=1.2)", "reference is None, which cannot be called"),
    ("max_time(reference=reference)", "ratio is None, but must be a number above 0"),
    ("max_time(ratio=float('nan'), reference=reference)", "ratio is nan"),
    ("max_time(ratio=True, reference=reference)", "ratio is True"),
    ("max_time(ratio=1.2, reference=3)", "reference is 3, which cannot be called"),
    ("max_time('1 s', ratio=1.2, reference=reference)", "are two markers, each by itself"),
    (
        "max_time(ratio=1.2, reference=foreign)",
        r"takes 'model', which is no fixture of the test \(its fixtures: data\)",
    ),
]


@pytest.mark.parametrize(("marker", "message"), WRONG, ids=[marker for marker, _ in WRONG])
def test_a_wrong_marker_is_told_what_which_and_what_to_do(
    pytester: pytest.Pytester, marker: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        limits_of(pytester, marker)


IN_A_TEST_CASE = "class TestIt(unittest.TestCase):\n            def test_it(self): ..."


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("max_time(ratio=1.2, reference=reference)", "make it a test function, or give an absolute limit"),
        ("max_memory('1 MB', warmup=1)", "a unittest method or a doctest cannot be called twice"),
    ],
)
def test_a_unittest_method_cannot_be_called_again(
    pytester: pytest.Pytester, marker: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        limits_of(pytester, marker, IN_A_TEST_CASE)


@pytest.mark.parametrize(
    "marker", ["max_time(ratio=1.2, reference=reference)", "max_memory('1 MB', warmup=1)"]
)
def test_a_test_with_subtests_cannot_be_called_again(pytester: pytest.Pytester, marker: str) -> None:
    with pytest.raises(UsageError, match=r"of each call would be reported.*do without the fixture"):
        limits_of(pytester, marker, "def test_it(subtests): ...")


def test_of_each_kind_of_time_only_the_nearest_marker_is_read(pytester: pytest.Pytester) -> None:
    item = pytester.getitem(
        """
        import pytest
        def foreign(model): ...
        pytestmark = [pytest.mark.max_time(ratio=1.2, reference=foreign), pytest.mark.max_time("1 parsec")]
        @pytest.mark.max_time(ratio=1.5, reference=dict)
        @pytest.mark.max_time("2 s")
        def test_func(): ...
        """
    )
    limits = read_limits(item)
    assert limits.duration is not None
    assert limits.ratio is not None
    assert (limits.duration.most_ns, limits.ratio.most) == (2e9, 1.5)


def test_the_nearest_marker_counts_and_both_kinds_of_time_may_stand_together(
    pytester: pytest.Pytester,
) -> None:
    item = pytester.getitem(
        """
        import pytest
        pytestmark = [pytest.mark.max_memory("1 MB"), pytest.mark.max_time("1 s")]
        @pytest.mark.max_memory("2 MB")
        @pytest.mark.max_time(ratio=1.5, reference=dict)
        @pytest.mark.max_time("2 s")
        def test_func(): ...
        """
    )
    limits = read_limits(item)
    assert limits.memory is not None
    assert limits.duration is not None
    assert limits.ratio is not None
    assert (limits.memory.most, limits.duration.most_ns, limits.ratio.most) == (2_000_000, 2e9, 1.5)
    assert limits.allocations is None
