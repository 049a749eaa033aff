"""Measuring a machine's limits: what is measured and how it is put together, never how fast it is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrometer.errors import UnsupportedPlatformError
from pyrometer.machine import limits as measuring
from pyrometer.machine.caches import data_caches
from pyrometer.machine.crew import Crew, Job, Plan
from pyrometer.machine.gemm import GemmProcess, NoProductsError
from pyrometer.machine.limit_figures import bandwidths, flop_rates, latencies, ns_each, per_second, strided
from pyrometer.machine.limit_kernels import MEMORY, SLICES, STRIDES, Sizes, Turn, choose_sizes
from pyrometer.record.limits import ACCESSES, Cache, Limits
from pyrometer.record.limits_validation import limits_problems

MIB = 1 << 20


# The caches.


def write_cache(root: Path, core: int, index: int, **facts: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in facts.items():
        (folder / name).write_text(f"{text}\n")


def test_the_data_caches_are_read_level_by_level(tmp_path: Path) -> None:
    for core in range(4):
        write_cache(tmp_path, core, 0, type="Data", level="1", size="32K", shared_cpu_list=str(core))
        write_cache(tmp_path, core, 1, type="Instruction", level="1", size="64K", shared_cpu_list=str(core))
        pair = "0-1" if core < 2 else "2-3"
        write_cache(tmp_path, core, 2, type="Unified", level="3", size="16M", shared_cpu_list=pair)
    assert data_caches([0, 1, 2, 3], tmp_path) == (
        Cache(level=1, size_bytes=32 << 10, shared_by=1, count=4),
        Cache(level=3, size_bytes=16 * MIB, shared_by=2, count=2),
    )


@pytest.mark.parametrize(
    ("field", "value"), [("size", "many"), ("size", ""), ("size", "0K"), ("level", "x"), ("level", "12")]
)
def test_a_cache_that_cannot_be_understood_is_left_out(tmp_path: Path, field: str, value: str) -> None:
    facts = {"type": "Data", "level": "1", "size": "32K", "shared_cpu_list": "0"} | {field: value}
    write_cache(tmp_path, 0, 0, **facts)
    assert data_caches([0], tmp_path) == ()


def test_a_machine_that_does_not_tell_its_caches_has_none(tmp_path: Path) -> None:
    assert data_caches([0, 1], tmp_path) == ()


# How much memory is used.

LAST = Cache(level=3, size_bytes=32 * MIB, shared_by=2)
SMALL = (Cache(level=1, size_bytes=32 << 10), Cache(level=2, size_bytes=512 << 10))


def test_arrays_are_four_times_the_last_cache() -> None:
    sizes = choose_sizes([*SMALL, LAST], 2, None)
    assert (sizes.one_bytes, sizes.each_bytes) == (128 * MIB, 64 * MIB)
    assert sizes.ring_bytes == {"L1": 4 << 10, "L2": 128 << 10, "L3": 2 * MIB, MEMORY: 128 * MIB}


def test_all_last_caches_count_for_the_arrays_of_all_threads() -> None:
    sizes = choose_sizes([Cache(level=3, size_bytes=32 * MIB, shared_by=8, count=4)], 32, None)
    assert sizes.one_bytes == 128 * MIB
    assert 32 * sizes.each_bytes == 4 * 128 * MIB


def test_a_quarter_of_the_memory_is_the_most_that_is_used() -> None:
    for threads in (1, 2, 7):
        sizes = choose_sizes([*SMALL, LAST], threads, 1_024 * MIB)
        used = 4 * (sizes.one_bytes + (threads - 1) * sizes.each_bytes)
        assert used <= 1_024 * MIB // 4
        assert sizes.one_bytes % 512 == sizes.each_bytes % 512 == 0


def test_the_slices_of_an_array_follow_each_other_and_stay_inside() -> None:
    sizes = Sizes(one_bytes=80 * 512, each_bytes=40 * 512, ring_bytes={})
    parts = [sizes.part(Turn(threads=1, amount=1, slice_number=number)) for number in range(SLICES + 1)]
    assert parts[:SLICES] == [(number * 5_120, 5_120) for number in range(SLICES)]
    assert parts[SLICES] == parts[0]
    assert sizes.part(Turn(threads=2, amount=1, slice_number=SLICES - 1)) == (7 * 2_560, 2_560)


# From turns to figures.


def test_the_rate_of_a_turn_is_all_work_from_the_first_beginning_to_the_last_end() -> None:
    assert per_second([(1_000, 2_000, 500.0), (1_500, 3_000, 700.0)]) == 1_200 / 2_000e-9


def test_the_time_of_a_load_is_averaged_over_threads() -> None:
    assert ns_each([(0, 1_000, 100), (500, 3_500, 100)]) == 20.0


def test_the_best_counts_and_the_first_turn_does_not() -> None:
    turns = [[(0, 1_000, 100_000.0)], [(0, 1_000, 10.0)], [(0, 1_000, 30.0)], [(0, 1_000, 20.0)]]
    [rate] = flop_rates({("fma", "f32", 1): turns})
    assert (rate.best_flops_per_s, rate.median_flops_per_s, rate.repetitions) == (30e6, 20e6, 3)
    [bandwidth] = bandwidths({("read", 0, 1): turns})
    assert (bandwidth.best_bytes_per_s, bandwidth.median_bytes_per_s) == (30e6, 20e6)
    [access] = strided({("stride", 8, 1): turns})
    assert (access.stride, access.best_ns_per_element) == (8, 1_000 / 30)
    sizes = Sizes(one_bytes=512, each_bytes=512, ring_bytes={"L1": 4_096})
    [latency] = latencies({("latency", "L1", 1): turns}, sizes)
    assert (latency.best_ns, latency.median_ns, latency.working_set_bytes) == (1_000 / 30, 50.0, 4_096)


def test_a_best_far_from_its_median_is_contended() -> None:
    turns = [[(0, 1_000, 1.0)], [(0, 1_000, 131.0)], [(0, 1_000, 100.0)], [(0, 1_000, 100.0)]]
    [rate] = flop_rates({("fma", "f32", 1): turns})
    assert rate.contended
    turns[1] = [(0, 1_000, 129.0)]
    [rate] = flop_rates({("fma", "f32", 1): turns})
    assert not rate.contended


# The crew.


def test_a_job_is_done_by_as_many_threads_as_it_asks_for() -> None:
    seen: list[list[int]] = []

    def plan() -> Plan[int, int]:
        for threads in (1, 3, 2):
            done = yield Job(work=lambda place: place * 10, threads=threads)
            seen.append(done)

    Crew(places=[1, 2, 3], plan=plan()).work()
    assert seen == [[10], [10, 20, 30], [10, 20]]


def test_what_fails_on_a_thread_is_raised_where_the_work_was_asked_for() -> None:
    def fail(place: int) -> int:
        if place == 2:
            raise MemoryError("no room")
        return place

    def plan() -> Plan[int, int]:
        yield Job(work=fail, threads=3)

    with pytest.raises(MemoryError, match="no room"):
        Crew(places=[1, 2, 3], plan=plan()).work()


def test_what_fails_in_the_plan_is_raised_too() -> None:
    def plan() -> Plan[int, int]:
        yield Job(work=lambda place: place, threads=2)
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        Crew(places=[1, 2], plan=plan()).work()


# Products of matrices.


def test_without_an_interpreter_there_are_no_products() -> None:
    with GemmProcess(python="/nowhere/python", threads=1) as products:
        with pytest.raises(NoProductsError, match="could not be started"):
            products.wait_until_ready(5)
        with pytest.raises(NoProductsError, match="has ended"):
            products.multiply("f32", 1)


def test_a_process_that_ends_early_gives_no_products() -> None:
    with (
        GemmProcess(python="/bin/true", threads=1) as products,
        pytest.raises(NoProductsError, match="ended"),
    ):
        products.wait_until_ready(60)


@pytest.mark.torch
def test_the_operations_of_a_product_are_those_of_its_size() -> None:
    with GemmProcess(threads=1) as products:
        products.wait_until_ready(120)
        assert products.library is not None
        assert products.library.startswith("torch ")
        flops, duration_ns = products.multiply("f32", 1)
        size = round((flops / 2) ** (1 / 3))
        assert flops == 2 * size**3
        assert duration_ns > 0
        with pytest.raises(NoProductsError, match="f16"):
            products.multiply("f16", 1)


# All together.


class NoProducts(GemmProcess):
    """As on a machine without torch and numpy."""

    def wait_until_ready(self, timeout_s: float) -> None:  # noqa: ARG002 - the same for any time
        raise NoProductsError("neither torch nor numpy is installed")


@pytest.fixture(scope="module")
def measured() -> Iterator[Limits]:
    pytest.importorskip("pyrometer._native.kernels")
    with pytest.MonkeyPatch.context() as patch:
        # Tiny and short: what is measured is then wrong, but all of it is there.
        tiny = Sizes(one_bytes=MIB, each_bytes=MIB // 2, ring_bytes={"L1": 4_096, MEMORY: MIB})
        patch.setattr(measuring, "choose_sizes", lambda *_: tiny)
        patch.setattr(measuring, "GemmProcess", NoProducts)
        patch.setattr(measuring, "_LEAST_MEASURE_S", 0.0)
        patch.setattr(measuring, "_MEASURE_S", 0.0)
        patch.setattr(measuring, "_TURN_NS", 10_000)
        yield measuring.measure_limits(2)


def test_everything_is_measured_on_one_thread_and_on_all(measured: Limits) -> None:
    found = [(rate.kind, rate.precision, rate.threads) for rate in measured.flop_rates]
    assert found[:2] == [("fma", "f32", 1), ("fma", "f64", 1)]
    assert {("fma", "f64", 2), ("gemm", "f32", 1), ("gemm", "f64", 2)} <= set(found)
    kinds = [kind for kind in ACCESSES if kind not in {missing.figure for missing in measured.not_measured}]
    assert [(one.kind, one.threads) for one in measured.bandwidths] == [
        (kind, threads) for threads in (1, 2) for kind in kinds
    ]
    assert [(one.stride, one.threads) for one in measured.strided] == [
        (stride, threads) for threads in (1, 2) for stride in STRIDES
    ]
    assert [(one.level, one.threads) for one in measured.latencies] == [
        (level, threads) for threads in (1, 2) for level in ("L1", MEMORY)
    ]
    assert list(limits_problems(measured, "$")) == []


def test_what_was_not_measured_is_said_with_the_reason(measured: Limits) -> None:
    reasons = {missing.figure: missing.reason for missing in measured.not_measured}
    assert reasons["library gemm"] == "neither torch nor numpy is installed"
    assert measured.gemm_library is None
    assert not [rate for rate in measured.flop_rates if rate.kind == "library gemm"]


def test_without_compiled_kernels_limits_are_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrometer._native.kernels", None)
    assert measuring.why_not_available() == "no compiled kernels"
    with pytest.raises(UnsupportedPlatformError, match="not available: no compiled kernels"):
        measuring.measure_limits()
    monkeypatch.undo()
    monkeypatch.setenv("PYROMETER_NATIVE", "0")
    assert measuring.why_not_available() == "no compiled kernels, because PYROMETER_NATIVE=0"


def test_whoever_measures_imports_neither_torch_nor_numpy() -> None:
    script = "import sys, pyrometer.cli.limits; print({'torch', 'numpy'} & {*sys.modules})"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert finished.stdout == "set()\n"
