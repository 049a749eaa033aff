"""Stacks looked at from outside while the program ran: as a tree, with how often each was met and in what."""

from typing import Annotated

import msgspec

from pyrometer.record.values import Count, Nanoseconds, Value

# Twice what the sampler keeps, so that its bounds can grow without a new format.
MAX_FUNCTIONS = 100_000
MAX_STACK_NODES = 200_000
MAX_OBSERVATIONS = 200_000
MAX_SAMPLED_THREADS = 8_192
MAX_NATIVE_FUNCTIONS = 40_000


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value of which there are many: a list in the file, without the names of its fields."""


class Function(Row, frozen=True):
    """A function of the program's, or of a library in Python."""

    name: str
    """With its class, as in ``Trainer.step``."""
    file: str
    first_line: Count


class NativeFunction(Row, frozen=True):
    """A function of a library in machine code; without a name where the library tells none."""

    name: str | None
    library: str


class StackNode(Row, frozen=True):
    """A frame at one line, called by the frame ``parent``, which comes earlier; None is the outermost."""

    parent: Count | None
    function: Count
    line: Count | None
    """None where the function does not tell its lines."""


class Observation(Row, frozen=True):
    """How often a thread was met with one stack in one scope and one call of torch's.

    A sample stands for the time since the one before it on the same thread. Of ``samples``, ``waiting``
    are those in which the thread was not running, and ``native`` those in which it ran code that is
    not Python's: torch, BLAS, the built-in functions.
    """

    stack: Count
    """The innermost node."""
    thread: Count
    scope: tuple[Count, Count] | None
    """Strand and node in ``Run.strands``; None outside every scope."""
    call: tuple[Count, Count] | None
    """Strand and node in ``Run.torch.calls``: the phase, and the module in it."""
    leaf: Count | None
    """The native function it was in; None where that was not asked for or not known."""
    samples: Count
    waiting: Count
    native: Count
    wall_ns: Nanoseconds
    cpu_ns: Nanoseconds
    """What the thread ran, by its own clock, shared out to where it was met running; at most ``wall_ns``."""


class StackSamples(Value, frozen=True, kw_only=True):
    """What a sampler saw."""

    samples_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    """As asked for, for each thread."""
    samples: Count
    dropped: Count
    """Looks that gave no stack, because the thread changed it meanwhile."""
    sampler_cpu_ns: Nanoseconds
    """What the sampler's own thread ran."""
    threads: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_SAMPLED_THREADS)] = ()
    functions: Annotated[tuple[Function, ...], msgspec.Meta(max_length=MAX_FUNCTIONS)] = ()
    native_functions: Annotated[
        tuple[NativeFunction, ...], msgspec.Meta(max_length=MAX_NATIVE_FUNCTIONS)
    ] = ()
    nodes: Annotated[tuple[StackNode, ...], msgspec.Meta(max_length=MAX_STACK_NODES)] = ()
    observations: Annotated[tuple[Observation, ...], msgspec.Meta(max_length=MAX_OBSERVATIONS)] = ()
    """Their ``samples`` sum to ``samples`` exactly."""
