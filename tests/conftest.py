"""Fixtures for all tests."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import pyrometer
from pyrometer.capture import recording

# How long an example takes says nothing here: machines are shared, and no test asserts a time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A shell that runs the tests in the background has Ctrl-C ignored, and every program we start
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def history_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of the tests are kept in a history of their own, and not in the developer's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def clean_recorder() -> Iterator[None]:
    """The process's own recorder: off and empty before the test and after it."""
    pyrometer.reset()
    yield
    assert not recording.recorder.enabled, "the test has left recording on"
    pyrometer.reset()
