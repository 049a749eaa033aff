"""Functions that are measured by themselves: what they are, what each process told, every value kept."""

from typing import Annotated, Literal

import msgspec

from pyrometer.record.values import Count, Nanoseconds, SignedCount, Value

BENCHMARKS_FORMAT: Literal["pyrometer-benchmarks"] = "pyrometer-benchmarks"
BENCHMARKS_VERSION: Literal[1] = 1

PEAK_RESOLUTION_BYTES = 65_536
"""A thread's blocks are added up to so much before its process looks for a peak: docs/memory.md."""


class Benchmark(Value, frozen=True, kw_only=True):
    """A marked function with one value for each of its parameters."""

    name: str
    """``bench_sort[size=10]``: the same for as long as function and values keep their names."""
    function: str
    parameters: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    """The name of each value, by parameter."""
    source: str
    """The SHA-256 of the function's text, and of those that make its arguments and check its result."""
    file: str = ""


class Listing(Value, frozen=True, kw_only=True):
    """What is in a file of benchmarks, or why that cannot be told."""

    benchmarks: tuple[Benchmark, ...] = ()
    problem: str | None = None


class CallMemory(Value, frozen=True, kw_only=True):
    """What one call allocates, over all threads; Python objects up to 512 bytes are not in it."""

    allocations: Count
    allocated_bytes: Count
    peak_bytes: Count
    """The most that was held at once, over what there was before the call; to 64 KiB a thread."""


class BenchmarkNote(Value, frozen=True, kw_only=True):
    """What a process that runs a benchmark tells of it, with each turn."""

    source: str
    calls: Annotated[int, msgspec.Meta(ge=1)]
    """Of the function, in a step."""
    checksum: str | None = None
    """Of what the first call returned."""
    why_unchecked: str | None = None
    """Why there is none."""
    inputs: str
    """A checksum of parameters and arguments, as far as they have one."""
    why_inputs_unchecked: str | None = None
    """Why an argument has none."""
    changes_arguments: bool | None = None
    """Whether the first call left them other than they were; None where that cannot be told."""
    memory: CallMemory | None = None
    why_uncounted: str | None = None
    """Why memory was to be counted and was not."""


class CallTurn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One turn of a process."""

    duration_ns: Nanoseconds
    calls: Annotated[int, msgspec.Meta(ge=1)]


class BenchmarkProcess(Value, frozen=True, kw_only=True):
    """What one process did in its turns."""

    hash_seed: Count
    turns: tuple[CallTurn, ...]
    warmup: tuple[CallTurn, ...]
    is_warm: bool | None
    """Whether the last two windows of five turns of the warm-up agreed; None: too few to tell."""
    resident_peak_bytes: SignedCount | None = None
    """The most that the process had resident, with all that it imported."""
    note: BenchmarkNote


class MeasuredBenchmark(Value, frozen=True, kw_only=True):
    """One benchmark in all its processes."""

    benchmark: Benchmark
    memory: CallMemory | None = None
    why_uncounted: str | None = None
    processes: tuple[BenchmarkProcess, ...] = ()
    failure: str | None = None
    """The last that a process said before it failed; what was measured before it is kept."""


class BenchmarkResults(Value, frozen=True, kw_only=True, omit_defaults=False):
    """All that was measured in one go."""

    format: Literal["pyrometer-benchmarks"] = BENCHMARKS_FORMAT
    version: Literal[1] = BENCHMARKS_VERSION
    pyrometer_version: str
    started_at: str
    python_version: str
    cpu_model: str | None
    threads: Count | None
    """What libraries were told to use; None: what they chose."""
    wanted_processes: Count
    benchmarks: tuple[MeasuredBenchmark, ...]
