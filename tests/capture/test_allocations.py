"""Counting with the recording: from the first start to the last stop, and what the record then has."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrometer._native import KIND
from pyrometer.capture import allocations
from pyrometer.capture.losses import failures
from pyrometer.record.allocations import ProcessAllocations

pytestmark = [
    pytest.mark.usefixtures("clean_recorder"),
    pytest.mark.skipif(
        KIND != "native" or sys.platform != "linux",
        reason="nothing is counted without the core, or elsewhere",
    ),
]


@pytest.fixture(autouse=True)
def _as_by_default() -> Iterator[None]:
    yield
    allocations.configure()


def recorded() -> ProcessAllocations:
    record = allocations.record()
    assert record is not None
    return record


def test_what_is_allocated_while_recording_is_in_the_record() -> None:
    allocations.start()
    allocations.reset()
    kept = bytearray(3_000_000)
    bytearray(2_000_000)
    allocations.stop()
    bytearray(50_000_000)
    record = recorded()
    assert 5_000_000 <= record.heap_bytes < 6_000_000
    assert 2_000_000 <= record.freed_bytes < 3_000_000
    assert 3_000_000 <= record.live_bytes < 4_000_000
    assert 5_000_000 <= record.peak_bytes < 6_000_000
    assert (record.tensor_bytes, record.python_bytes) == (None, None)
    assert len(kept) == 3_000_000


def test_starts_nest() -> None:
    allocations.start()
    allocations.start()
    allocations.reset()
    allocations.stop()
    bytearray(2_000_000)
    assert recorded().heap_bytes >= 2_000_000
    allocations.stop()
    allocations.stop()


def test_lines_are_noted_and_our_own_files_told_from_the_program_s() -> None:
    allocations.start()
    allocations.reset()
    bytearray(2_000_000)
    allocations.stop()
    sites = recorded().sites
    assert sites is not None
    (large,) = [site for site in sites.sites if site.large_bytes == 2_000_001]
    function = sites.functions[sites.nodes[large.stack].function]
    assert (function.file, function.name) == (
        __file__,
        "test_lines_are_noted_and_our_own_files_told_from_the_program_s",
    )
    assert not any(function.file.startswith(allocations._OURS) for function in sites.functions)


def test_what_the_import_system_allocates_is_the_importing_line_s(tmp_path: Path) -> None:
    (tmp_path / "imported.py").write_text("kept = bytearray(4_000_000)\ntext = '" + "x" * 3_000_000 + "'\n")
    program = """
from pyrometer.capture import allocations
allocations.start()
import imported
allocations.stop()
sites = allocations.record().sites
files = {sites.functions[node.function].file for node in sites.nodes if node.parent is not None}
print(sum(site.large_bytes for site in sites.sites) > 7_000_000, [file for file in files if "frozen" in file])
"""
    command = [sys.executable, "-c", program]
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert answer.stdout == "True []\n"


def test_when_they_are_not_wanted_nothing_is_counted_and_nothing_is_lost() -> None:
    allocations.configure(counted=False)
    failures.clear()
    program = """
from pyrometer.capture import allocations
from pyrometer.capture.losses import failures
allocations.configure(counted=False)
allocations.start()
bytearray(1_000_000)
allocations.stop()
print(allocations.record(), allocations.counts_tensors(), dict(failures))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "None False {}\n"


def test_small_objects_are_counted_if_asked_for() -> None:
    program = """
from pyrometer.capture import allocations
allocations.configure(python_objects=True)
allocations.start()
kept = [(index,) for index in range(10_000)]
allocations.stop()
record = allocations.record()
print(record.python_allocations >= 9_000, record.python_bytes >= 400_000)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "True True\n"


def test_small_objects_that_come_from_malloc_are_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    allocations.configure(python_objects=True)
    failures.clear()
    allocations.start()
    allocations.stop()
    ((collector, reason),) = failures
    assert collector == "memory"
    assert "PYTHONMALLOC=malloc" in reason
    assert recorded().python_bytes is None
