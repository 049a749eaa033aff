"""What a test's markers ask of it: ``max_time``, ``max_memory`` and ``max_allocations``, read and checked."""

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest

from pyrometer.errors import UsageError

_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_DURATIONS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3_600 * 10**9,
}
_QUANTITY = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-zµ]+)\s*")

_TIME_FORMS = "max_time(ratio=1.2, reference=function), max_time('50 ms') or max_time(seconds=0.05)"
_MEMORY_FORMS = "max_memory('60 MB') or max_memory('60 MB', warmup=1)"
_ALLOCATIONS_FORMS = "max_allocations(1000) or max_allocations(1000, warmup=1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationLimit:
    """How long a test's call should take at most: advice, since a time depends on the machine."""

    most_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioLimit:
    """How many times as long as the reference a test's call may take."""

    most: float
    reference: Callable[..., Any]
    fixtures: tuple[str, ...]
    """Those of the test's that the reference takes, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimit:
    """How many bytes at once, or how many allocations, a test's call may take."""

    most: int
    warmup: int
    """So often the test is called before the call that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """All that is asked of one test; of several markers of a kind the nearest to the test counts."""

    duration: DurationLimit | None
    ratio: RatioLimit | None
    memory: CountLimit | None
    allocations: CountLimit | None

    @property
    def warmup(self) -> int:
        """So often the test is called before."""
        return max(
            (limit.warmup for limit in (self.memory, self.allocations) if limit is not None), default=0
        )


def read_limits(item: pytest.Item) -> Limits:
    """What the test's markers say; a ``UsageError`` says which of them cannot be used, and why."""
    marks = [*item.iter_markers("max_time")]
    # The nearest come first.
    duration = next((mark for mark in marks if not _has_reference(mark)), None)
    ratio = next((mark for mark in marks if _has_reference(mark)), None)
    return Limits(
        duration=None if duration is None else _duration_limit(duration),
        ratio=None if ratio is None else _ratio_limit(ratio, item),
        memory=_count_limit(item, "max_memory", _bytes_of, _MEMORY_FORMS),
        allocations=_count_limit(item, "max_allocations", _number_of, _ALLOCATIONS_FORMS),
    )


def can_be_called_again(item: pytest.Item) -> bool:
    """Whether the test is a function that takes fixtures: not a ``unittest`` method, nor a doctest."""
    if not isinstance(item, pytest.Function):
        return False
    unittest = sys.modules.get("unittest")
    return unittest is None or item.cls is None or not issubclass(item.cls, unittest.TestCase)


# max_time


def _has_reference(mark: pytest.Mark) -> bool:
    """Which of the two kinds it is."""
    return any(mark.kwargs.get(name) is not None for name in ("ratio", "reference"))


def _time_arguments(mark: pytest.Mark) -> Any:
    def accepted(
        limit: object = None, *, seconds: object = None, ratio: object = None, reference: object = None
    ) -> tuple[object, object, object, object]:
        return limit, seconds, ratio, reference

    return _arguments(mark, accepted, _TIME_FORMS)


def _duration_limit(mark: pytest.Mark) -> DurationLimit:
    limit, seconds, _, _ = _time_arguments(mark)
    if (limit is None) == (seconds is None):
        raise UsageError(f"max_time: it needs one limit; write {_TIME_FORMS}")
    if seconds is None:
        return DurationLimit(most_ns=_quantity("max_time", limit, _DURATIONS_NS, "'50 ms'"))
    if not _is_number(seconds) or seconds <= 0:
        raise UsageError(
            f"max_time: seconds is {seconds!r}, but must be a number above 0, as in max_time(seconds=0.05)"
        )
    return DurationLimit(most_ns=seconds * 1e9)


def _ratio_limit(mark: pytest.Mark, item: pytest.Item) -> RatioLimit:
    limit, seconds, ratio, reference = _time_arguments(mark)
    if limit is not None or seconds is not None:
        raise UsageError(
            f"max_time: an absolute limit and a reference are two markers, each by itself: {_TIME_FORMS}"
        )
    if not _is_number(ratio) or ratio <= 0:
        raise UsageError(
            f"max_time: ratio is {ratio!r}, but must be a number above 0: how many times as long as the "
            "reference the test may take, as in max_time(ratio=1.2, reference=function)"
        )
    if not callable(reference):
        raise UsageError(
            f"max_time: reference is {reference!r}, which cannot be called; name the function to measure "
            "the test against, as in max_time(ratio=1.2, reference=function)"
        )
    if not can_be_called_again(item):
        raise UsageError(
            "max_time: a unittest method or a doctest cannot be called again and again beside a reference; "
            "make it a test function, or give an absolute limit: max_time('50 ms')"
        )
    fixtures = getattr(item, "fixturenames", ())
    if "subtests" in fixtures:
        raise UsageError(
            "max_time: a test with subtests cannot be called again and again beside a reference, since those "
            "of each call would be reported; do without the fixture, or give an absolute limit: "
            "max_time('50 ms')"
        )
    return RatioLimit(most=float(ratio), reference=reference, fixtures=_fixtures_taken(reference, fixtures))


def _fixtures_taken(reference: Callable[..., Any], fixtures: Collection[str]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(reference).parameters.values()
    except (TypeError, ValueError):  # some builtins do not tell: called without arguments
        return ()
    taken = []
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        by_name = parameter.kind is not parameter.POSITIONAL_ONLY
        if by_name and parameter.name in fixtures:
            taken.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise UsageError(
                f"max_time: the reference takes {parameter.name!r}, which is no fixture of the test "
                f"(its fixtures: {', '.join(fixtures) or 'none'}); name its parameters as the test's, "
                "or write a function without any around it"
            )
    return tuple(taken)


# max_memory, max_allocations


def _count_limit(
    item: pytest.Item, name: str, read: Callable[[object], int], forms: str
) -> CountLimit | None:
    mark = item.get_closest_marker(name)
    if mark is None:
        return None

    def accepted(most: object, *, warmup: object = 0) -> tuple[object, object]:
        return most, warmup

    most, warmup = _arguments(mark, accepted, forms)
    if type(warmup) is not int or warmup < 0:
        raise UsageError(f"{name}: warmup is {warmup!r}, but must be a whole number from 0")
    if warmup and not can_be_called_again(item):
        raise UsageError(
            f"{name}: warmup is {warmup}, but a unittest method or a doctest cannot be called twice; "
            "leave warmup out, or make it a test function"
        )
    if warmup and "subtests" in getattr(item, "fixturenames", ()):
        raise UsageError(
            f"{name}: warmup is {warmup}, but the subtests of each call would be reported; leave warmup out, "
            "or do without the fixture"
        )
    return CountLimit(most=read(most), warmup=warmup)


def _bytes_of(value: object) -> int:
    if type(value) is int:
        if value < 0:
            raise UsageError(f"max_memory: {value} is no size; write bytes from 0, or '60 MB'")
        return value
    return round(_quantity("max_memory", value, _SIZES, "'60 MB', or a whole number of bytes"))


def _number_of(value: object) -> int:
    if type(value) is not int or value < 0:
        raise UsageError(
            f"max_allocations: {value!r} is no number of allocations; write a whole number from 0, "
            "as in max_allocations(1000)"
        )
    return value


# All


def _arguments(mark: pytest.Mark, accepted: Callable[..., Any], forms: str) -> Any:
    try:
        return accepted(*mark.args, **mark.kwargs)
    except TypeError:
        given = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
        raise UsageError(f"{mark.name}({', '.join(given)}) is not how it is called; write {forms}") from None


def _quantity(name: str, value: object, units: dict[str, int], example: str) -> float:
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        raise UsageError(
            f"{name}: {value!r} cannot be read; write {example} (units: {', '.join(dict.fromkeys(units))})"
        )
    return float(found[1].replace("_", "")) * units[found[2]]


def _is_number(value: object) -> bool:
    return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]  # a number by then
