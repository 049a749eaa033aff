"""``@benchmark``: functions to be measured by themselves, for each combination of their parameters."""

import ast
import hashlib
import inspect
import keyword
import numbers
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from math import prod
from typing import Any, TypeVar, overload

from pyrometer.errors import UsageError

MAX_COMBINATIONS = 1_000
_LONGEST_NAME = 200
_PLAIN = re.compile(r"[\w.+():/-]+")

F = TypeVar("F", bound=Callable[..., Any])
Values = Sequence[Any] | Mapping[str, Any]
"""Those of a parameter, by name where they have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A function with all that is to be known to measure it."""

    function: Callable[..., Any]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By parameter its values by name."""
    setup: Callable[..., Any] | None = None
    check: Callable[[Any], Any] | None = None

    @property
    def source(self) -> str:
        """The SHA-256 of the texts it is made of; what those call is not in it."""
        parts = (self.function, self.setup, self.check)
        texts = ["" if part is None else _text_of(part) for part in parts]
        return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()

    def cases(self) -> "list[Case]":
        """Every combination, the last parameter changing fastest."""
        return [
            Case(marked=self, labels=dict(zip(self.parameters, labels, strict=True)))
            for labels in product(*self.parameters.values())
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A marked function with one value for each parameter."""

    marked: Marked
    labels: Mapping[str, str]

    @property
    def name(self) -> str:
        """``bench_sort[size=10,kind=random]``."""
        chosen = ",".join(f"{parameter}={label}" for parameter, label in self.labels.items())
        return f"{self.marked.function.__name__}[{chosen}]" if chosen else self.marked.function.__name__

    def make_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is called with; runs ``setup``.

        A tuple that ``setup`` returns is several arguments, None is none at all.
        """
        marked = self.marked
        values = {name: marked.parameters[name][label] for name, label in self.labels.items()}
        takers = _takers(marked.function, marked.setup, values)
        named = {name: values[name] for name in values if marked.function in takers[name]}
        made: tuple[Any, ...] = ()
        if marked.setup is not None:
            given = marked.setup(**{name: values[name] for name in values if marked.setup in takers[name]})
            made = given if isinstance(given, tuple) else () if given is None else (given,)
        problem = _why_not_callable(marked.function, made, named)
        if problem is not None:
            raise UsageError(
                f"{self.name} cannot be called with what its setup returned, {len(made)} "
                f"{'argument' if len(made) == 1 else 'arguments'}, and its parameters: {problem}; "
                "a tuple that setup returns is several arguments, anything else is one"
            )
        return made, named


marked_functions: list[Marked] = []
"""All that were marked in this process, in that order."""


@overload
def benchmark(function: F, /) -> F: ...
@overload
def benchmark(
    *,
    parameters: Mapping[str, Values] | None = None,
    setup: Callable[..., Any] | None = None,
    check: Callable[[Any], Any] | None = None,
) -> Callable[[F], F]: ...
def benchmark(
    function: Any = None,
    /,
    *,
    parameters: Mapping[str, Values] | None = None,
    setup: Callable[..., Any] | None = None,
    check: Callable[[Any], Any] | None = None,
) -> Any:
    """The function itself, marked to be measured by ``pyrometer bench`` and ``pyrometer gate``.

    ``parameters`` gives each of them its values; every combination is a benchmark. ``setup`` makes the
    function's arguments once in a process, and is not timed: a tuple is several, anything else is one.
    A parameter goes to the one that has an argument of its name, ``setup`` or the function, or to both.
    ``check`` is given what the first call returned, and returns what is told of it instead; it may raise.
    """
    if function is None:
        return lambda function: _mark(function, parameters or {}, setup, check)
    return _mark(function, {}, None, None)


def _mark(
    function: Any,
    parameters: Mapping[str, Values],
    setup: Callable[..., Any] | None,
    check: Callable[[Any], Any] | None,
) -> Any:
    name = _name_of_function(function)
    for role, other in (("setup", setup), ("check", check)):
        if other is not None and not callable(other):
            raise UsageError(f"{name}: {role} is {other!r}, but must be a function")
    if not isinstance(parameters, Mapping):
        raise UsageError(
            f"{name}: parameters is a {type(parameters).__name__}, but must give each parameter its values, "
            'as in {"size": [10, 100]}'
        )
    named = {parameter: _named_values(name, parameter, values) for parameter, values in parameters.items()}
    if prod(map(len, named.values())) > MAX_COMBINATIONS:
        raise UsageError(
            f"{name}: its parameters have more than {MAX_COMBINATIONS:,} combinations; give fewer"
        )
    _check_takers(name, function, setup, named)
    marked_functions.append(Marked(function=function, parameters=named, setup=setup, check=check))
    return function


def _name_of_function(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if isinstance(function, type) or not callable(function) or not isinstance(name, str):
        raise UsageError(
            f"benchmark: {function!r} is no function with a name; mark one that is made with def"
        )
    if not name.isidentifier():
        raise UsageError(
            f"benchmark: {name} has no name to be known by; mark a function that is made with def"
        )
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{name} is a coroutine function, and calling it does nothing; call asyncio.run in one"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{name} is a generator function, and calling it does nothing; go through it in one")
    return name


def _named_values(function: str, parameter: Any, values: Any) -> dict[str, Any]:
    if not isinstance(parameter, str) or not parameter.isidentifier() or keyword.iskeyword(parameter):
        raise UsageError(f"{function}: {parameter!r} is no name of an argument, and so no parameter")
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | Mapping) or not values:
        raise UsageError(
            f"{function}: the values of {parameter} must be a list, or a dict of names and values, with at "
            f"least one; they are {_shown(values)}"
        )
    named: dict[str, Any] = {}
    for given in values:
        label = _label(given)
        if label is None or len(label) > _LONGEST_NAME:
            what = "has a long name" if label else "has no name of its own"
            raise UsageError(
                f"{function}: a value of {parameter} {what}: {_shown(given)}; name it, as in "
                f'parameters={{"{parameter}": {{"small": …}}}}'
            )
        if label in named:
            raise UsageError(f"{function}: two values of {parameter} are called {label}; name them apart")
        named[label] = values[given] if isinstance(values, Mapping) else given
    return named


def _label(value: Any) -> str | None:
    """What a value is called: the same in every process; None where it has no such name."""
    if isinstance(value, tuple):
        parts = [_label(part) for part in value]
        return None if None in parts else f"({','.join(map(str, parts))})"
    name = getattr(value, "__name__", None)
    if isinstance(value, Enum):
        text = value.name
    elif isinstance(value, str | numbers.Number | None) or type(value).__name__ in {"dtype", "device"}:
        text = str(value)
    elif isinstance(name, str) and name.isidentifier():
        text = name
    else:
        return None
    # Else in quotes, with an escape for what does not print or would end a word.
    return text if _PLAIN.fullmatch(text) else repr(text)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the user's own __repr__, in a message about another mistake
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:79]}…"


# Who gets which parameter.


def _takers(
    function: Callable[..., Any], setup: Callable[..., Any] | None, parameters: Mapping[str, Any]
) -> dict[str, list[Callable[..., Any]]]:
    """By parameter who has an argument of that name; if none has, who takes any."""
    both = [one for one in (setup, function) if one is not None]
    takers = {}
    for name in parameters:
        naming = [one for one in both if name in _argument_names(one)]
        takers[name] = naming or [one for one in both if None in _argument_names(one)]
    return takers


def _argument_names(function: Callable[..., Any]) -> set[str | None]:
    """Those that may be given by name; None where any may."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return {None}  # compiled code that does not tell
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names: set[str | None] = {argument.name for argument in arguments if argument.kind in by_name}
    return names | {None for argument in arguments if argument.kind is inspect.Parameter.VAR_KEYWORD}


def _check_takers(
    name: str, function: Callable[..., Any], setup: Callable[..., Any] | None, parameters: Mapping[str, Any]
) -> None:
    takers = _takers(function, setup, parameters)
    for parameter, taking in takers.items():
        if not taking:
            whom = f"neither {name} nor its setup" if setup is not None else name
            has = "has" if setup is not None else "has not"
            raise UsageError(
                f"{name}: {whom} {has} an argument {parameter!r}, which is one of its parameters"
            )
    first = function if setup is None else setup
    problem = _why_not_callable(first, (), [parameter for parameter in takers if first in takers[parameter]])
    if problem is not None:
        whom, hint = (name, ", or a setup that makes it") if setup is None else (f"the setup of {name}", "")
        raise UsageError(f"{whom} cannot be called: {problem}; give it a parameter of that name{hint}")


def _why_not_callable(
    function: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any] | Sequence[str]
) -> str | None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    try:
        signature.bind(*given, **dict.fromkeys(named))
    except TypeError as error:
        return str(error)
    return None


def _text_of(function: Callable[..., Any]) -> str:
    """A function's text without its decorators, so that one more parameter leaves the others' as it is."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        owner = function if hasattr(function, "__qualname__") else type(function)
        return f"{owner.__module__}.{owner.__qualname__}"
    try:
        first = ast.parse(text).body[0]
    except (SyntaxError, ValueError):
        return text  # a lambda within an expression
    if not isinstance(first, ast.FunctionDef):
        return text
    return "".join(text.splitlines(keepends=True)[first.lineno - 1 :])
