import pytest

from pyrometer.analysis.memory import build_memory
from pyrometer.analysis.results import build_results
from pyrometer.record.run import Memory
from tests.torch_runs import MB, MS, gan_run, growing_memory, training_run


def test_growth_is_told_after_the_warm_up() -> None:
    memory = build_results(training_run()).memory
    assert memory is not None
    assert (memory.peak_bytes, memory.first_bytes, memory.last_bytes) == (520 * MB, 400 * MB, 509 * MB)
    # The jump at the start lies in the 63 ms of warm-up; from then on 1 MB every 100 ms.
    assert memory.growth_samples == 10
    assert memory.growth_bytes_per_second == pytest.approx(10 * MB)
    assert memory.growth_bytes_per_step == pytest.approx(MB / 10)


def test_growth_is_not_told_from_few_samples() -> None:
    memory = build_memory(growing_memory(), steady_from_ns=400 * MS, step_ns=10 * MS)
    assert (memory.growth_samples, memory.growth_bytes_per_second, memory.growth_bytes_per_step) == (
        7,
        None,
        None,
    )


def test_eight_samples_are_enough() -> None:
    memory = build_memory(growing_memory(), steady_from_ns=300 * MS)
    assert memory.growth_bytes_per_second == pytest.approx(10 * MB)
    assert memory.growth_bytes_per_step is None


def test_memory_that_shrinks_has_negative_growth() -> None:
    series = tuple((index * 100 * MS, (500 - index) * MB) for index in range(10))
    assert build_memory(Memory(peak_bytes=500 * MB, series=series)).growth_bytes_per_second == pytest.approx(
        -10 * MB
    )


def test_without_samples_only_the_peak_is_known() -> None:
    memory = build_memory(Memory(peak_bytes=5))
    assert (memory.peak_bytes, memory.first_bytes, memory.last_bytes) == (5, None, None)


def test_a_run_without_memory_has_none() -> None:
    assert build_results(gan_run()).memory is None
