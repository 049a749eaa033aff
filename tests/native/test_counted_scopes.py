"""A scope that valgrind is to count, in a process that it does not run: nothing is to be noticed."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def core() -> Iterator[ModuleType]:
    core = pytest.importorskip("pyrometer._native.core")
    core.count_scope("train")
    yield core
    core.count_scope(None)


def calls_in(recorder: Any) -> int:
    [(*_, nodes)] = recorder.snapshot()["strands"]
    return sum(node[2] for node in nodes)


def test_scopes_are_recorded_as_ever(core: ModuleType) -> None:
    recorder = core.Recorder()
    recorder.start()
    with recorder.scope("train"), recorder.scope("forward"), recorder.scope("train"):
        pass
    recorder.stop()
    assert calls_in(recorder) == 3


def test_an_exception_goes_through_and_functions_return_what_they_do(core: ModuleType) -> None:
    recorder = core.Recorder()
    recorder.start()
    half = recorder.profiled(lambda value: 6 / value, "train")
    assert half(2) == 3
    with pytest.raises(ZeroDivisionError), recorder.scope("train"):
        half(0)
    recorder.stop()
    assert calls_in(recorder) == 3


def test_this_process_is_not_on_valgrind(core: ModuleType) -> None:
    assert core.on_valgrind() is False


@pytest.mark.parametrize("name", [b"train", 3])
def test_a_name_must_be_text(core: ModuleType, name: object) -> None:
    with pytest.raises(TypeError, match="must be a str"):
        core.count_scope(name)
