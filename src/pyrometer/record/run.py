"""The Run: everything one profiled program left behind.

Producers write it, everything later reads only this. Times are integers in
nanoseconds, sizes integers in bytes. What was not measured is ``None``, never 0.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

FORMAT_NAME: Literal["pyrometer-run"] = "pyrometer-run"
FORMAT_VERSION: Literal[1] = 1

# Twice what the recorder can make, so that its bounds can grow without a new format.
MAX_NODES = 40_000
MAX_STRANDS = 8_192
MAX_BUCKET = 2_047

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Bucket = Annotated[int, msgspec.Meta(ge=0, le=MAX_BUCKET)]
BucketCalls = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A frozen value of the record; each subclass is keyword-only."""


class ScopeNode(Value, frozen=True, kw_only=True):
    """One scope at one place in the call tree of one strand, all its calls together.

    ``total_ns`` is the time the scope was open and running. It counts every slice of
    a call that was suspended in between; the time suspended is ``suspended_ns``, apart.
    ``calls`` counts finished calls, and ``min_ns``, ``max_ns`` and ``buckets`` describe
    those; ``open_calls`` counts the ones still open when the record was taken, whose time
    so far is in ``total_ns``. The children's totals never exceed ``total_ns``.
    ``wall_ns`` is set on parallel scopes: the time at least one thread was inside.
    """

    name: str
    parent: Count | None = None
    """Index of the enclosing node in the same strand; smaller than this node's own."""
    calls: Count = 0
    open_calls: Count = 0
    total_ns: Nanoseconds = 0
    min_ns: Nanoseconds | None = None
    max_ns: Nanoseconds | None = None
    """Like ``min_ns``, set exactly when ``calls`` is not 0."""
    suspended_ns: Nanoseconds = 0
    wall_ns: Nanoseconds | None = None
    buckets: Annotated[tuple[tuple[Bucket, BucketCalls], ...], msgspec.Meta(max_length=MAX_BUCKET + 1)] = ()
    """(bucket, calls) pairs in ascending order, ``calls`` in all; see ``pyrometer.stats.buckets``."""


class StrandParent(Value, frozen=True, kw_only=True):
    """The scope a thread was started in: a node of an earlier strand."""

    strand: Count
    node: Count


class Strand(Value, frozen=True, kw_only=True):
    """The call tree of one thread, under the scope that started it.

    A pool's thread that worked for several scopes has one strand for each.
    ``nodes`` stand in pre-order: a parent before its children.
    """

    thread_id: Count
    thread_name: str
    parent: StrandParent | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1
    """How many finished threads are folded together here."""
    nodes: Annotated[tuple[ScopeNode, ...], msgspec.Meta(max_length=MAX_NODES)] = ()


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

    @property
    def scopes_ns(self) -> int:
        """The scopes' cost over the whole run."""
        return round(self.scope_ns * self.scope_entries)


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


class Machine(Value, frozen=True, kw_only=True):
    """The computer it ran on."""

    system: str
    architecture: str
    cpu_model: str | None = None
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
    packages: dict[str, str] = {}
    """Version of each imported package that states one."""


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
    """Wall time during which the recorder was on."""
    program: Program
    machine: Machine
    software: Software
    outcome: Outcome
    strands: Annotated[tuple[Strand, ...], msgspec.Meta(max_length=MAX_STRANDS)] = ()
    losses: tuple[Loss, ...] = ()
    cost: OwnCost

    def scopes(self) -> Iterator[ScopeNode]:
        """Every node of every strand."""
        for strand in self.strands:
            yield from strand.nodes
