"""What measured values of a benchmark come to."""

from collections.abc import Sequence

import pytest

from pyrometer.analysis.bench_figures import benchmark_figures
from pyrometer.record.benchmarks import (
    Benchmark,
    BenchmarkNote,
    BenchmarkProcess,
    CallMemory,
    CallTurn,
    MeasuredBenchmark,
)


def process(
    *calls_ns: int, checksum: str | None = "aa", hash_seed: int = 1, is_warm: bool | None = True
) -> BenchmarkProcess:
    """One whose turns have ten calls of so many nanoseconds each."""
    turns = tuple(CallTurn(10 * call_ns, 10) for call_ns in calls_ns)
    why = None if checksum else "it returns None"
    note = BenchmarkNote(source="s", calls=10, inputs="i", checksum=checksum, why_unchecked=why)
    return BenchmarkProcess(hash_seed=hash_seed, turns=turns, warmup=(), is_warm=is_warm, note=note)


def measured(processes: Sequence[BenchmarkProcess], *, failure: str | None = None) -> MeasuredBenchmark:
    benchmark = Benchmark(name="bench_a", function="bench_a", source="s")
    memory = CallMemory(allocations=2, allocated_bytes=3, peak_bytes=1)
    return MeasuredBenchmark(benchmark=benchmark, processes=tuple(processes), memory=memory, failure=failure)


def test_a_calls_time_is_the_median_over_the_turns_of_all_processes() -> None:
    figures = benchmark_figures(measured([process(10, 11, 12), process(20, 21, 22), process(15, 100, 16)]))
    assert figures.call_ns == 16
    assert (figures.processes, figures.calls) == (3, 90)


def test_the_interval_is_as_wide_as_processes_differ() -> None:
    figures = benchmark_figures(measured([process(*[ns] * 12) for ns in range(100, 110)]))
    assert figures.low_ns is not None
    assert figures.high_ns is not None
    assert figures.call_ns == 104
    assert 99 <= figures.low_ns < 104 < figures.high_ns <= 110


def test_an_interval_of_two_processes_is_wide_and_never_below_nothing() -> None:
    figures = benchmark_figures(measured([process(*[60] * 12), process(*[120] * 12)]))
    assert figures.low_ns is not None
    assert figures.high_ns is not None
    assert 0 < figures.low_ns <= 60
    assert figures.high_ns > 120


def test_of_a_single_process_no_interval_is_told() -> None:
    figures = benchmark_figures(measured([process(10, 11, 12)]))
    assert (figures.call_ns, figures.low_ns, figures.high_ns) == (11, None, None)


def test_a_warm_up_counts_only_where_its_end_was_seen() -> None:
    processes = [process(1), process(1, is_warm=False), process(1, is_warm=None)]
    assert benchmark_figures(measured(processes)).warm_processes == 1


@pytest.mark.parametrize(
    ("told", "agreement", "checksum"),
    [
        ([(1, "aa"), (1, "aa"), (2, "aa")], "same", "aa"),
        ([(1, "aa"), (1, "aa"), (2, "bb")], "by hash seed", None),
        ([(1, "aa"), (1, "bb"), (2, "aa")], "differs", None),
        ([(1, "aa"), (1, None)], "differs", None),
        ([(1, None), (1, None)], "unchecked", None),
    ],
)
def test_results_differ_for_no_reason_or_by_the_hash_seed(
    told: list[tuple[int, str | None]], agreement: str, checksum: str | None
) -> None:
    processes = [process(1, hash_seed=seed, checksum=returned) for seed, returned in told]
    figures = benchmark_figures(measured(processes))
    assert (figures.agreement, figures.checksum) == (agreement, checksum)


def test_a_failed_benchmark_has_no_figures_but_those_it_came_to() -> None:
    nothing = benchmark_figures(measured([], failure="no luck"))
    assert (nothing.failed, nothing.call_ns, nothing.agreement) == (True, None, None)
    some = benchmark_figures(measured([process(10)], failure="no luck"))
    assert (some.failed, some.call_ns) == (True, 10)
