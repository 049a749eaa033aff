"""What is wrapped is the function, in every way a program can tell."""

import copy
import functools
import gc
import inspect
import math
import pickle
import sys
import traceback
import types
import weakref
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import CORE, Clock
from tests.watches import Watched


def module_level(value: int, *, double: bool = False) -> int:
    """What it does."""
    return value * 2 if double else value


class Holder:
    def method(self) -> int:
        return 3


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


@pytest.fixture(params=["phased", "module_call"])
def wrap(request: pytest.FixtureRequest, watched: Watched) -> Any:
    """Makes either kind of wrapper."""
    return functools.partial(watched.phased, "data") if request.param == "phased" else watched.module_call


def test_it_looks_like_the_function(wrap: Any) -> None:
    wrapper = wrap(module_level)
    assert wrapper.__name__ == wrapper.__qualname__ == "module_level"
    assert wrapper.__doc__ == "What it does."
    assert wrapper.__module__ == __name__
    assert wrapper.__wrapped__ is module_level
    assert wrapper.__code__ is module_level.__code__
    assert wrapper.__kwdefaults__ == {"double": False}
    assert wrapper.__annotations__ == module_level.__annotations__
    assert repr(wrapper) == repr(module_level)
    assert inspect.signature(wrapper) == inspect.signature(module_level)
    assert inspect.getsource(wrapper) == inspect.getsource(module_level)
    assert inspect.getfile(wrapper) == __file__
    assert inspect.isfunction(wrapper)
    assert isinstance(wrapper, types.FunctionType)
    assert callable(wrapper)
    assert not hasattr(wrapper, "no_such_thing")


def test_attributes_can_be_set_on_it_and_are_found_on_it(wrap: Any) -> None:
    def function() -> None: ...

    function.mark = 1  # type: ignore[attr-defined]
    wrapper = wrap(function)
    assert wrapper.mark == 1
    wrapper.other = 2
    assert wrapper.other == 2
    assert not hasattr(function, "other")
    assert weakref.ref(wrapper)() is wrapper


def test_it_is_equal_to_the_function_and_found_in_tables_by_function(wrap: Any) -> None:
    wrapper = wrap(module_level)
    assert wrapper == module_level
    assert module_level == wrapper
    assert not wrapper != module_level  # noqa: SIM202 - the operator itself is tested
    assert wrapper == wrap(module_level)
    assert wrapper != wrap(test_attributes_can_be_set_on_it_and_are_found_on_it)
    assert wrapper != print
    assert hash(wrapper) == hash(module_level)
    assert {module_level: "found"}[wrapper] == "found"
    assert {wrapper: "found"}[module_level] == "found"
    with pytest.raises(TypeError):
        assert wrapper < module_level


def test_it_can_itself_be_wrapped(wrap: Any) -> None:
    wrapper = wrap(module_level)

    @functools.wraps(wrapper)
    def outer(*arguments: Any, **keywords: Any) -> Any:
        return wrapper(*arguments, **keywords)

    assert outer.__name__ == "module_level"
    assert outer(3, double=True) == 6
    assert inspect.unwrap(outer) is module_level
    assert inspect.signature(outer) == inspect.signature(module_level)
    assert functools.partial(wrapper, double=True)(3) == 6


def test_it_is_bound_as_a_method_is(wrap: Any) -> None:
    class Model:
        def forward(self, value: int) -> tuple["Model", int]:
            return self, value

    plain = Model.forward
    Model.forward = wrap(plain)  # type: ignore[method-assign]
    model: Any = Model()
    assert model.forward(3) == (model, 3)
    assert model.forward.__self__ is model
    assert model.forward == model.forward
    assert model.forward.__func__ is Model.forward
    assert Model.forward(model, 5) == (model, 5)
    assert inspect.ismethod(model.forward)
    assert Model.forward == plain


def test_it_is_pickled_by_name_as_functions_are(wrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pickle.dumps(module_level)
    wrapper = wrap(module_level)
    # While another stands under the name, that one is meant: the function, or another wrapper of it.
    assert pickle.loads(pickle.dumps(wrapper)) is module_level  # noqa: S301 - our own bytes
    monkeypatch.setattr(sys.modules[__name__], "module_level", wrapper)
    assert pickle.dumps(wrapper) == plain
    assert pickle.loads(plain) is wrapper  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(wrap(module_level.__wrapped__))) is wrapper  # noqa: S301


def test_what_could_not_be_pickled_cannot_be_pickled(wrap: Any) -> None:
    def local() -> None: ...

    for function in (local, wrap(local)):
        with pytest.raises((AttributeError, pickle.PicklingError)):
            pickle.dumps(function)


def test_methods_and_functions_in_c_are_pickled_as_they_were(
    wrap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pickle.loads(pickle.dumps(wrap(str.upper))) == str.upper  # noqa: S301 - our own bytes
    wrapper = wrap(math.sqrt)
    assert wrapper(4.0) == 2.0
    monkeypatch.setattr(math, "sqrt", wrapper)
    assert pickle.loads(pickle.dumps(wrapper)) is wrapper  # noqa: S301 - our own bytes
    monkeypatch.setattr(Holder, "method", wrap(Holder.method))
    assert pickle.loads(pickle.dumps(Holder().method))() == 3  # noqa: S301 - our own bytes


def test_it_is_copied_as_functions_are_not_at_all(wrap: Any) -> None:
    wrapper = wrap(module_level)
    assert copy.copy(wrapper) is wrapper
    assert copy.deepcopy([wrapper])[0] is wrapper


def test_exceptions_pass_with_no_frame_of_ours_in_c(wrap: Any, implementation: ModuleType) -> None:
    def fail(_value: object) -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as caught:
        wrap(fail)(Holder())
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "fail"
    if implementation.__name__ == CORE:
        assert len(frames) == 2


def test_wrong_arguments_are_the_programs_error(wrap: Any) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        wrap(module_level)(1, 2, 3)
    with pytest.raises(TypeError, match="no_such"):
        wrap(module_level)(1, no_such=2)


def test_it_goes_with_the_last_reference_to_it_also_out_of_a_cycle(wrap: Any) -> None:
    class Kept: ...

    def make() -> weakref.ref[Kept]:
        kept = Kept()
        wrapper = wrap(lambda: kept)
        wrapper.itself = [wrapper]
        return weakref.ref(kept)

    kept = make()
    gc.collect()
    assert kept() is None


def test_it_may_be_dropped_while_it_runs(watched: Watched) -> None:
    place: list[Any] = []

    def function() -> str:
        place.clear()
        gc.collect()
        return "result"

    place.append(watched.phased("data", function, ended=lambda *_: None))
    assert place[0]() == "result"
    assert watched.taken() == {}
