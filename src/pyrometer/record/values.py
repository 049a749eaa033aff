"""The values that all parts of the record are made of: counts, and call trees."""

from typing import Annotated

import msgspec

# Twice what the recorder can make, so that its bounds can grow without a new format.
MAX_NODES = 40_000
MAX_STRANDS = 8_192
MAX_BUCKET = 2_047

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
SignedCount = Annotated[int, msgspec.Meta(ge=-(2**63) + 1, le=2**63 - 1)]
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
    allocated_bytes: Count | None = None
    """Bytes of torch's CPU tensors allocated inside, on the same thread; None where not counted."""
    allocations: Count | None = None
    """How many; set together with ``allocated_bytes``."""
    heap_bytes: Count | None = None
    """Bytes of the rest of the heap allocated inside, on the same thread; the four are set together."""
    heap_allocations: Count | None = None
    freed_bytes: Count | None = None
    """Bytes freed inside, of tensors too; as large as the blocks were."""
    kept_bytes: SignedCount | None = None
    """Allocated inside less freed inside, as large as the blocks are; negative when more was freed."""
    peak_bytes: Count | None = None
    """The most that one call held at once, over what its thread held when it began, as ``kept_bytes``."""
    python_bytes: Count | None = None
    """Bytes of Python objects up to 512 bytes each; set together with ``python_allocations``."""
    python_allocations: Count | None = None
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
