"""A profiled function is the function, in every way a program can tell, and a scope."""

import copy
import inspect
import pickle
import traceback
import weakref
from typing import Any

import pytest

from tests.recorders import Clock, losses, seen, totals


def module_level(value: int, *, double: bool = False) -> int:
    """What it does."""
    return value * 2 if double else value


def test_calls_are_scopes(recorder: Any, clock: Clock) -> None:
    def work(duration_ns: int) -> int:
        clock.spend(duration_ns)
        return duration_ns * 2

    profiled = recorder.profiled(work, "work")
    with recorder.scope("outer"):
        assert profiled(3) == 6
        assert profiled(duration_ns=4) == 8
    assert totals(recorder) == {("outer",): 7, ("outer", "work"): 7}


def test_methods_are_bound(recorder: Any) -> None:
    class Model:
        def forward(self, value: int) -> tuple["Model", int]:
            return self, value

    Model.forward = recorder.profiled(Model.forward, "forward")  # type: ignore[method-assign]
    model = Model()
    assert model.forward(3) == (model, 3)
    bound = model.forward
    assert bound(4) == (model, 4)
    assert Model.forward(model, 5) == (model, 5)
    assert seen(recorder)["forward",].calls == 3


def test_an_exception_passes_with_no_frame_of_ours_in_c_and_is_counted(recorder: Any, clock: Clock) -> None:
    def fail() -> None:
        clock.spend(2)
        raise ValueError("boom")

    profiled = recorder.profiled(fail, "fail")
    with pytest.raises(ValueError, match="boom") as caught:
        profiled()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    if type(recorder).__module__ == "pyrometer._native.core":
        assert frames[1:] == ["fail"]
    assert totals(recorder) == {("fail",): 2}
    assert losses(recorder) == {}


def test_it_looks_like_the_function(recorder: Any) -> None:
    profiled = recorder.profiled(module_level, "x")
    assert profiled.__name__ == "module_level"
    assert profiled.__qualname__ == "module_level"
    assert profiled.__doc__ == "What it does."
    assert profiled.__module__ == __name__
    assert profiled.__wrapped__ is module_level
    assert inspect.signature(profiled) == inspect.signature(module_level)
    profiled.attribute = 1
    assert profiled.attribute == 1
    assert weakref.ref(profiled)() is profiled
    assert inspect.isfunction(profiled)
    assert inspect.getsource(profiled) == inspect.getsource(module_level)
    assert copy.deepcopy(profiled) is profiled
    assert not hasattr(profiled, "no_such_thing")
    if type(recorder).__module__ == "pyrometer._native.core":
        assert inspect.getfile(profiled) == __file__
        assert profiled.__code__ is module_level.__code__


def test_it_is_pickled_by_name_as_functions_are(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    profiled = recorder.profiled(module_level, "x")
    monkeypatch.setattr(sys.modules[__name__], "module_level", profiled)
    assert pickle.loads(pickle.dumps(profiled)) is profiled  # noqa: S301 - our own bytes


def test_recursion_through_a_profiled_function(recorder: Any, clock: Clock) -> None:
    def factorial(n: int) -> int:
        clock.spend(1)
        return 1 if n <= 1 else n * profiled(n - 1)

    profiled = recorder.profiled(factorial, "factorial")
    assert profiled(4) == 24
    assert totals(recorder) == {("factorial",) * n: 5 - n for n in range(1, 5)}


def test_stopping_inside_a_profiled_function_is_harmless(recorder: Any, clock: Clock) -> None:
    def work() -> str:
        clock.spend(3)
        recorder.stop()
        return "done"

    assert recorder.profiled(work, "work")() == "done"
    node = seen(recorder)["work",]
    assert (node.calls, node.open_calls, node.total_ns) == (0, 1, 3)
    recorder.start()
