"""The Run: everything one profiled program left behind.

Producers write it, everything later reads only this. Times are integers in
nanoseconds, sizes integers in bytes. What was not measured is ``None``, never 0.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from pyrometer.record.allocations import ProcessAllocations
from pyrometer.record.counters import CounterRecord
from pyrometer.record.garbage import GarbageCollections
from pyrometer.record.limits import Limits
from pyrometer.record.samples import StackSamples
from pyrometer.record.torch_run import TorchRun
from pyrometer.record.values import MAX_STRANDS, Count, Nanoseconds, ScopeNode, Strand, Value

FORMAT_NAME: Literal["pyrometer-run"] = "pyrometer-run"
FORMAT_VERSION: Literal[1] = 1

MAX_MEMORY_SAMPLES = 1_024


class Loss(Value, frozen=True, kw_only=True):
    """Something that could not be seen or kept, and how often."""

    collector: str
    reason: str
    count: Count


class OwnCost(Value, frozen=True, kw_only=True):
    """What the profiler itself cost this run."""

    scope_ns: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    """Measured on this machine in this process: one enabled scope, entered and left."""
    scope_entries: Count
    startup_ns: Nanoseconds | None = None
    """From the start of the command to the first line of the program, less a plain start."""
    checkpoint_ns: Nanoseconds = 0
    """Spent writing checkpoints, on a thread of its own."""
    hook_ns: Nanoseconds | None = None
    """Spent in our hooks around the program's PyTorch calls, timed there; None without PyTorch."""
    window_ns: Nanoseconds = 0
    """Spent opening and closing windows of operators while the program waited; in no other figure."""

    @property
    def scopes_ns(self) -> int:
        """The scopes' cost over the whole run."""
        return round(self.scope_ns * self.scope_entries)


class Memory(Value, frozen=True, kw_only=True):
    """The process's resident memory."""

    peak_bytes: Count
    """The most since the process began, by the system's own count."""
    series: Annotated[tuple[tuple[Nanoseconds, Count], ...], msgspec.Meta(max_length=MAX_MEMORY_SAMPLES)] = ()
    """(time since recording began, bytes) pairs in order of time."""


class GitState(Value, frozen=True, kw_only=True):
    """The commit a program's source stood at."""

    commit: str
    branch: str | None = None
    dirty: bool


class Program(Value, frozen=True, kw_only=True):
    """What was run."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    git: GitState | None = None
    source_sha256: str | None = None
    """Of the script's file; None where the program is no file that could be read."""
    rank: Count | None = None
    """Which of the processes that torchrun started together; None for a process by itself."""


class Machine(Value, frozen=True, kw_only=True):
    """The computer it ran on."""

    system: str
    architecture: str
    cpu_model: str | None = None
    cpu_flags: tuple[str, ...] | None = None
    """What the first processor can do, as the system names it, in order: ``avx2``."""
    physical_cores: Count | None = None
    logical_cores: Count | None = None
    usable_cores: Count | None = None
    """Cores this process may use: the affinity mask, and a container's quota."""
    memory_bytes: Count | None = None


class Software(Value, frozen=True, kw_only=True):
    """The interpreter and what it had loaded."""

    python_version: str
    python_implementation: str
    garbage_collector: str
    """``on (700, 10, 10)`` with its thresholds, or ``off``."""
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    """Version of each imported package that states one."""
    blas: str | None = None
    """What multiplies matrices, as torch tells it, or numpy where there is no torch."""
    torch_threads: Count | None = None
    """Those torch may use inside an operator, whether or not its work was watched."""
    thread_variables: dict[str, str] | None = None
    """The environment variables that set numbers of threads, as far as they were set; None: not recorded."""


class Outcome(Value, frozen=True, kw_only=True):
    """How the program ended.

    ``running`` marks a checkpoint: the program was still at work, or was killed.
    """

    status: str
    """``running``, ``finished``, ``exception`` or ``signal``."""
    detail: str | None = None
    """The exception's or the signal's name."""


class Run(Value, frozen=True, kw_only=True, omit_defaults=False):
    """One profiled run of one program."""

    format: Literal["pyrometer-run"] = FORMAT_NAME
    version: Literal[1] = FORMAT_VERSION
    pyrometer_version: str
    recorder: str
    """``native`` or ``python``: which of the two recorders measured."""
    started_at: str
    """ISO 8601 with the offset to UTC."""
    profiled_ns: Nanoseconds
    """Wall time during which the recorder was on, less what windows of operators took to open and close."""
    program: Program
    machine: Machine
    software: Software
    outcome: Outcome
    strands: Annotated[tuple[Strand, ...], msgspec.Meta(max_length=MAX_STRANDS)] = ()
    memory: Memory | None = None
    allocations: ProcessAllocations | None = None
    """None where they were not counted."""
    torch: TorchRun | None = None
    samples: StackSamples | None = None
    limits: Limits | None = None
    """What the machine reaches at best, if that was known when the run began."""
    counters: CounterRecord | None = None
    garbage: GarbageCollections | None = None
    """None where they were not watched."""
    losses: tuple[Loss, ...] = ()
    cost: OwnCost

    def scopes(self) -> Iterator[ScopeNode]:
        """Every node of every strand."""
        for strand in self.strands:
            yield from strand.nodes
