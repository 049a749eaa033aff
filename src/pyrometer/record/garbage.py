"""What a run says of Python's garbage collector: how often it ran, and how long the program stood still."""

from typing import Annotated

import msgspec

from pyrometer.record.values import Count, Nanoseconds, Value

GENERATIONS = 3
MAX_PAUSES = 64
MAX_INTERVALS = 512


class GarbagePause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One collection, during which no thread of the program ran Python."""

    started_ns: Nanoseconds
    """Since recording began, as the steps of ``TorchRun.groups``."""
    duration_ns: Nanoseconds
    generation: Annotated[int, msgspec.Meta(ge=0, le=GENERATIONS - 1)]


class GarbageGeneration(Value, frozen=True, kw_only=True):
    """All collections of one generation, those that the program asked for included."""

    collections: Count = 0
    """As the interpreter itself counts them."""
    collected: Count = 0
    """Objects that were found to be garbage, and freed."""
    uncollectable: Count = 0
    """Objects that were found to be garbage, and could not be freed."""
    timed_collections: Count = 0
    """Nearly always all of them; a loss of the run says why not. The figures below are over these."""
    total_ns: Nanoseconds = 0
    """With the finalizers that ran in them."""
    max_ns: Nanoseconds = 0


class GarbageCollections(Value, frozen=True, kw_only=True):
    """The collections of Python's garbage collector while the program was recorded.

    Those that ran while the profiler worked on the same thread are not among them: they are its own.
    """

    generations: Annotated[
        tuple[GarbageGeneration, ...], msgspec.Meta(min_length=GENERATIONS, max_length=GENERATIONS)
    ]
    """The youngest first."""
    longest: Annotated[tuple[GarbagePause, ...], msgspec.Meta(max_length=MAX_PAUSES)] = ()
    """The longest that were timed, in order of time."""
    interval_ns: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 10_000_000
    interval_pause_ns: Annotated[tuple[Nanoseconds, ...], msgspec.Meta(max_length=MAX_INTERVALS)] = ()
    """How long the collections took that began in each interval since recording began; sums to
    ``total_ns`` exactly, and ends with the last interval that has any."""

    @property
    def collections(self) -> int:
        """Of all generations."""
        return sum(generation.collections for generation in self.generations)

    @property
    def timed_collections(self) -> int:
        """Of all generations."""
        return sum(generation.timed_collections for generation in self.generations)

    @property
    def max_ns(self) -> int:
        """The longest that was timed, of all generations."""
        return max(generation.max_ns for generation in self.generations)

    @property
    def total_ns(self) -> int:
        """What the timed ones took, of all generations."""
        return sum(generation.total_ns for generation in self.generations)
