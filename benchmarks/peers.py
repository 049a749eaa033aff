"""Other tools' way to mark a stretch of code, or to time every call of a function.

Each is set up as its own documentation shows it, and switched on around its own samples only.
"""

import contextlib
import cProfile
import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from interleaved import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """The subjects that could be made, and the packages that were missing for the others."""

    marks: tuple[Subject, ...]
    """Around a ``with`` block that does nothing."""
    calls: tuple[Subject, ...]
    """Around calls of a function that does nothing."""
    missing: tuple[str, ...]


def find_peers() -> Peers:
    """Every peer that is installed here."""
    # Else torch's profiler writes two lines to stderr for each sample.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    missing: list[str] = []

    def made(makers: dict[str, Callable[[Any], list[Subject]]]) -> tuple[Subject, ...]:
        subjects: list[Subject] = []
        for package, make in makers.items():
            try:
                module = importlib.import_module(package)
            except ImportError:
                missing.append(package.partition(".")[0])
            else:
                subjects += make(module)
        return tuple(subjects)

    marks = made(
        {
            "torch.profiler": _torch,
            "nvtx": _nvtx,
            "viztracer": _viztracer,
            "opentelemetry.sdk.trace": _opentelemetry,
        }
    )
    calls = made(
        {
            "cProfile": _cprofile,
            "yappi": _yappi,
            "line_profiler": _line_profiler,
            "pyinstrument": _pyinstrument,
        }
    )
    return Peers(marks=marks, calls=calls, missing=tuple(missing))


def call_loop(function: Callable[[], None]) -> Callable[[int], None]:
    """A loop that calls the function."""

    def loop(count: int) -> None:
        for _ in repeat(None, count):
            function()

    return loop


def _work() -> None:
    pass


def _torch(profiler: Any) -> list[Subject]:
    record_function = profiler.record_function

    def loop(count: int) -> None:
        for _ in repeat(None, count):
            with record_function("x"):
                pass

    def profiling() -> contextlib.AbstractContextManager[object]:
        on: contextlib.AbstractContextManager[object] = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU]
        )
        return on

    return [
        Subject(name="torch record_function, profiler off", loop=loop),
        Subject(name="torch record_function, profiler on", loop=loop, surroundings=profiling),
    ]


def _nvtx(nvtx: Any) -> list[Subject]:
    def loop(count: int) -> None:
        for _ in repeat(None, count):
            with nvtx.annotate("x"):
                pass

    return [Subject(name="nvtx.annotate, nothing attached", loop=loop)]


def _viztracer(viztracer: Any) -> list[Subject]:
    tracer = viztracer.VizTracer(verbose=0)

    def loop(count: int) -> None:
        for _ in repeat(None, count):
            with tracer.log_event("x"):
                pass

    @contextlib.contextmanager
    def tracing() -> Iterator[None]:
        tracer.start()
        try:
            yield
        finally:
            tracer.stop()
            tracer.clear()

    return [Subject(name="viztracer log_event", loop=loop, surroundings=tracing)]


def _opentelemetry(trace: Any) -> list[Subject]:
    # Without an exporter: its thread would slow the other subjects, and it makes spans dearer still.
    tracer = trace.TracerProvider(shutdown_on_exit=False).get_tracer("benchmark")

    def loop(count: int) -> None:
        for _ in repeat(None, count):
            with tracer.start_as_current_span("x"):
                pass

    return [Subject(name="OpenTelemetry span, no exporter", loop=loop)]


def _cprofile(_module: Any) -> list[Subject]:
    return [Subject(name="under cProfile", loop=call_loop(_work), surroundings=cProfile.Profile)]


def _yappi(yappi: Any) -> list[Subject]:
    @contextlib.contextmanager
    def profiling() -> Iterator[None]:
        yappi.start()
        try:
            yield
        finally:
            yappi.stop()
            yappi.clear_stats()

    return [Subject(name="under yappi", loop=call_loop(_work), surroundings=profiling)]


def _line_profiler(line_profiler: Any) -> list[Subject]:
    # Of its own: line_profiler rewrites the code of what it profiles.
    def own_work() -> None:
        pass

    profiled: Callable[[], None] = line_profiler.LineProfiler()(own_work)
    return [Subject(name="under line_profiler", loop=call_loop(profiled))]


def _pyinstrument(pyinstrument: Any) -> list[Subject]:
    return [
        Subject(name="under pyinstrument", loop=call_loop(_work), surroundings=pyinstrument.Profiler),
    ]
