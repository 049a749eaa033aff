"""Finished steps, added up by kind: exact sums, the first steps one by one, a fair choice of the rest."""

from random import Random
from typing import TYPE_CHECKING

from pyrometer.record.torch_run import MAX_FIRST_STEPS, MAX_GROUPS, MAX_SAMPLED_STEPS, OTHER, Step, StepGroup
from pyrometer.stats.buckets import bucket_of

if TYPE_CHECKING:
    from pyrometer.capture.torch_generation import Token

OVERFLOW_LABEL = "(other)"

Taken = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""What ``Watch.take()`` gives: when, then time, bytes and allocations by phase since the last time."""


class Stretch:
    """A piece of the program's time, and what happened in it."""

    __slots__ = (
        "allocations", "backward_passes", "batches", "bytes", "ended_ns", "forward_calls", "generates",
        "grad_forward_calls", "ns", "optimizers", "roots", "samples", "token", "tokens", "unknown_samples",
        "worker_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ended_ns = 0
        self.ns: tuple[int, ...] = ()
        self.bytes: tuple[int, ...] = ()
        self.allocations: tuple[int, ...] = ()
        self.batches = 0
        self.forward_calls = 0
        self.grad_forward_calls = 0
        self.backward_passes = 0
        self.samples: int | None = None
        self.unknown_samples = False
        self.tokens: int | None = None
        self.worker_ns: int | None = None
        self.optimizers: tuple[str, ...] = ()
        self.roots: tuple[str, ...] = ()
        self.token: "Token | None" = None
        """What the last forward pass in it made, if it may be a text generator's."""
        self.generates = False
        """It is one: a pass for the next token came before or after."""

    def end(self, taken: Taken) -> None:
        """The stretch ends here."""
        self.ended_ns, self.ns, self.bytes, self.allocations = taken

    def absorb(self, later: "Stretch") -> None:
        """Take in the stretch that follows."""
        self.ended_ns = later.ended_ns
        self.ns = _added(self.ns, later.ns)
        self.bytes = _added(self.bytes, later.bytes)
        self.allocations = _added(self.allocations, later.allocations)
        self.batches += later.batches
        self.forward_calls += later.forward_calls
        self.grad_forward_calls += later.grad_forward_calls
        self.backward_passes += later.backward_passes
        self.samples = add_known(self.samples, later.samples)
        self.unknown_samples = self.unknown_samples or later.unknown_samples
        self.tokens = add_known(self.tokens, later.tokens)
        self.worker_ns = add_known(self.worker_ns, later.worker_ns)
        self.optimizers += tuple(name for name in later.optimizers if name not in self.optimizers)
        self.roots += tuple(name for name in later.roots if name not in self.roots)
        self.token = self.token or later.token
        self.generates = self.generates or later.generates


class StepGroups:
    """All steps of a run, by (kind, label)."""

    def __init__(self, *, phases: list[str], counts_bytes: bool, origin_ns: int, seed: int = 0) -> None:
        self._phases = phases
        """By the watch's numbers, ``other`` first; may grow."""
        self._origin_ns = origin_ns
        self._counts_bytes = counts_bytes
        # Our own: the program's random numbers are not touched.
        self._random = Random(seed)  # noqa: S311 - a choice of steps is no secret
        self._groups: dict[tuple[str, str], _Group] = {}
        self.steps = 0

    def add(self, kind: str, label: str, stretch: Stretch, *, began_ns: int, keep: bool) -> None:
        """Count a finished step; with ``keep`` False it only moves the step's number on."""
        index = self.steps
        self.steps += 1
        if not keep:
            return
        group = self._groups.get((kind, label))
        if group is None:
            # One place is kept for all that find no other.
            if len(self._groups) >= MAX_GROUPS - 1:
                label = OVERFLOW_LABEL
            group = self._groups.setdefault((kind, label), _Group())
        group.add(index, stretch, began_ns - self._origin_ns, self._random)

    def records(self) -> tuple[StepGroup, ...]:
        """The groups so far, in the order they came up."""
        return tuple(
            group.record(kind, label, self._phases, counts_bytes=self._counts_bytes)
            for (kind, label), group in list(self._groups.items())[:MAX_GROUPS]
        )


class _Group:
    def __init__(self) -> None:
        self.total = Stretch()
        self.steps = 0
        self.total_ns = 0
        self.min_ns = 0
        self.max_ns = 0
        self.buckets: dict[int, int] = {}
        self.first: list[_Row] = []
        self.sampled: list[_Row] = []

    def add(self, index: int, stretch: Stretch, began_ns: int, random: Random) -> None:
        duration_ns = sum(stretch.ns)
        self.min_ns = duration_ns if not self.steps else min(self.min_ns, duration_ns)
        self.max_ns = max(self.max_ns, duration_ns)
        self.steps += 1
        self.total_ns += duration_ns
        bucket = bucket_of(duration_ns)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.total.absorb(stretch)
        later = self.steps - MAX_FIRST_STEPS
        if later <= 0:
            self.first.append(_Row(index, began_ns, stretch))
        elif later <= MAX_SAMPLED_STEPS:
            self.sampled.append(_Row(index, began_ns, stretch))
        else:
            place = int(random.random() * later)
            if place < MAX_SAMPLED_STEPS:
                self.sampled[place] = _Row(index, began_ns, stretch)

    def record(self, kind: str, label: str, names: list[str], *, counts_bytes: bool) -> StepGroup:
        total = self.total
        known = len(total.ns)
        # Behind "other", which stands first in the watch and last in the record.
        order = [number for number in range(1, known) if total.ns[number]] + [0]
        return StepGroup(
            kind=kind,
            label=label,
            phases=(*(names[number] for number in order[:-1]), OTHER),
            steps=self.steps,
            total_ns=self.total_ns,
            phase_ns=_ordered(total.ns, order),
            phase_bytes=_ordered(total.bytes, order) if counts_bytes else None,
            phase_allocations=_ordered(total.allocations, order) if counts_bytes else None,
            min_ns=self.min_ns,
            max_ns=self.max_ns,
            buckets=tuple(sorted(self.buckets.items())),
            batches=total.batches,
            forward_calls=total.forward_calls,
            grad_forward_calls=total.grad_forward_calls,
            backward_passes=total.backward_passes,
            samples=None if total.unknown_samples else total.samples,
            tokens=total.tokens,
            worker_ns=total.worker_ns,
            first=tuple(row.step(order, counts_bytes=counts_bytes) for row in self.first),
            sampled=tuple(
                row.step(order, counts_bytes=counts_bytes)
                for row in sorted(self.sampled, key=lambda row: row.index)
            ),
        )


class _Row:
    """A step that is kept; made into a record only when one is asked for."""

    __slots__ = ("allocated_bytes", "began_ns", "index", "ns", "samples", "tokens", "worker_ns")

    def __init__(self, index: int, began_ns: int, stretch: Stretch) -> None:
        self.index = index
        self.began_ns = began_ns
        self.ns = stretch.ns
        self.samples = None if stretch.unknown_samples else stretch.samples
        self.tokens = stretch.tokens
        self.allocated_bytes = sum(stretch.bytes)
        self.worker_ns = stretch.worker_ns

    def step(self, order: list[int], *, counts_bytes: bool) -> Step:
        return Step(
            index=self.index,
            started_ns=max(self.began_ns, 0),
            duration_ns=sum(self.ns),
            phase_ns=_ordered(self.ns, order),
            samples=self.samples,
            tokens=self.tokens,
            allocated_bytes=self.allocated_bytes if counts_bytes else None,
            worker_ns=self.worker_ns,
        )


def add_known(one: int | None, other: int | None) -> int | None:
    """The sum of what is known; None if nothing is."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _ordered(figures: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
    return tuple(figures[number] if number < len(figures) else 0 for number in order)


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    if not one or not other:
        return one or other
    # A phase the program has just named makes the later one longer.
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    return (*map(int.__add__, longer, shorter), *longer[len(shorter) :])
