"""The core's counters on the kernel that is here, whatever it allows; in tests/capture it allows all."""

import errno
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perf events are Linux's")


@pytest.fixture
def core() -> ModuleType:
    core: ModuleType = pytest.importorskip("pyrometer._native.core")
    return core


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_each_event_has_a_count_or_an_error_and_none_is_left_out(core: ModuleType) -> None:
    counters = core.PerfCounters(inherit=True)
    assert core.known_work() == 2_000_000
    seen = dict(counters.read())
    assert len(seen) == 10
    assert all(isinstance(found, tuple) or found in errno.errorcode for found in seen.values())


def test_only_the_first_events_are_opened_when_told_so(core: ModuleType) -> None:
    assert [name for name, _ in core.PerfCounters(2).read()] == ["instructions", "cycles"]
    assert core.PerfCounters(0).read() == []


@pytest.mark.parametrize("events", [-1, 11])
def test_there_are_no_other_events(core: ModuleType, events: int) -> None:
    with pytest.raises(ValueError, match="there are 10 events"):
        core.PerfCounters(events)


def test_closed_counters_give_no_counts_and_leave_no_file_open(core: ModuleType) -> None:
    before = open_files()
    counters = core.PerfCounters()
    counters.close()
    counters.close()
    assert open_files() == before
    assert all(isinstance(found, int) for _, found in counters.read())
