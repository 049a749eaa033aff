"""What happens around a test's call where it is profiled or has limits.

The test's own result comes first: limits are looked at only after it has passed. A failure of ours
is a warning, and never a test's failure.
"""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pyrometer._native import Scope
from pyrometer.capture import recording as capture
from pyrometer.capture.own_work import OwnWork
from pyrometer.errors import UsageError
from pyrometer.integrations.pytest_judging import judge
from pyrometer.integrations.pytest_limits import read_limits
from pyrometer.integrations.pytest_measuring import Figures, Meter
from pyrometer.integrations.pytest_plugin import (
    FIXTURE,
    FROM_WORKER,
    LIMITS,
    PROBLEMS,
    REFUSED,
    RUN,
    RUN_PATH,
)
from pyrometer.integrations.pytest_warnings import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer.integrations.pytest_recording import SessionRecording
    from pyrometer.record.run import Run

_FIGURES = pytest.StashKey[Figures]()
"""What a test's call took."""


def read_markers(item: pytest.Item) -> None:
    """Keep what the test's markers ask for, or why that cannot be."""
    try:
        item.stash[LIMITS] = read_limits(item)
    except UsageError as error:
        item.stash[REFUSED] = str(error)


def prepare_recording(config: pytest.Config, name: str) -> None:
    """Get ready to record the session; a place that cannot be written to is told before any test runs."""
    from pyrometer.integrations.pytest_recording import SessionRecording, output_path

    output = config.getoption("--pyrometer-output")
    if output is not None:
        config.stash[RUN_PATH] = output_path(output, config)
    config.pluginmanager.register(Measuring(config, SessionRecording(config.rootpath)), name)


class Measuring:
    """The hooks around tests; with ``recording`` each test's call is a scope of it."""

    def __init__(self, config: pytest.Config, recording: "SessionRecording | None" = None) -> None:
        self._config = config
        self._recording = recording
        self._is_recording = False

    # The session.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Record from the first test on."""
        # Where xdist hands the tests to workers, it is they who record.
        if self._recording is not None and not self._config.pluginmanager.has_plugin("dsession"):
            with self._told("the recording could not begin"):
                self._recording.start()
                self._is_recording = True
        return (yield)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End the recording, and write it where that was asked for."""
        if self._recording is not None and self._is_recording:
            self._is_recording = False
            with self._told("the run could not be kept"):
                self._keep(self._recording.end(exitstatus))
        self._send_on()

    def _keep(self, run: "Run") -> None:
        self._config.stash[RUN] = run
        path = self._config.stash.get(RUN_PATH, None)
        if path is not None:
            from pyrometer.store.run_files import refuse_unless_a_run, write_run

            del self._config.stash[RUN_PATH]  # until it is there to be read
            if path.exists():
                refuse_unless_a_run(path)  # a worker's own file is not looked at before the tests
            write_run(run, path)
            self._config.stash[RUN_PATH] = path

    def _send_on(self) -> None:
        """A worker of xdist has no summary: what became of its run is told in that of the session."""
        output = getattr(self._config, "workeroutput", None)
        if output is None:
            return
        from pyrometer.integrations.pytest_recording import worker_of

        stash = self._config.stash
        path = stash.get(RUN_PATH, None) if RUN in stash else None
        output[FROM_WORKER] = {
            "run": None if path is None else str(path),
            "problems": [f"{worker_of(self._config)}: {problem}" for problem in stash.get(PROBLEMS, [])],
        }

    @contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        """A failure of ours outside of tests is told in the summary."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the tests' results stand, whatever happens to us
            self._config.stash.setdefault(PROBLEMS, []).append(f"{problem}: {type(error).__name__}: {error}")

    # A test.

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A marker that cannot be used is an error of the test."""
        refused = item.stash.get(REFUSED, None)
        if refused is not None:
            pytest.fail(refused, pytrace=False)

    # Innermost: what other plugins do around a test is not the test's.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure the test's call, and look at its limits once it has passed."""
        limits = item.stash.get(LIMITS, None)
        if limits is None and self._recording is None:
            return (yield)
        # Others may put something else there for a call, as pytest-asyncio puts what runs it in its loop.
        function = item.obj if isinstance(item, pytest.Function) else None
        for _ in range(0 if limits is None else limits.warmup):
            item.runtest()
            if isinstance(item, pytest.Function):
                item.obj = function
        call = _Call(item, self._recording)
        with ours(item, "measuring"):
            call.begin(collects=limits is not None and limits.memory is not None)
        try:
            result = yield
        finally:
            with ours(item, "measuring"):
                call.end()
        # A unittest method's failure is not raised but kept here.
        if limits is not None and call.figures is not None and not getattr(item, "_excinfo", None):
            judge(item, limits, call.figures, call.meter, self._recording, function=function)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send what was measured along with a test's last report, as plain values, fit to be sent on."""
        report = yield
        if call.when == "teardown":
            with ours(item, "telling"):
                brought = _brought(item, of_call=self._recording is not None)
                if any(brought.values()):
                    report.__dict__["pyrometer"] = brought
        return report


class _Call:
    """A test's call: a scope of the recording, and what it took."""

    def __init__(self, item: pytest.Item, recording: "SessionRecording | None") -> None:
        self._item = item
        self._recording = recording
        self._scope: Scope | None = None
        self._has_begun = False
        self.meter = Meter()
        self.figures: Figures | None = None

    def begin(self, *, collects: bool) -> None:
        if self._recording is not None:
            self._recording.look_around()
        if collects:
            # What earlier tests left behind is not to be freed within this one.
            with OwnWork(capture.recorder):
                gc.collect()
        self.meter.begin()
        self._has_begun = True
        if self._recording is not None:
            self._scope = capture.scope(self._item.nodeid)
            self._scope.__enter__()

    def end(self) -> None:
        if self._scope is not None:
            self._scope.__exit__(None, None, None)
        if self._has_begun:
            self.figures = self._item.stash[_FIGURES] = self.meter.end()


def _brought(item: pytest.Item, *, of_call: bool) -> dict[str, Any]:
    figures = item.stash.get(_FIGURES, None) if of_call else None
    fixture = item.stash.get(FIXTURE, None)
    measured = [] if fixture is None else fixture.measurements
    compared = [] if fixture is None else fixture.comparisons
    return {
        "call": None if figures is None else _plain(figures),
        "measured": [[each.name, *_plain(each.figures)] for each in measured],
        "compared": [[name, str(comparison)] for name, comparison in compared],
    }


def _plain(figures: Figures) -> list[int | None]:
    return [figures.duration_ns, figures.allocated_bytes, figures.allocations, figures.peak_bytes]
