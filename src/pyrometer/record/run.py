"""The Run: everything one profiled program left behind.

Producers write it, everything later reads only this. Times are integers in
nanoseconds, sizes integers in bytes. What was not measured is ``None``, never 0.
"""

from collections.abc import Iterator

import msgspec

FORMAT_NAME = "pyrometer-run"
FORMAT_VERSION = 1


class Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A frozen value of the record; each subclass is keyword-only."""


class ScopeNode(Value, kw_only=True):
    """One scope at one place in the call tree of one strand, all its calls together.

    ``total_ns`` is the time the scope was open and running. It counts every slice of
    a call that was suspended in between; the time suspended is ``suspended_ns``, apart.
    ``calls`` counts finished calls, and ``min_ns``, ``max_ns`` and ``buckets`` describe
    those; ``open_calls`` counts the ones still open when the record was taken, whose time
    so far is in ``total_ns``. The children's totals never exceed ``total_ns``.
    ``wall_ns`` is set on parallel scopes: the time at least one thread was inside.
    """

    name: str
    parent: int | None = None
    """Index of the enclosing node in the same strand; smaller than this node's own."""
    calls: int = 0
    open_calls: int = 0
    total_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    suspended_ns: int = 0
    wall_ns: int | None = None
    buckets: tuple[tuple[int, int], ...] = ()
    """(bucket, calls) pairs in ascending order; see ``pyrometer.stats.buckets``."""


class StrandParent(Value, kw_only=True):
    """The scope a thread was started in: a node of an earlier strand."""

    strand: int
    node: int


class Strand(Value, kw_only=True):
    """The call tree of one thread, under the scope that started it.

    A pool's thread that worked for several scopes has one strand for each.
    ``nodes`` stand in pre-order: a parent before its children.
    """

    thread_id: int
    thread_name: str
    parent: StrandParent | None = None
    threads: int = 1
    """How many finished threads are folded together here."""
    nodes: tuple[ScopeNode, ...] = ()


class Loss(Value, kw_only=True):
    """Something that could not be seen or kept, and how often."""

    collector: str
    reason: str
    count: int


class OwnCost(Value, kw_only=True):
    """What the profiler itself cost this run."""

    scope_ns: float
    """Measured on this machine in this process: one enabled scope, entered and left."""
    scope_entries: int
    startup_ns: int | None = None
    """From the start of the command to the first line of the program, less a plain start."""
    checkpoint_ns: int = 0
    """Spent writing checkpoints, on a thread of its own."""

    @property
    def scopes_ns(self) -> int:
        """The scopes' cost over the whole run."""
        return round(self.scope_ns * self.scope_entries)


class GitState(Value, kw_only=True):
    """The commit a program's source stood at."""

    commit: str
    branch: str | None = None
    dirty: bool


class Program(Value, kw_only=True):
    """What was run."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    git: GitState | None = None


class Machine(Value, kw_only=True):
    """The computer it ran on."""

    system: str
    architecture: str
    cpu_model: str | None = None
    physical_cores: int | None = None
    logical_cores: int | None = None
    usable_cores: int | None = None
    """Cores this process may use: the affinity mask, and a container's quota."""
    memory_bytes: int | None = None


class Software(Value, kw_only=True):
    """The interpreter and what it had loaded."""

    python_version: str
    python_implementation: str
    garbage_collector: str
    """``on (700, 10, 10)`` with its thresholds, or ``off``."""
    packages: dict[str, str] = {}
    """Version of each imported package that states one."""


class Outcome(Value, kw_only=True):
    """How the program ended.

    ``running`` marks a checkpoint: the program was still at work, or was killed.
    """

    status: str
    """``running``, ``finished``, ``exception`` or ``signal``."""
    detail: str | None = None
    """The exception's or the signal's name."""


class Run(Value, kw_only=True, omit_defaults=False):
    """One profiled run of one program."""

    format: str = FORMAT_NAME
    version: int = FORMAT_VERSION
    pyrometer_version: str
    recorder: str
    """``native`` or ``python``: which of the two recorders measured."""
    started_at: str
    """ISO 8601 with the offset to UTC."""
    profiled_ns: int
    """Wall time during which the recorder was on."""
    program: Program
    machine: Machine
    software: Software
    outcome: Outcome
    strands: tuple[Strand, ...] = ()
    losses: tuple[Loss, ...] = ()
    cost: OwnCost

    def scopes(self) -> Iterator[ScopeNode]:
        """Every node of every strand."""
        for strand in self.strands:
            yield from strand.nodes
