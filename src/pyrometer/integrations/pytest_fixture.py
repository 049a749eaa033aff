"""The fixture ``pyrometer``: measuring inside a test."""

import asyncio
import inspect
import random
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from pyrometer._native import Scope
from pyrometer.capture import recording
from pyrometer.integrations.pytest_measuring import Measured
from pyrometer.integrations.pytest_timing import Comparison, compare, either_way, timing, without_collections

_P = ParamSpec("_P")
_R = TypeVar("_R")


class PyrometerFixture:
    """``pyrometer(function, *args)`` measures one call and returns its result; ``measure`` does a block.

    Of a coroutine function the call is ``await pyrometer(function, *args)``.
    ``measurements`` are all of the test's, in order; pytest's summary lists them.
    """

    def __init__(self) -> None:
        self.measurements: list[Measured] = []
        self.comparisons: list[tuple[str, Comparison]] = []

    def __call__(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """The function's result; what the call took is the last of ``measurements``."""
        if inspect.iscoroutinefunction(function):
            # What it gives is awaited by the test: that is what takes time.
            return cast("_R", self._awaited(function, *args, **kwargs))
        with self.measure(_name_of(function)):
            return function(*args, **kwargs)

    async def _awaited(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        with self.measure(_name_of(function)):
            return await function(*args, **kwargs)

    @property
    def last(self) -> Measured:
        """What was measured last."""
        if not self.measurements:
            raise RuntimeError(
                "nothing was measured yet: call pyrometer(function) or use pyrometer.measure()"
            )
        return self.measurements[-1]

    def measure(self, name: str) -> Measured:
        """Measures the block: ``with pyrometer.measure("load") as measured:``."""
        if type(name) is not str or not name:
            raise TypeError(f"pyrometer.measure: a name must be a str that is not empty, not {name!r}")
        return Measured(name, self.measurements.append)

    def compare(
        self, function: Callable[..., Any], reference: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Comparison:
        """How many times as long as the reference the function takes, both called with the same arguments.

        Both are called again and again, in turns and in random order, until it is established that the
        function is slower, faster or the same to 3 %, or after some seconds that it cannot be told.
        Coroutine functions are awaited in a loop of ours, so not from within another.
        """
        if any(map(inspect.iscoroutinefunction, (function, reference))) and _is_in_a_loop():
            raise RuntimeError(
                "pyrometer.compare: coroutine functions cannot be compared while an event loop is running; "
                "call it from a test that is not async"
            )
        with (
            timing(function, kwargs, args) as timed,
            timing(reference, kwargs, args) as reference_timed,
            without_collections(),
        ):
            # The order must be chance, not the same in every process.
            comparison = compare(timed, reference_timed, judge=either_way, chooser=random.SystemRandom())
        self.comparisons.append((f"{_name_of(function)} / {_name_of(reference)}", comparison))
        return comparison

    @staticmethod
    def scope(name: str) -> Scope:
        """A scope of the recording, as ``pyrometer.scope``: told under ``--pyrometer``."""
        return recording.scope(name)


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function)).replace("<locals>.", "")
