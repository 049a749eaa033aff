"""Fixtures for all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import pyrometer
from pyrometer.capture import recording

# How long an example takes says nothing here: machines are shared, and no test asserts a time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def clean_recorder() -> Iterator[None]:
    """The process's own recorder: off and empty before the test and after it."""
    pyrometer.reset()
    yield
    assert not recording.recorder.enabled, "the test has left recording on"
    pyrometer.reset()
