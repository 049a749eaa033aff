"""What the benchmarks make of their timings, on timings that are known."""

import contextlib
import importlib
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def interleaved(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("interleaved")


def test_a_ratio_is_taken_within_a_round_whatever_slows_the_rounds(interleaved: ModuleType) -> None:
    slowness = [1.0, 9.0, 1.5, 4.0, 1.0]
    timings = {"reference": slowness, "subject": [2 * factor for factor in slowness]}
    ratio = interleaved.ratio(timings, "subject", "reference")
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((2, 2, 2))


def test_one_disturbed_sample_does_not_move_a_ratio(interleaved: ModuleType) -> None:
    timings = {"reference": [10.0] * 9, "subject": [5.0] * 8 + [5_000.0]}
    assert interleaved.ratio(timings, "subject", "reference").estimate == pytest.approx(0.5)


def test_the_net_time_is_less_the_overhead_of_the_same_round(interleaved: ModuleType) -> None:
    timings = {"loop": [1.0, 4.0], "subject": [3.0, 9.0]}
    assert interleaved.net_of(timings, "loop") == {"subject": [2.0, 5.0]}


def test_a_net_time_lost_in_noise_counts_as_less_than_any_other(interleaved: ModuleType) -> None:
    timings = {"reference": [1.0, 1.0, 1.0], "subject": [-0.5, 3.0, 2.0]}
    assert interleaved.ratio(timings, "subject", "reference").estimate == pytest.approx(2)


def test_each_round_visits_each_subject_once_in_surroundings_of_its_own(interleaved: ModuleType) -> None:
    inside: list[str] = []
    seen: list[tuple[str, ...]] = []

    def subject(name: str) -> object:
        @contextlib.contextmanager
        def surroundings() -> Iterator[None]:
            inside.append(name)
            yield
            inside.remove(name)

        def loop(_count: int) -> None:
            seen.append((name, *inside))

        return interleaved.Subject(name=name, loop=loop, surroundings=surroundings)

    subjects = [subject(name) for name in "abc"]
    shuffler = random.Random(0)
    timings = interleaved.measure(subjects, rounds=4, sample_ns=1, shuffler=shuffler)
    assert {name: len(values) for name, values in timings.items()} == {"a": 4, "b": 4, "c": 4}
    assert set(seen) == {("a", "a"), ("b", "b"), ("c", "c")}
