"""How the plugin says something without failing a test."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyrometer.integrations.pytest_plugin import PyrometerWarning


def warn(item: pytest.Item, text: str) -> None:
    """Say it in pytest's warnings; where warnings are errors it is said all the same, and fails nothing."""
    warning = PyrometerWarning(f"{item.nodeid}: {text}")
    try:
        item.warn(warning)
    except PyrometerWarning:
        path, line, _ = item.location
        item.ihook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": warnings.WarningMessage(warning, PyrometerWarning, path, (line or 0) + 1),
                "nodeid": item.nodeid,
                "when": "runtest",
                "location": None,
            }
        )


@contextmanager
def ours(item: pytest.Item, work: str) -> Iterator[None]:
    """What is done inside is ours: if it fails, that is a warning, and the test's own result stands."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever happens to us
        warn(item, f"{work} failed, and the test's own result stands: {type(error).__name__}: {error}")
