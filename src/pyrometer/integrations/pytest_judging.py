"""Whether a test that has passed keeps its limits."""

import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from pyrometer.integrations.pytest_limits import CountLimit, Limits, RatioLimit
from pyrometer.integrations.pytest_measuring import Figures, Meter
from pyrometer.integrations.pytest_plugin import FIXTURE
from pyrometer.integrations.pytest_timing import (
    Comparison,
    Timed,
    Verdict,
    against_limit,
    compare,
    timing,
    without_collections,
)
from pyrometer.integrations.pytest_warnings import ours, warn
from pyrometer.units import format_bytes, format_count, format_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer.integrations.pytest_recording import SessionRecording

_MOST_LINES = 3


def judge(
    item: pytest.Item,
    limits: Limits,
    figures: Figures,
    meter: Meter,
    recording: "SessionRecording | None",
    *,
    function: Callable[..., Any] | None,
) -> None:
    """Fail the test by what it has broken; what only is worth saying, or cannot be told, is a warning.

    ``function`` is the test's own, as it was before the call.
    """
    broken: list[str] = []
    with ours(item, "looking at limits"):
        if limits.allocations is not None:
            broken += _judge_allocations(item, limits.allocations, figures)
        if limits.memory is not None:
            broken += _judge_memory(item, limits.memory, figures, meter)
        if limits.duration is not None and figures.duration_ns > limits.duration.most_ns:
            warn(
                item,
                f"max_time: the test's call took {format_duration(figures.duration_ns)}, "
                f"more than {format_duration(limits.duration.most_ns)}; a time depends on the machine and "
                "its load, so this fails nothing: max_time(ratio=…, reference=…) can",
            )
    if limits.ratio is not None and isinstance(item, pytest.Function) and function is not None:
        with ours(item, "measuring beside the reference"):
            broken += _judge_ratio(item, function, limits.ratio, recording)
    if broken:
        pytest.fail("\n".join(broken), pytrace=False)


def _judge_allocations(item: pytest.Item, limit: CountLimit, figures: Figures) -> list[str]:
    if figures.allocations is None:
        warn(item, f"max_allocations cannot be told here: {figures.why_not_counted}")
        return []
    if figures.allocations <= limit.most:
        return []
    made = f"{format_count(figures.allocations, 'allocation')} ({format_bytes(figures.allocated_bytes or 0)})"
    return [f"max_allocations: the test's call made {made}; at most {limit.most:,} are allowed"]


def _judge_memory(item: pytest.Item, limit: CountLimit, figures: Figures, meter: Meter) -> list[str]:
    low, high = figures.peak_low_bytes, figures.peak_high_bytes
    if low is None or high is None:
        warn(item, f"max_memory cannot be told here: {figures.why_not_counted}")
        return []
    if low > limit.most:
        held = f"{low:,} bytes at once ({format_bytes(low)}), over what there was at its start"
        allowed = f"at most {limit.most:,} ({format_bytes(limit.most)}) are allowed"
        return [f"max_memory: the test's call held {held}; {allowed}", *_largest_lines(item, meter)]
    if high > limit.most:
        warn(
            item,
            f"max_memory cannot be told here: other threads allocated too, and held {format_bytes(high)} at "
            "most together with the test's; without a recording of the whole process it is known exactly",
        )
    return []


def _largest_lines(item: pytest.Item, meter: Meter) -> list[str]:
    if not meter.knows_lines:
        return ["lines that allocate are noted when the test runs without --pyrometer"]
    from pyrometer.report.safe_text import for_terminal
    from pyrometer.session import results

    seen = results().allocations
    root = f"{item.config.rootpath}/"
    lines = () if seen is None else seen.lines[:_MOST_LINES]
    places = [f"{line.file.removeprefix(root)}:{line.line} {line.function}" for line in lines]
    return [
        f"  about {format_bytes(line.bytes)} allocated by {for_terminal(place)}"
        for line, place in zip(lines, places, strict=True)
    ]


def _judge_ratio(
    item: pytest.Function,
    function: Callable[..., Any],
    limit: RatioLimit,
    recording: "SessionRecording | None",
) -> list[str]:
    # As pytest itself calls the test: there is no public list of its own parameters.
    names = item._fixtureinfo.argnames  # noqa: SLF001
    reference = _Told("the reference")
    test = _Told("the test, called again with the same fixtures,")
    try:
        with ExitStack() as until_timed:
            if recording is not None:
                until_timed.enter_context(recording.resting())
            _keep_quiet(item, until_timed)
            timed = until_timed.enter_context(timing(function, {name: item.funcargs[name] for name in names}))
            reference_timed = until_timed.enter_context(
                timing(limit.reference, {name: item.funcargs[name] for name in limit.fixtures})
            )
            until_timed.enter_context(without_collections())
            until_timed.enter_context(_told_once(item))
            comparison = compare(
                test.of(timed),
                reference.of(reference_timed),
                judge=against_limit(limit.most),
                chooser=random.SystemRandom(),
            )
    except _RaisedError as raised:
        if raised.told is reference:
            return [f"max_time: {raised}; it must be callable as often as the test is"]
        warn(
            item,
            f"max_time cannot be told: {raised}; a test with a reference must be callable more than once",
        )
        return []
    return _told_ratio(item, limit, comparison)


def _told_ratio(item: pytest.Item, limit: RatioLimit, comparison: Comparison) -> list[str]:
    measured = (
        f"{comparison.ratio:.3g} × as long as the reference (99 % interval {comparison.low:.3g}–"
        f"{comparison.high:.3g}, {comparison.blocks} blocks in this process; "
        f"{format_duration(comparison.duration_ns)} a call against "
        f"{format_duration(comparison.reference_ns)})"
    )
    if comparison.verdict is Verdict.SLOWER:
        return [f"max_time: the test takes {measured}; at most {limit.most:.3g} × is allowed"]
    if comparison.verdict is Verdict.CANNOT_TELL:
        warn(
            item, f"max_time: could not tell whether more than {limit.most:.3g} ×: the test takes {measured}"
        )
    return []


class _RaisedError(Exception):
    """Something that was to be timed has raised."""

    def __init__(self, told: "_Told", error: BaseException) -> None:
        super().__init__(f"{told.name} raised {type(error).__name__}: {error}")
        self.told = told


class _Told:
    """Tells which of the two has raised."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, timed: Timed) -> Timed:
        def told(calls: int) -> int:
            try:
                return timed(calls)
            except (KeyboardInterrupt, pytest.exit.Exception):
                raise
            except BaseException as error:  # such as SystemExit, CancelledError, or pytest's own
                raise _RaisedError(self, error) from error

        return told


def _keep_quiet(item: pytest.Function, until_timed: ExitStack) -> None:
    """What is printed, logged and warned of meanwhile is dropped, unless the test looks at it."""
    if not any(name.startswith("cap") for name in item.fixturenames):
        # A real file: a test may ask for its number, its buffer or its encoding.
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - closed with the others
        until_timed.enter_context(nowhere)
        until_timed.enter_context(redirect_stdout(nowhere))
        until_timed.enter_context(redirect_stderr(nowhere))
        until_timed.enter_context(_without_pytests_logs())
    if not any(name.startswith("recwarn") for name in item.fixturenames):
        until_timed.enter_context(warnings.catch_warnings())
        warnings.showwarning = _drop


def _drop(*_: object, **__: object) -> None:
    """Takes a warning that pytest would keep, the thousandth time."""


@contextmanager
def _without_pytests_logs() -> Iterator[None]:
    """Loggers do without pytest's handlers, which keep all records, and have them again afterwards."""
    root = logging.getLogger()
    # pytest also listens to those that do not pass their records on to the root.
    loggers = [root, *(one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
    taken = [
        (logger, handler)
        for logger in loggers
        for handler in logger.handlers
        if type(handler).__module__.startswith("_pytest.")
    ]
    # Where nobody takes a record, Python prints it.
    stand_in = logging.NullHandler()
    for logger, handler in taken:
        logger.removeHandler(handler)
        logger.addHandler(stand_in)
    try:
        yield
    finally:
        for logger, handler in taken:
            logger.removeHandler(stand_in)
            logger.addHandler(handler)


@contextmanager
def _told_once(item: pytest.Item) -> Iterator[None]:
    """What the test measures by the fixture, and its properties, are told of the call that was the test's."""
    fixture = item.stash.get(FIXTURE, None)
    kept: list[list[Any]] = [item.user_properties]
    kept += [] if fixture is None else [fixture.measurements, fixture.comparisons]
    lengths = [len(one) for one in kept]
    try:
        yield
    finally:
        for one, length in zip(kept, lengths, strict=True):
            del one[length:]
