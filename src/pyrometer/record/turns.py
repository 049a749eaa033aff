"""What a measured program and the one who measures it say to each other, a line of JSON each.

The program waits at the end of a step for its turn. A turn is a few steps; what they took is told
when it ends, and the program waits again.
"""

from typing import Annotated

import msgspec

from pyrometer.record.values import Count, Nanoseconds, Value

MAX_LINE_BYTES = 64 << 20
"""Beyond, what comes is not one of ours."""


class TurnNode(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One place of the program's call trees, over the timed steps of a turn."""

    path: tuple[str, ...]
    """``module`` or ``scope``, and the names from the root: ``module``, ``forward``, ``model``."""
    calls: Count
    self_ns: int
    """Without the places below. May be below 0 by rounding where a call was open all the time."""


class Turn(Value, frozen=True, kw_only=True):
    """What the program did in a turn."""

    steps: Count
    """Timed ones; more than ordered where several ended at once."""
    duration_ns: Nanoseconds
    samples: Count | None = None
    """Of all timed steps; None where that is not known of one of them."""
    preemptions: Count = 0
    """How often the system took the core away from its thread for others, in the timed steps."""
    nodes: tuple[TurnNode, ...] = ()
    instructions: Count | None = None
    """Executed in the timed steps; None where they were not counted."""
    peak_bytes: Count | None = None
    """The most that the process has had resident so far."""
    peak_live_bytes: Count | None = None
    """The most that it had allocated at once so far; None where that is not counted."""
    helpers: Count = 0
    """Threads and child processes that go on while the program waits."""
    prefetched_batches: Count = 0
    """So many may lie ready after a rest."""
    has_gpu: bool = False
    note: str | None = None
    """A word of the program's to whoever measures it, such as a checksum of what it worked out."""


class Order(Value, frozen=True, kw_only=True):
    """What the program is to do next."""

    lead: Count = 0
    """Steps that are not timed, before those that are."""
    steps: Count = 1
    ends: bool = False
    """The program is to end here instead."""


class Farewell(Value, frozen=True, kw_only=True):
    """The last word of a program that was told to end."""

    imported: dict[str, str] = msgspec.field(default_factory=dict)
    """The file of each module that may be the project's, by name."""
    losses: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()


class Word(Value, frozen=True, kw_only=True):
    """One line from the program; exactly one of the two is there."""

    turn: Turn | None = None
    farewell: Farewell | None = None
