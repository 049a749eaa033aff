"""The pytest plugin: ``--pyrometer``, the fixture ``pyrometer``, and limits on time, memory and allocations.

Loaded by every pytest of an environment that has us, so this file imports nothing but pytest: what
measures is loaded once an option, a marker or the fixture asks for it.
"""

from __future__ import annotations

import pytest

# Not from typing, as in the rest of what is always loaded.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from pyrometer.integrations.pytest_fixture import PyrometerFixture
    from pyrometer.integrations.pytest_limits import Limits
    from pyrometer.integrations.pytest_summary import Brought
    from pyrometer.record.run import Run

_MARKERS = {
    "max_time": "max_time(ratio=1.2, reference=function), max_time('50 ms') or max_time(seconds=0.05): fail "
    "where the test is established to be slower than ratio times the reference; an absolute limit only warns",
    "max_memory": "max_memory('60 MB', warmup=0): fail where the test's call holds more than that at once",
    "max_allocations": "max_allocations(1000, warmup=0): fail where the test's call allocates more often",
}
_MEASURING = "pyrometer-measuring"

LIMITS: pytest.StashKey[Limits] = pytest.StashKey()
"""Of a test with markers of ours."""
REFUSED: pytest.StashKey[str] = pytest.StashKey()
"""Of a test whose markers cannot be used: why."""
FIXTURE: pytest.StashKey[PyrometerFixture] = pytest.StashKey()
"""Of a test that has it."""
RUN: pytest.StashKey[Run] = pytest.StashKey()
"""Of a session that was recorded."""
RUN_PATH: pytest.StashKey[Path] = pytest.StashKey()
"""Where that is written."""
PROBLEMS: pytest.StashKey[list[str]] = pytest.StashKey()
"""Of a session in which we have failed at something."""

FROM_WORKER = "pyrometer"
"""The key under which a worker of xdist sends where its run is, and its problems."""


class PyrometerWarning(pytest.PytestWarning):
    """Something that pyrometer has to say of a test without failing it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer our options."""
    group = parser.getgroup("pyrometer", "profiling the tests")
    group.addoption(
        "--pyrometer",
        action="store_true",
        help="Profile the tests: the slowest with their allocations, and the top scopes, in the summary.",
    )
    group.addoption(
        "--pyrometer-output",
        metavar="FILE",
        help="Profile, and write the session's run to this file too, for `pyrometer report`.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and get ready where the tests are to be profiled."""
    for text in _MARKERS.values():
        config.addinivalue_line("markers", text)
    config.pluginmanager.register(_Telling(config), "pyrometer-telling")
    if is_profiled(config):
        from pyrometer.integrations import pytest_running

        pytest_running.prepare_recording(config, _MEASURING)


def is_profiled(config: pytest.Config) -> bool:
    """Whether either option asks for it, of something that runs tests."""
    asked = config.getoption("--pyrometer") or config.getoption("--pyrometer-output") is not None
    return bool(asked) and not config.option.collectonly


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Read the markers of ours; what measures is loaded if there is any."""
    marked = [item for item in items if any(name in item.keywords for name in _MARKERS)]
    if marked:
        from pyrometer.integrations import pytest_running

        for item in marked:
            pytest_running.read_markers(item)
    if (marked or any("pyrometer" in getattr(item, "fixturenames", ()) for item in items)) and (
        not config.pluginmanager.has_plugin(_MEASURING)
    ):
        from pyrometer.integrations import pytest_running

        config.pluginmanager.register(pytest_running.Measuring(config), _MEASURING)


@pytest.fixture(name="pyrometer")
def _pyrometer(request: pytest.FixtureRequest) -> PyrometerFixture:
    """Measures inside a test: pyrometer(function, *args), .measure(name), .compare(function, reference)."""
    from pyrometer.integrations.pytest_fixture import PyrometerFixture

    fixture = PyrometerFixture()
    request.node.stash[FIXTURE] = fixture
    return fixture


class _Telling:
    """Gathers what reports bring along, of this process or of workers, and tells it in the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._brought: list[Brought] = []
        self._worker_runs: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what one test brought."""
        seen = report.__dict__
        if "pyrometer" in seen:
            self._brought.append((report.nodeid, seen["pyrometer"], seen.get("worker_id")))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Gather what a worker of xdist says at its end; one that crashed says nothing."""
        told = (getattr(node, "workeroutput", None) or {}).get(FROM_WORKER)
        if told is not None:
            self._config.stash.setdefault(PROBLEMS, []).extend(told["problems"])
            if told["run"] is not None:
                self._worker_runs.append(told["run"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell it; without anything to tell, nothing."""
        if not self._brought and not is_profiled(self._config):
            return
        try:
            from pyrometer.integrations.pytest_summary import summary_lines

            lines = summary_lines(
                self._brought,
                run=self._config.stash.get(RUN, None),
                path=self._config.stash.get(RUN_PATH, None),
                worker_runs=self._worker_runs,
                is_profiled=is_profiled(self._config),
                width=self._config.get_terminal_writer().fullwidth,
            )
        except Exception as error:  # noqa: BLE001 - the tests' results stand, whatever happens to us
            lines = [f"the summary could not be made: {type(error).__name__}: {error}"]
        terminalreporter.section("pyrometer")
        for line in (*self._config.stash.get(PROBLEMS, []), *lines):
            terminalreporter.write_line(line)
