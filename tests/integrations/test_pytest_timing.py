"""Timing in turns, with calls that take as long as the test says."""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from pyrometer.integrations.pytest_timing import (
    Comparison,
    Timed,
    Verdict,
    against_limit,
    compare,
    either_way,
    timing,
)


def taking(*costs_ns: int) -> Timed:
    """Calls that take so long, each sample the next of the costs, over and over."""
    costs = itertools.cycle(costs_ns)
    return lambda calls: next(costs) * calls


def noisy(cost_ns: int, spread: float, seed: int) -> Timed:
    """Calls that take so long, more or less by chance."""
    chooser = random.Random(seed)
    return lambda calls: round(calls * cost_ns * chooser.lognormvariate(0, spread))


def compared(
    timed: Timed, reference: Timed, judge: Callable[..., Verdict], chooser: random.Random | None = None
) -> Comparison:
    return compare(timed, reference, judge=judge, chooser=chooser or random.Random(1))


def test_the_ratio_is_that_of_the_times_of_one_call() -> None:
    comparison = compared(taking(3_000), taking(2_000), against_limit(1.2))
    assert comparison.ratio == pytest.approx(1.5)
    assert [comparison.low, comparison.high] == pytest.approx([1.5, 1.5])
    assert (comparison.duration_ns, comparison.reference_ns) == (3_000, 2_000)


@pytest.mark.parametrize(
    ("cost_ns", "limit", "verdict"),
    [
        (1_300, 1.2, Verdict.SLOWER),
        (1_100, 1.2, Verdict.WITHIN),
        (1_000, 1.2, Verdict.WITHIN),
        (900, 0.8, Verdict.SLOWER),
        (700, 0.8, Verdict.WITHIN),
    ],
)
def test_a_limit_is_judged_by_whether_it_is_passed_for_certain(
    cost_ns: int, limit: float, verdict: Verdict
) -> None:
    comparison = compared(taking(cost_ns), taking(1_000), against_limit(limit))
    assert comparison.verdict is verdict
    assert comparison.blocks == 10


def test_noise_around_the_limit_cannot_be_told_after_all_looks() -> None:
    comparison = compared(noisy(1_200, 1.0, seed=3), taking(1_000), against_limit(1.2))
    assert comparison.verdict is Verdict.CANNOT_TELL
    assert comparison.blocks == 40


@pytest.mark.parametrize(
    ("cost_ns", "verdict"),
    [
        (1_100, Verdict.SLOWER),
        (1_012, Verdict.SLOWER),
        (1_008, Verdict.NO_CHANGE),  # sure, and not worth a word
        (1_000, Verdict.NO_CHANGE),
        (992, Verdict.NO_CHANGE),
        (988, Verdict.FASTER),
        (900, Verdict.FASTER),
    ],
)
def test_without_a_limit_slower_faster_and_no_change_are_told_apart(cost_ns: int, verdict: Verdict) -> None:
    assert compared(taking(cost_ns), taking(1_000), either_way).verdict is verdict


def test_two_that_are_alike_but_noisy_are_not_called_the_same() -> None:
    comparison = compared(noisy(1_000, 1.0, seed=1), noisy(1_000, 1.0, seed=2), either_way)
    assert comparison.verdict is Verdict.CANNOT_TELL


def test_samples_are_of_milliseconds_though_the_first_tries_were_disturbed() -> None:
    made: list[int] = []
    disturbances = itertools.chain([5_000_000, 5_000_000], itertools.repeat(0))

    def timed(calls: int) -> int:
        made.append(calls)
        return 1_000 * calls + next(disturbances)

    compared(timed, taking(1_000), against_limit(2.0))
    assert 2_000_000 <= made[-1] * 1_000 <= 10_000_000


def test_a_call_of_many_seconds_is_made_few_times() -> None:
    made: list[int] = []

    def timed(calls: int) -> int:
        made.append(calls)
        return 5_000_000_000 * calls

    comparison = compared(timed, taking(5_000_000_000), against_limit(2.0))
    assert comparison.blocks == 10
    assert made == [1] * 11


def test_neither_side_is_always_first() -> None:
    order: list[str] = []

    def noted(name: str) -> Timed:
        def timed(calls: int) -> int:
            order.append(name)
            return 5_000_000 * calls

        return timed

    compared(noted("a"), noted("b"), against_limit(2.0))
    pairs = pairs_of(order[10:])
    assert {*pairs} == {("a", "b"), ("b", "a")}


def pairs_of(names: list[str]) -> list[tuple[str, ...]]:
    return list(zip(names[::2], names[1::2], strict=True))


def ticking() -> Callable[[], int]:
    ticks: Iterator[int] = itertools.count(step=7)
    return lambda: next(ticks)


def test_a_function_is_called_as_often_as_asked_with_its_arguments() -> None:
    seen: list[tuple[int, int]] = []
    with timing(lambda a, b: seen.append((a, b)), {"b": 2}, (1,), clock_ns=ticking()) as timed:
        assert timed(3) == 7
    assert seen == [(1, 2)] * 3


def test_a_coroutine_function_is_awaited_in_one_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def work(name: str) -> None:
        assert name == "x"
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())

    with timing(work, {"name": "x"}, clock_ns=ticking()) as timed:
        assert timed(2) == 7
        timed(1)
    assert len(loops) == 3
    assert len(set(map(id, loops))) == 1


def test_the_current_loop_of_the_thread_stays() -> None:
    async def work() -> None: ...

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with timing(work, {}) as timed:
            timed(1)
        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_comparison_reads_as_one_line() -> None:
    comparison = compared(taking(3_000), taking(2_000), either_way)
    assert str(comparison) == "1.5 × the reference (1.5–1.5): slower"


def test_samples_of_both_sides_are_equally_long() -> None:
    made: dict[str, int] = {}

    def noted(name: str, cost_ns: int) -> Timed:
        def timed(calls: int) -> int:
            made[name] = cost_ns * calls
            return made[name]

        return timed

    compared(noted("slow", 40_000_000), noted("quick", 1_000), against_limit(2.0))
    assert made == {"slow": 40_000_000, "quick": 40_000_000}
