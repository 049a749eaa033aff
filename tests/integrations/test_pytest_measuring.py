"""What a stretch takes, counted in this process."""

import functools
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyrometer
from pyrometer._native import KIND
from pyrometer.capture import recording
from pyrometer.integrations.pytest_fixture import PyrometerFixture
from pyrometer.integrations.pytest_measuring import Figures, Meter

pytestmark = [
    pytest.mark.usefixtures("clean_recorder"),
    pytest.mark.skipif(KIND != "native", reason="only the compiled core counts allocations"),
]

MB = 1_000_000


@pytest.fixture(autouse=True)
def no_garbage_of_others() -> Iterator[None]:
    """What tests before have left is freed now, and not while bytes are counted here."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def in_its_own_process(test: Callable[[], None]) -> Callable[[], None]:
    """The test where other tests have left no threads of libraries, which allocate at any time."""

    @functools.wraps(test)
    def run() -> None:
        program = f"import {__name__} as tests; tests.{test.__name__}.__wrapped__()"
        answer = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr

    return run


def allocate_twice() -> None:
    """At once 3 MB, in all 5 MB, in two allocations."""
    block = bytearray(2 * MB)
    del block
    bytearray(3 * MB)


def on_another_thread() -> None:
    thread = threading.Thread(target=allocate_twice)
    thread.start()
    thread.join()


def measured(work: object) -> Figures:
    assert callable(work)
    meter = Meter()
    meter.begin()
    work()
    return meter.end()


def nearly(size: int) -> object:
    """A peak is that of whole blocks, and exact to 64 KiB a thread."""
    return pytest.approx(size, abs=2 * 65_536)


def test_allocations_are_exact_and_the_peak_is_what_was_held_at_once() -> None:
    figures = measured(allocate_twice)
    assert (figures.allocated_bytes, figures.allocations) == (5 * MB + 2, 2)
    assert figures.peak_bytes == nearly(3 * MB)
    assert figures.why_not_counted is None


def test_what_was_held_before_is_not_in_the_peak() -> None:
    held = bytearray(8 * MB)
    assert measured(allocate_twice).peak_bytes == nearly(3 * MB)
    del held


def test_nothing_is_measured_as_nothing() -> None:
    figures = measured(lambda: None)
    assert (figures.allocated_bytes, figures.allocations, figures.peak_bytes) == (0, 0, 0)


def test_other_threads_count() -> None:
    figures = measured(on_another_thread)
    assert figures.peak_bytes == nearly(3 * MB)
    assert figures.allocated_bytes is not None
    assert figures.allocated_bytes >= 5 * MB


def test_what_was_measured_before_does_not_count() -> None:
    measured(lambda: bytearray(9 * MB))
    assert measured(on_another_thread).peak_bytes == nearly(3 * MB)


@in_its_own_process
def test_a_recording_keeps_its_figures_and_the_peak_is_known_all_the_same() -> None:
    with pyrometer.profile():
        bytearray(9 * MB)
        figures = measured(allocate_twice)
        assert figures.peak_bytes == nearly(3 * MB), figures
        assert figures.allocations == 2, figures
    process = pyrometer.results().allocations
    assert process is not None
    assert process.process.peak_bytes >= 9 * MB - 65_536  # exact to 64 KiB, and something may have been freed


def test_under_a_recording_a_peak_of_other_threads_is_known_to_bounds_only() -> None:
    with pyrometer.profile():
        bytearray(9 * MB)
        figures = measured(on_another_thread)
    assert figures.peak_bytes is None
    assert figures.peak_low_bytes is not None
    assert figures.peak_high_bytes is not None
    assert figures.peak_low_bytes <= 3 * MB <= figures.peak_high_bytes <= 9 * MB + 131_072


@in_its_own_process
def test_under_a_recording_little_on_other_threads_leaves_the_peak_as_exact_as_ever() -> None:
    def work() -> None:
        thread = threading.Thread(target=bytearray, args=(20_000,))
        thread.start()
        thread.join()
        allocate_twice()

    with pyrometer.profile():
        bytearray(9 * MB)
        figures = measured(work)
    assert figures.allocated_bytes is not None
    assert figures.allocated_bytes >= 5 * MB + 20_000, figures
    assert figures.peak_bytes == nearly(3 * MB), figures


def test_a_recording_that_has_ended_keeps_its_figures() -> None:
    with pyrometer.profile():
        bytearray(9 * MB)
    measured(allocate_twice)
    process = pyrometer.results().allocations
    assert process is not None
    assert process.process.peak_bytes >= 9 * MB - 65_536  # likewise


def test_meters_nest() -> None:
    outer, inner = Meter(), Meter()
    outer.begin()
    held = bytearray(4 * MB)
    inner.begin()
    allocate_twice()
    inside = inner.end()
    del held
    whole = outer.end()
    assert inside.peak_bytes == nearly(3 * MB)
    assert inside.allocations == 2
    assert whole.peak_bytes == nearly(7 * MB)


def test_what_is_forgotten_meanwhile_is_not_told() -> None:
    def work() -> None:
        allocate_twice()
        pyrometer.reset()

    figures = measured(work)
    assert figures.allocations is None
    assert figures.peak_bytes is None
    assert figures.why_not_counted == "pyrometer.reset() forgot what was counted meanwhile"


def test_nothing_is_left_switched_on() -> None:
    from pyrometer._native import allocations

    measured(allocate_twice)
    with pyrometer.profile():
        measured(allocate_twice)
    assert allocations.allocation_totals() is None
    assert not recording.recorder.enabled


# The fixture.


def test_calling_the_fixture_gives_the_functions_result_and_measures_the_call() -> None:
    fixture = PyrometerFixture()
    assert len(fixture(bytearray, 3 * MB)) == 3 * MB
    assert fixture.last.name == "bytearray"
    assert fixture.last.allocations == 1
    assert fixture.last.peak_bytes == nearly(3 * MB)


def test_a_block_that_raises_is_measured_and_raises() -> None:
    fixture = PyrometerFixture()
    with pytest.raises(ValueError, match="unhappy"), fixture.measure("fails"):
        raise ValueError("unhappy" * len(bytearray(3 * MB)[:1]))
    assert fixture.last.peak_bytes == nearly(3 * MB)


def test_figures_asked_for_too_early_are_refused() -> None:
    fixture = PyrometerFixture()
    with (
        fixture.measure("load") as stretch,
        pytest.raises(RuntimeError, match="'load' is still being measured"),
    ):
        _ = stretch.duration_ns
    with pytest.raises(RuntimeError, match="nothing was measured yet"):
        _ = PyrometerFixture().last


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="a name must be a str that is not empty, not ''"):
        PyrometerFixture().measure("")


def test_scopes_of_the_fixture_are_those_of_the_recording() -> None:
    with pyrometer.profile(), PyrometerFixture().scope("inside"):
        pass
    assert pyrometer.results()["inside"].calls == 1
