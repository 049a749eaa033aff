"""``@pyrometer.benchmark``: what it marks, what its benchmarks are called, and what it refuses."""

from collections.abc import Callable, Iterator
from enum import Enum
from itertools import product
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import benchmarks
from pyrometer.capture.benchmarks import Case
from pyrometer.errors import UsageError


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "marked_functions", [])


def cases() -> list[Case]:
    return [case for marked in benchmarks.marked_functions for case in marked.cases()]


def names() -> list[str]:
    return [case.name for case in cases()]


class Color(Enum):
    RED = 1


def bench_any(**_: object) -> None:
    """Takes whatever parameter there is."""


def refused(function: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        pyrometer.benchmark(**options)(function)
    return str(caught.value)


def test_a_marked_function_is_the_very_function_it_was() -> None:
    def bench_double(number: int = 2) -> int:
        return 2 * number

    assert pyrometer.benchmark(bench_double) is bench_double
    assert pyrometer.benchmark(parameters={"number": [1]})(bench_double) is bench_double
    assert bench_double(4) == 8


def test_without_parameters_there_is_one_benchmark_called_like_the_function() -> None:
    pyrometer.benchmark(bench_any)
    assert names() == ["bench_any"]


def test_each_combination_is_a_benchmark_and_the_last_parameter_changes_fastest() -> None:
    pyrometer.benchmark(parameters={"size": [10, 100], "kind": ["random", "sorted"]})(bench_any)
    assert names() == [
        f"bench_any[size={size},kind={kind}]" for size, kind in product((10, 100), ("random", "sorted"))
    ]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1, "1"),
        (-0.5, "-0.5"),
        (None, "None"),
        (True, "True"),
        ("plain-1.2", "plain-1.2"),
        ("two words", "'two words'"),
        ("", "''"),
        ("a,b=c]", "'a,b=c]'"),
        ("\x1b[31m\n\0", r"'\x1b[31m\n\x00'"),
        ((2, "x"), "(2,x)"),
        (Color.RED, "RED"),
        (sorted, "sorted"),
        (dict, "dict"),
    ],
)
def test_a_value_is_called_by_a_name_that_any_terminal_can_show(value: object, label: str) -> None:
    pyrometer.benchmark(parameters={"value": [value]})(bench_any)
    assert names() == [f"bench_any[value={label}]"]


def test_values_without_a_name_of_their_own_can_be_given_one() -> None:
    pyrometer.benchmark(parameters={"data": {"short": [1], "with blank": [1, 2]}})(bench_any)
    assert names() == ["bench_any[data=short]", "bench_any[data='with blank']"]
    assert [case.make_arguments() for case in cases()] == [((), {"data": [1]}), ((), {"data": [1, 2]})]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"data": [[1, 2]]},
            'a value of data has no name of its own: [1, 2]; name it, as in parameters={"data"',
        ),
        ({"data": [object]}, None),
        ({"data": [{1, 2}]}, "has no name of its own"),
        ({"data": ["x" * 300]}, "has a long name"),
        ({"data": [1, "1"]}, "two values of data are called 1; name them apart"),
        ({"data": []}, "must be a list, or a dict of names and values, with at least one; they are []"),
        ({"data": "abc"}, "they are 'abc'"),
        ({"data": 7}, "they are 7"),
        ({"two words": [1]}, "'two words' is no name of an argument"),
        ({"class": [1]}, "'class' is no name of an argument"),
        ({7: [1]}, "7 is no name of an argument"),
        ({"data": range(1_001)}, "more than 1,000 combinations"),
        ([("data", [1])], "parameters is a list"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(parameters: Any, said: str | None) -> None:
    if said is None:
        pyrometer.benchmark(parameters=parameters)(bench_any)
    else:
        problem = refused(bench_any, parameters=parameters)
        assert said in problem
        assert problem.startswith("bench_any: ")


def test_a_parameter_goes_to_whoever_has_an_argument_of_its_name() -> None:
    def make(size: int, fill: str) -> tuple[list[str], int]:
        return [fill] * size, 9

    def bench_use(data: list[str], number: int, *, size: int, order: str) -> None: ...

    pyrometer.benchmark(parameters={"size": [2], "fill": ["x"], "order": ["up"]}, setup=make)(bench_use)
    assert cases()[0].make_arguments() == ((["x", "x"], 9), {"size": 2, "order": "up"})


@pytest.mark.parametrize(
    ("made", "arguments"),
    [(None, ()), (3, (3,)), ((3, 4), (3, 4)), (((3, 4),), ((3, 4),)), ([3, 4], ([3, 4],))],
)
def test_a_tuple_made_by_setup_is_several_arguments_and_none_is_none(
    made: object, arguments: tuple[object, ...]
) -> None:
    def bench_use(*data: object) -> None: ...

    pyrometer.benchmark(setup=lambda: made)(bench_use)
    assert cases()[0].make_arguments() == (arguments, {})


def test_what_setup_returns_must_fit_the_function() -> None:
    def bench_one(data: object) -> None: ...

    pyrometer.benchmark(setup=lambda: (1, 2))(bench_one)
    with pytest.raises(
        UsageError, match="bench_one cannot be called with what its setup returned, 2 arguments"
    ):
        cases()[0].make_arguments()


def test_arguments_that_nobody_gives_or_takes_are_refused_when_the_function_is_marked() -> None:
    def bench_needy(data: object) -> None: ...
    def make(size: int) -> None: ...

    assert "bench_needy cannot be called: missing a required argument: 'data'" in refused(bench_needy)
    assert "bench_needy has not an argument 'size'" in refused(bench_needy, parameters={"size": [1]})
    assert "the setup of bench_needy cannot be called: missing" in refused(bench_needy, setup=make)
    assert "neither bench_needy nor its setup has an argument 'depth'" in refused(
        bench_needy, setup=make, parameters={"size": [1], "depth": [1]}
    )
    assert "setup is 3, but must be a function" in refused(bench_needy, setup=3)
    assert "check is 'md5', but must be a function" in refused(bench_needy, check="md5")


def test_what_does_nothing_when_called_or_has_no_name_is_refused() -> None:
    async def bench_later() -> None: ...

    def bench_one_by_one() -> Iterator[int]:
        yield 1

    assert "bench_later is a coroutine function" in refused(bench_later)
    assert "bench_one_by_one is a generator function" in refused(bench_one_by_one)
    assert "<lambda> has no name to be known by" in refused(lambda: None)
    assert "is no function" in refused(Color)
    assert "is no function" in refused(7)  # type: ignore[arg-type]


def sources() -> list[str]:
    return [marked.source for marked in benchmarks.marked_functions]


def make_one() -> int:
    return 1


def make_two() -> int:
    return 2


def test_the_source_is_that_of_function_setup_and_check_and_not_of_the_parameters() -> None:
    def bench_use(data: object = 0, size: int = 0) -> None: ...

    pyrometer.benchmark(bench_use)
    pyrometer.benchmark(parameters={"size": [1]})(bench_use)
    pyrometer.benchmark(setup=make_one)(bench_use)
    pyrometer.benchmark(setup=make_two)(bench_use)
    pyrometer.benchmark(check=repr)(bench_use)
    plain, with_parameters, one, two, checked = sources()
    assert plain == with_parameters
    assert len({plain, one, two, checked}) == 4


def test_another_text_of_the_function_is_another_source() -> None:
    @pyrometer.benchmark
    def bench_one() -> int:
        return 1

    def same_name() -> None:
        @pyrometer.benchmark
        def bench_one() -> int:
            return 2

    def same_text() -> None:
        @pyrometer.benchmark(parameters={})
        def bench_one() -> int:
            return 1

    same_name()
    same_text()
    first, other, again = sources()
    assert first == again
    assert first != other
