"""What tests of the code map have in common."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def agreement() -> Iterator[ModuleType]:
    """The benchmark that compares all lines with their tokens."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("map_agreement")
    finally:
        sys.path.remove(folder)
