"""The GPU watched without one: a stand-in for ``torch.cuda`` whose device works when the test says so."""

import threading
from collections.abc import Iterator

import pytest

from pyrometer.capture import losses
from pyrometer.capture.torch_gpu import MAX_EVENTS, MEMORY_INTERVAL_NS, UTILISATION_INTERVAL_NS, GpuWatch
from pyrometer.record.torch_run import Gpu


@pytest.fixture(autouse=True)
def fresh_losses() -> Iterator[None]:
    yield
    losses.failures.clear()


class Event:
    """Is passed by the device once the device has come that far."""

    def __init__(self, cuda: "Cuda") -> None:
        self.cuda = cuda
        self.at_ms = -1.0

    def record(self) -> None:
        assert not self.cuda.capturing, "an event in a graph being captured"
        self.at_ms = self.cuda.queued_ms

    def query(self) -> bool:
        return self.at_ms <= self.cuda.done_ms

    def elapsed_time(self, later: "Event") -> float:
        assert self.query(), "asked before the device was there"
        assert later.query(), "asked before the device was there"
        return later.at_ms - self.at_ms


class Cuda:
    """What ``GpuWatch`` may use of ``torch.cuda``; anything else, such as ``synchronize``, is an error."""

    def __init__(self) -> None:
        self.initialized = True
        self.capturing = False
        self.queued_ms = 0.0
        self.done_ms = 0.0
        self.events = 0
        self.current = 1_000
        self.peak = 1_000
        self.loads = [50]

    def is_initialized(self) -> bool:
        return self.initialized

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def current_device(self) -> int:
        assert self.initialized
        return 0

    def get_device_name(self, device: int) -> str:
        return f"GPU {device}"

    def Event(self, *, enable_timing: bool) -> Event:  # noqa: N802 - torch's name
        assert enable_timing
        self.events += 1
        return Event(self)

    def memory_stats(self, device: int) -> dict[str, int]:
        assert device == 0
        return {
            "allocated_bytes.all.current": self.current,
            "allocated_bytes.all.peak": self.peak,
            "reserved_bytes.all.current": 9_000,
        }

    def utilization(self, device: int) -> int:
        assert device == 0
        return self.loads.pop(0)

    def work(self, ms: float, *, allocates: int = 0, frees: int = 0) -> None:
        """The program hands work to the device, which does none of it yet."""
        self.queued_ms += ms
        self.current += allocates
        self.peak = max(self.peak, self.current)
        self.current -= frees

    def catch_up(self) -> None:
        self.done_ms = self.queued_ms


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def recorded(watch: GpuWatch) -> Gpu:
    gpu = watch.record()
    assert gpu is not None
    return gpu


def test_without_a_gpu_in_use_there_is_nothing() -> None:
    cuda = Cuda()
    cuda.initialized = False
    watch = GpuWatch(cuda)
    watch.phase_began("forward")
    watch.phase_ended("forward")
    assert not watch.available()
    assert watch.record() is None
    assert cuda.events == 0


def test_a_phase_takes_as_long_as_the_device_worked_for_it() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    for _ in range(3):
        watch.phase_began("forward")
        cuda.work(ms=2.0)
        watch.phase_ended("forward")
        cuda.work(ms=100.0)
        watch.phase_began("backward")
        cuda.work(ms=4.5)
        watch.phase_ended("backward")
    cuda.catch_up()
    gpu = recorded(watch)
    assert gpu.name == "GPU 0"
    assert gpu.phase_device_ns == {"forward": 6_000_000, "backward": 13_500_000}


def test_what_the_device_has_not_done_is_not_waited_for() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    watch.phase_began("forward")
    cuda.work(ms=2.0)
    watch.phase_ended("forward")
    assert recorded(watch).phase_device_ns == {}
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {"forward": 2_000_000}


def test_an_inner_phase_takes_its_time_from_the_outer() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    watch.phase_began("optimizer")
    cuda.work(ms=1.0)
    watch.phase_began("forward")
    cuda.work(ms=5.0)
    watch.phase_ended("forward")
    cuda.work(ms=2.0)
    watch.phase_ended("optimizer")
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {"optimizer": 3_000_000, "forward": 5_000_000}


def test_events_are_used_again_once_the_device_has_passed_them() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    for _ in range(10_000):
        watch.phase_began("forward")
        cuda.work(ms=1.0)
        watch.phase_began("loss")
        cuda.work(ms=1.0)
        watch.phase_ended("loss")
        watch.phase_ended("forward")
        cuda.catch_up()
    gpu = recorded(watch)
    assert gpu.phase_device_ns == {"forward": 10_000_000_000, "loss": 10_000_000_000}
    assert cuda.events <= 8
    assert not losses.failures


def test_a_device_far_behind_costs_a_bounded_number_of_events_and_the_rest_is_a_loss() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    for _ in range(2 * MAX_EVENTS):
        watch.phase_began("forward")
        cuda.work(ms=1.0)
        watch.phase_ended("forward")
    assert cuda.events == MAX_EVENTS
    assert losses.failures["gpu", "device time of a phase was not taken"] == 2 * MAX_EVENTS - MAX_EVENTS // 2
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {"forward": MAX_EVENTS // 2 * 1_000_000}


def test_a_device_that_was_far_behind_is_timed_again_when_it_has_caught_up() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    for phases in (2, MAX_EVENTS, MAX_EVENTS + 1, 3 * MAX_EVENTS):
        for _ in range(phases):
            watch.phase_began("forward")
            watch.phase_began("loss")
            watch.phase_ended("loss")
            watch.phase_ended("forward")
        cuda.catch_up()
    losses.failures.clear()
    for _ in range(MAX_EVENTS // 4):
        watch.phase_began("backward")
        cuda.work(ms=1.0)
        watch.phase_began("loss")
        watch.phase_ended("loss")
        watch.phase_ended("backward")
    cuda.catch_up()
    assert recorded(watch).phase_device_ns["backward"] == MAX_EVENTS // 4 * 1_000_000
    assert not losses.failures


def test_a_phase_whose_end_was_not_told_ends_with_the_one_around_it() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    watch.phase_began("forward")
    watch.phase_began("loss")
    cuda.work(ms=1.0)
    watch.phase_ended("forward")
    watch.phase_began("backward")
    cuda.work(ms=2.0)
    watch.phase_ended("backward")
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {"forward": 0, "loss": 1_000_000, "backward": 2_000_000}


def test_a_graph_being_captured_is_left_alone() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    cuda.capturing = True
    watch.phase_began("forward")
    cuda.work(ms=1.0)
    watch.phase_ended("forward")
    cuda.capturing = False
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {}
    assert cuda.events == 0


def test_memory_is_that_of_torchs_allocator() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    cuda.work(ms=1.0, allocates=4_000, frees=3_500)
    gpu = recorded(watch)
    assert (gpu.current_bytes, gpu.peak_bytes, gpu.reserved_bytes) == (1_500, 5_000, 9_000)


def test_a_peak_the_program_has_reset_is_remembered() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    cuda.work(ms=1.0, allocates=4_000, frees=4_000)
    recorded(watch)
    cuda.peak = cuda.current
    assert recorded(watch).peak_bytes == 5_000


def test_a_phases_peak_is_the_highest_it_drove_memory_to() -> None:
    cuda, clock = Cuda(), Clock()
    watch = GpuWatch(cuda, clock_ns=clock)
    for name, allocates, frees in (("forward", 5_000, 1_000), ("backward", 2_000, 6_000)):
        watch.phase_began(name)
        cuda.work(ms=1.0, allocates=allocates, frees=frees)
        watch.phase_ended(name)
    # 1,000 + 5,000 in forward; backward begins with 5,000 and goes up to 7,000.
    assert recorded(watch).phase_peak_bytes == {"forward": 6_000, "backward": 7_000}


def test_a_phase_below_the_peak_of_all_shows_what_stood_at_its_ends() -> None:
    cuda, clock = Cuda(), Clock()
    watch = GpuWatch(cuda, clock_ns=clock)
    cuda.work(ms=1.0, allocates=90_000, frees=90_000)
    watch.phase_began("forward")
    cuda.work(ms=1.0, allocates=5_000, frees=3_000)
    watch.phase_ended("forward")
    assert recorded(watch).phase_peak_bytes == {"forward": 3_000}


def test_a_phases_memory_is_looked_at_now_and_then() -> None:
    cuda, clock = Cuda(), Clock()
    watch = GpuWatch(cuda, clock_ns=clock)
    for passed_ns in (0, MEMORY_INTERVAL_NS - 1, 1):
        clock.now_ns += passed_ns
        watch.phase_began("forward")
        cuda.work(ms=1.0, allocates=1_000)
        watch.phase_ended("forward")
        cuda.catch_up()
    assert recorded(watch).phase_peak_bytes == {"forward": 4_000}


def test_utilisation_is_the_average_of_one_look_a_second() -> None:
    cuda, clock = Cuda(), Clock()
    cuda.loads = [20, 40, 90]
    watch = GpuWatch(cuda, clock_ns=clock)
    for index in range(21):
        clock.now_ns = index * UTILISATION_INTERVAL_NS // 10
        watch.phase_began("forward")
        watch.phase_ended("forward")
    assert recorded(watch).utilisation_percent == 50.0
    assert cuda.loads == []


def test_without_nvml_utilisation_is_a_loss_and_the_rest_goes_on() -> None:
    cuda = Cuda()
    cuda.loads = []
    watch = GpuWatch(cuda)
    watch.phase_began("forward")
    cuda.work(ms=1.0)
    watch.phase_ended("forward")
    cuda.catch_up()
    gpu = recorded(watch)
    assert gpu.utilisation_percent is None
    assert gpu.phase_device_ns == {"forward": 1_000_000}
    ((collector, reason),) = losses.failures
    assert (collector, reason.partition(":")[0]) == ("gpu", "utilisation was not read")


def test_phases_of_other_threads_do_not_mix_in() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    watch.phase_began("forward")

    def other() -> None:
        watch.phase_began("data")
        watch.phase_ended("data")

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    cuda.work(ms=1.0)
    watch.phase_ended("forward")
    cuda.catch_up()
    assert recorded(watch).phase_device_ns == {"forward": 1_000_000}


def test_an_error_of_the_device_ends_the_watch_and_not_the_program() -> None:
    cuda = Cuda()
    watch = GpuWatch(cuda)
    cuda.memory_stats = None  # type: ignore[assignment, method-assign]
    watch.phase_began("forward")
    watch.phase_ended("forward")
    assert not watch.available()
    assert watch.record() is None
    ((collector, reason),) = losses.failures
    assert collector == "gpu"
    assert "no longer watched" in reason


@pytest.mark.torch
def test_a_program_on_the_cpu_has_no_gpu_and_gets_none_initialised() -> None:
    import torch

    watch = GpuWatch(torch.cuda)
    watch.phase_began("forward")
    watch.phase_ended("forward")
    assert watch.record() is None
    assert not torch.cuda.is_initialized()
