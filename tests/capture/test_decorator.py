"""``@profiled`` leaves what it marks what it was, and makes each call of it a scope."""

import asyncio
import functools
import inspect
import types
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer import profiled

pytestmark = pytest.mark.usefixtures("clean_recorder")


def recorded_calls() -> dict[str, int]:
    return {scope.name: scope.calls for scope in pyrometer.results().scopes}


def test_a_function_is_a_scope_of_its_own_name() -> None:
    @profiled
    def add(one: int, other: int = 2) -> int:
        """Adds."""
        return one + other

    with pyrometer.profile():
        assert add(1) == 3
        assert add(1, other=4) == 5
    assert recorded_calls() == {"test_a_function_is_a_scope_of_its_own_name.add": 2}
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert str(inspect.signature(add)) == "(one: int, other: int = 2) -> int"


def test_a_name_can_be_given_in_two_ways() -> None:
    @profiled("forward")
    def one() -> None: ...

    @profiled(name="backward")
    def other() -> None: ...

    with pyrometer.profile():
        one()
        other()
    assert recorded_calls() == {"forward": 1, "backward": 1}


class Model:
    @profiled
    def method(self) -> str:
        return type(self).__name__

    @profiled
    @staticmethod
    def outer_mark() -> str:
        return "static"

    @staticmethod
    @profiled
    def inner_mark() -> str:
        return "static"

    @profiled
    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    @property
    @profiled
    def size(self) -> int:
        return 7


def test_methods_of_every_kind_keep_their_kind() -> None:
    model = Model()
    with pyrometer.profile():
        assert model.method() == "Model"
        assert (Model.outer_mark(), Model.inner_mark()) == ("static", "static")
        assert (Model.of_class(), model.size) == ("Model", 7)
    assert set(recorded_calls()) == {
        "Model.method",
        "Model.outer_mark",
        "Model.inner_mark",
        "Model.of_class",
        "Model.size",
    }


def test_an_error_passes_through_and_the_call_counts() -> None:
    @profiled("fails")
    def fail() -> None:
        raise KeyError("mine")

    with pyrometer.profile(), pytest.raises(KeyError, match="mine"):
        fail()
    assert recorded_calls() == {"fails": 1}


def test_a_generator_takes_what_is_sent_and_thrown_and_returns() -> None:
    @profiled("generator")
    def echo() -> Generator[Any, Any, str]:
        try:
            got = yield "first"
            yield got
        except KeyError:
            yield "caught"
        return "returned"

    assert inspect.isgeneratorfunction(echo)
    with pyrometer.profile():
        generator = echo()
        assert next(generator) == "first"
        assert generator.send("sent") == "sent"
        assert generator.throw(KeyError()) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == "returned"
    assert recorded_calls() == {"generator": 1}


def test_a_generator_that_is_closed_early_cleans_up() -> None:
    closed: list[str] = []

    @profiled("generator")
    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append("yes")

    with pyrometer.profile():
        generator = items()
        next(generator)
        generator.close()  # type: ignore[attr-defined]
    assert closed == ["yes"]
    assert recorded_calls() == {"generator": 1}


def test_a_coroutine_function_stays_one() -> None:
    @profiled("coroutine")
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert inspect.iscoroutinefunction(double)
    with pyrometer.profile():
        assert asyncio.run(double(4)) == 8
    assert recorded_calls() == {"coroutine": 1}


def test_a_generator_that_can_be_awaited_stays_one() -> None:
    @profiled("old style")
    @types.coroutine
    def wait() -> Generator[Any, Any, str]:
        yield from asyncio.sleep(0).__await__()
        return "done"

    async def main() -> str:
        return await wait()

    with pyrometer.profile():
        assert asyncio.run(main()) == "done"
    assert recorded_calls() == {"old style": 1}


def talk(log: list[str]) -> Callable[[], AsyncGenerator[str, str]]:
    async def speak() -> AsyncGenerator[str, str]:
        try:
            got = yield "first"
            log.append(got)
            try:
                yield "second"
            except KeyError as error:
                log.append(f"caught {error.args}")
                yield "third"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    return speak


async def converse(generator: AsyncGenerator[str, str], log: list[str]) -> None:
    log.append(await anext(generator))
    log.append(await generator.asend("sent"))
    log.append(await generator.athrow(KeyError("thrown")))
    await generator.aclose()
    log.append(str(await anext(generator, "over")))


def test_an_asynchronous_generator_behaves_as_it_did() -> None:
    plain: list[str] = []
    marked: list[str] = []
    speak = profiled("talk")(talk(marked))
    assert inspect.isasyncgenfunction(speak)
    asyncio.run(converse(talk(plain)(), plain))
    with pyrometer.profile():
        asyncio.run(converse(speak(), marked))
    assert marked == plain
    assert "closed" in plain
    assert recorded_calls() == {"talk": 1}


def test_an_asynchronous_generator_ends_and_fails_as_it_did() -> None:
    @profiled("count")
    async def count(up_to: int) -> AsyncIterator[int]:
        for number in range(up_to):
            yield number
        raise ValueError("at the end")

    seen: list[int] = []

    async def collect() -> None:
        async for number in count(3):
            seen.append(number)  # noqa: PERF401 - the error must not lose what was seen

    with pyrometer.profile(), pytest.raises(ValueError, match="at the end"):
        asyncio.run(collect())
    assert seen == [0, 1, 2]
    assert recorded_calls() == {"count": 1}


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (Model, "mark its methods"),
        (property(lambda _: 1), "on its getter"),
        (3, "mark a function or a method"),
        (functools.partial(print), "give one"),
    ],
)
def test_what_cannot_be_marked_is_refused_with_advice(target: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        profiled(target)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a str, not int: 3"):
        profiled(name=3)  # type: ignore[call-overload]


def test_a_partial_can_be_marked_by_name() -> None:
    with pyrometer.profile():
        assert profiled("three")(functools.partial(int, "3"))() == 3
    assert recorded_calls() == {"three": 1}
