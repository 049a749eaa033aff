"""Functions and lines by the CPU time that samples met them in."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.code_origin import CodePlaces, Origin
from pyrometer.analysis.frame_tree import (
    NOTHING,
    Parts,
    Stacks,
    are_outermost,
    with_children,
)
from pyrometer.record.run import Program
from pyrometer.record.samples import Function
from pyrometer.stats.shares import Interval, share_interval

OUTSIDE_SHARE = 0.05
"""From this share of the CPU time on, a function that is not the program's own is pointed out."""
MOSTLY = 0.5


class Note(Enum):
    """What is worth knowing of a function."""

    TORCH = Origin.TORCH.value
    LIBRARY = Origin.LIBRARY.value
    STDLIB = Origin.STDLIB.value
    PROFILER = Origin.PROFILER.value
    NATIVE = "built-in/native"
    """Most of the CPU time of its own is in built-in functions and native code that it calls."""
    WAITS = "waits"
    """In most of the samples of its own, the thread was not running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of all CPU time, by so many samples of equal weight."""

    value: float
    samples: float

    @property
    def interval(self) -> Interval:
        """How sure it is."""
        return share_interval(self.value, self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFunction:
    """A function, over all places it was called from.

    The ``own`` parts of all functions are all there is. ``total`` times hold what the function
    called too; where it called itself, that is counted once.
    """

    rank: int
    """From 1, by CPU time of its own."""
    name: str
    module: str
    file: str
    first_line: int
    origin: Origin
    notes: tuple[Note, ...]
    own: Parts
    total_cpu_ns: int
    total_wall_ns: int
    self_share: Share | None
    """Of the CPU time; None when there was none."""
    total_share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLine:
    """A line of a function, over all places that was called from."""

    rank: int
    function: str
    module: str
    file: str
    line: int | None
    own: Parts
    total_cpu_ns: int
    self_share: Share | None
    total_share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What shares are of, and by how many samples of equal weight."""

    cpu_ns: int
    samples: float

    def share(self, cpu_ns: int) -> Share | None:
        """A part of the CPU time."""
        if not self.cpu_ns:
            return None
        return Share(value=cpu_ns / self.cpu_ns, samples=self.samples)


def sum_functions(
    stacks: Stacks, program: Program, measure: Measure
) -> tuple[tuple[SampledFunction, ...], tuple[SampledLine, ...]]:
    """All functions and all lines, each by CPU time of its own, largest first."""
    samples = stacks.samples
    totals = _Totals(
        parents=stacks.parents,
        parts=stacks.own,
        cpu_ns=with_children(stacks.parents, [own.cpu_ns for own in stacks.own]),
        wall_ns=with_children(stacks.parents, [own.wall_ns for own in stacks.own]),
    )
    # By value: a function that was made twice is one function.
    functions = [samples.functions[node.function] for node in samples.nodes]
    lines = [(function, node.line) for function, node in zip(functions, samples.nodes, strict=True)]
    places = CodePlaces(program)
    modules = {function: places.module(function.file) for function in set(functions)}
    return (
        tuple(
            _function(rank, summed, places, modules, measure)
            for rank, summed in enumerate(totals.by_key(functions), start=1)
        ),
        tuple(
            _line(rank, summed, modules, measure) for rank, summed in enumerate(totals.by_key(lines), start=1)
        ),
    )


def is_outside(function: SampledFunction) -> bool:
    """Whether a function that is not the program's own takes enough to be pointed out."""
    share = function.self_share
    return function.origin is not Origin.OWN and share is not None and share.value > OUTSIDE_SHARE


@dataclass(slots=True)
class _Summed:
    key: Hashable
    own: Parts = NOTHING
    cpu_ns: int = 0
    wall_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    parents: Sequence[int]
    parts: Sequence[Parts]
    cpu_ns: Sequence[int]
    wall_ns: Sequence[int]

    def by_key(self, keys: Sequence[Hashable]) -> Iterator[_Summed]:
        """The nodes of a key together, largest CPU time of its own first."""
        summed: dict[Hashable, _Summed] = {}
        outermost = are_outermost(self.parents, keys)
        for index, key in enumerate(keys):
            entry = summed.get(key)
            if entry is None:
                entry = summed[key] = _Summed(key)
            own = self.parts[index]
            if own is not NOTHING:
                entry.own = own if entry.own is NOTHING else entry.own + own
            if outermost[index]:
                entry.cpu_ns += self.cpu_ns[index]
                entry.wall_ns += self.wall_ns[index]
        yield from sorted(summed.values(), key=lambda entry: (-entry.own.cpu_ns, -entry.cpu_ns))


def _function(
    rank: int, summed: _Summed, places: CodePlaces, modules: dict[Function, str], measure: Measure
) -> SampledFunction:
    function = summed.key
    assert isinstance(function, Function)  # noqa: S101 - for mypy: keys are what was asked for
    origin = places.origin(function.file)
    return SampledFunction(
        rank=rank,
        name=function.name,
        module=modules[function],
        file=function.file,
        first_line=function.first_line,
        origin=origin,
        notes=tuple(_notes(summed.own, origin)),
        own=summed.own,
        total_cpu_ns=summed.cpu_ns,
        total_wall_ns=summed.wall_ns,
        self_share=measure.share(summed.own.cpu_ns),
        total_share=measure.share(summed.cpu_ns),
    )


def _line(rank: int, summed: _Summed, modules: dict[Function, str], measure: Measure) -> SampledLine:
    assert isinstance(summed.key, tuple)  # noqa: S101 - for mypy: keys are what was asked for
    function, line = summed.key
    return SampledLine(
        rank=rank,
        function=function.name,
        module=modules[function],
        file=function.file,
        line=line,
        own=summed.own,
        total_cpu_ns=summed.cpu_ns,
        self_share=measure.share(summed.own.cpu_ns),
        total_share=measure.share(summed.cpu_ns),
    )


def _notes(own: Parts, origin: Origin) -> Iterator[Note]:
    if origin is not Origin.OWN:
        yield Note(origin.value)
    if own.native_ns > MOSTLY * own.cpu_ns:
        yield Note.NATIVE
    # By samples: on a busy machine a function that never waits is without a processor half of the time.
    if own.waiting > MOSTLY * own.samples:
        yield Note.WAITS
