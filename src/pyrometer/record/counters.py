"""What the processor, or a model of one, counted while the program ran. Not counted is None, never 0."""

from typing import Annotated

import msgspec

from pyrometer.record.samples import Row
from pyrometer.record.values import Count, Value

MAX_COUNTERS = 32
MAX_COUNTED_THREADS = 256
MAX_COUNTED_FUNCTIONS = 2_000
MAX_CACHES = 8
MAX_VARIABLES = 32

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class HardwareCounter(Value, frozen=True, kw_only=True):
    """One event that the processor counts, in the program's own code and not in the system's."""

    name: str
    """``instructions``, ``cycles``, ``cache misses`` and so on."""
    count: Count | None = None
    reason: str | None = None
    """Why there is no count; set exactly when there is none."""
    counted_share: Share | None = None
    """How much of the time it was counted. Below 1 the processor's counters were shared among several
    events by turns, and ``count`` is scaled up from it."""


Counters = Annotated[tuple[HardwareCounter, ...], msgspec.Meta(max_length=MAX_COUNTERS)]


class ThreadCounters(Value, frozen=True, kw_only=True):
    """A thread that Python has started, or the main one, from its start to its end."""

    thread_name: str
    threads: Count = 1
    """How many are put together here."""
    counters: Counters


class HardwareCounters(Value, frozen=True, kw_only=True):
    """The processor's own counters, through Linux's perf events."""

    counters: Counters
    """Of the whole process: threads of libraries too, which have no place in ``threads``."""
    threads: Annotated[tuple[ThreadCounters, ...], msgspec.Meta(max_length=MAX_COUNTED_THREADS)] = ()
    with_forked_processes: bool = False
    """Whether an old kernel has added what forked processes did."""
    advice: str | None = None
    """What to do to have those that there are not."""


class CacheCounts(Row, frozen=True):
    """References and misses of the simulated caches; LL is the last level, behind I1 and D1."""

    instructions: Count
    reads: Count
    writes: Count
    i1_misses: Count
    d1_read_misses: Count
    d1_write_misses: Count
    ll_instruction_misses: Count
    ll_read_misses: Count
    ll_write_misses: Count


class CountedFunction(Row, frozen=True):
    """A function in machine code, without what it calls."""

    name: str
    library: str
    counts: CacheCounts


class SimulatedCache(Value, frozen=True, kw_only=True):
    """The shape of a cache of the model."""

    name: str
    """``I1``, ``D1`` or ``LL``."""
    size_bytes: Count
    ways: Count
    line_bytes: Count
    origin: str
    """``machine``: as this machine has it; ``rounded`` to a shape that can be simulated; ``assumed``."""


class CacheSimulation(Value, frozen=True, kw_only=True):
    """What valgrind counted: exactly, but on a model of a processor."""

    tool: str | None = None
    """``callgrind-3.19.0``."""
    scope: str | None = None
    """What was counted: the scopes of that name, each on its own thread. None: the whole program."""
    counts: CacheCounts | None = None
    reason: str | None = None
    """Why there are no counts; set exactly when there are none."""
    functions: Annotated[tuple[CountedFunction, ...], msgspec.Meta(max_length=MAX_COUNTED_FUNCTIONS)] = ()
    """Those with the most instructions, largest first."""
    function_count: Count = 0
    """How many there were in all."""
    caches: Annotated[tuple[SimulatedCache, ...], msgspec.Meta(max_length=MAX_CACHES)] = ()
    slowdown: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """A loop in Python under valgrind, to the same loop without; None where not measured."""
    environment: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_VARIABLES)] = msgspec.field(
        default_factory=dict
    )
    """The variables that were set for the program."""
    file: str | None = None
    """All that was counted, in callgrind's own format."""


class CounterRecord(Value, frozen=True, kw_only=True):
    """All that was counted; a part is None when it was not asked for."""

    hardware: HardwareCounters | None = None
    simulated: CacheSimulation | None = None
