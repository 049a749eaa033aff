"""``@profiled``: every call of a function is a scope."""

from __future__ import annotations

from functools import wraps
from types import coroutine

from pyrometer.capture.recording import recorder, scope

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any, TypeVar, overload

    F = TypeVar("F")

# The flags of a code object. `inspect` has names for them, but takes a third of our import budget.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


if TYPE_CHECKING:

    @overload
    def profiled(name: str, /) -> Callable[[F], F]: ...
    @overload
    def profiled(function: F, /) -> F: ...
    @overload
    def profiled(*, name: str | None = None) -> Callable[[F], F]: ...


def profiled(function: Any = None, /, *, name: str | None = None) -> Any:
    """The function, each call of it a scope: ``@profiled``, ``@profiled("name")``.

    Without a name the scope has the function's own: ``Model.forward``. What is marked stays what
    it is: a coroutine function is still one, a static method too. A generator's scope is open
    while its body runs or is suspended, from the first item to the last, with the time
    suspended kept apart.
    """
    if isinstance(function, str):
        function, name = None, function
    if name is not None and not isinstance(name, str):
        raise TypeError(f"profiled: a scope's name must be a str, not {type(name).__name__}: {name!r}")
    if function is None:
        return lambda function: _mark(function, name)
    return _mark(function, name)


def _mark(target: Any, name: str | None) -> Any:
    if isinstance(target, staticmethod):
        return staticmethod(_mark(target.__func__, name))
    if isinstance(target, classmethod):
        return classmethod(_mark(target.__func__, name))
    if isinstance(target, type):
        raise TypeError(f"profiled: {target.__qualname__} is a class; mark its methods instead, one by one")
    if isinstance(target, property):
        raise TypeError("profiled: a property is no function; write @profiled below @property, on its getter")
    if not callable(target):
        raise TypeError(f"profiled: {target!r} cannot be called; mark a function or a method")
    name = name or _own_name(target)
    flags = _code_flags(target)
    if flags & _ASYNC_GENERATOR:
        return _profiled_async_generator(target, name)
    if flags & _COROUTINE:
        return _profiled_coroutine(target, name)
    if flags & _GENERATOR:
        wrapper = _profiled_generator(target, name)
        return coroutine(wrapper) if flags & _ITERABLE_COROUTINE else wrapper
    return recorder.profiled(target, name)


def _own_name(target: Any) -> str:
    qualified = getattr(target, "__qualname__", None)
    if not isinstance(qualified, str):
        raise TypeError(f'profiled: {target!r} has no name of its own; give one: profiled("name")')
    return qualified.replace("<locals>.", "")


def _code_flags(target: Any) -> int:
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    flags: int = getattr(code, "co_flags", 0)
    return flags


def _profiled_generator(function: Callable[..., Generator[Any, Any, Any]], name: str) -> Any:
    own_scope = scope(name)

    @wraps(function)
    def profiled_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with own_scope:
            return (yield from function(*args, **kwargs))

    return profiled_generator


def _profiled_coroutine(function: Callable[..., Any], name: str) -> Any:
    own_scope = scope(name)

    @wraps(function)
    async def profiled_coroutine(*args: Any, **kwargs: Any) -> Any:
        with own_scope:
            return await function(*args, **kwargs)

    return profiled_coroutine


def _profiled_async_generator(function: Callable[..., AsyncGenerator[Any, Any]], name: str) -> Any:
    own_scope = scope(name)

    @wraps(function)
    async def profiled_async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        # What `yield from` does for generators, spelled out: there is none for asynchronous ones.
        with own_scope:
            inner = function(*args, **kwargs)
            try:
                item = await anext(inner)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as error:  # noqa: BLE001 - whatever is thrown in is the inner's to catch
                        item = await inner.athrow(error)
                    else:
                        item = await inner.asend(sent)
            except StopAsyncIteration:
                return

    return profiled_async_generator
