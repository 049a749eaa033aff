"""The clock and both recorders, as in tests/native."""

from tests.native.conftest import clock, implementation, recorder

__all__ = ["clock", "implementation", "recorder"]
