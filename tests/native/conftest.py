"""Every test here runs on the Python twin and on the C core."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, available_recorders, load


@pytest.fixture(params=available_recorders(), scope="session", ids=lambda name: name.rpartition(".")[2])
def implementation(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(implementation: ModuleType, clock: Clock) -> Iterator[Any]:
    recorder = implementation.Recorder(clock=clock)
    recorder.start()
    yield recorder
    recorder.stop()
