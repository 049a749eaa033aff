"""Finished steps, added up by kind: exact sums, the first steps one by one, a fair choice of the rest."""

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from pyrometer.record.torch_run import MAX_FIRST_STEPS, MAX_GROUPS, MAX_SAMPLED_STEPS, OTHER, Step, StepGroup
from pyrometer.stats.buckets import bucket_of

if TYPE_CHECKING:
    from pyrometer.capture.torch_generation import Token

OVERFLOW_LABEL = "(other)"
_KINDS = 4
"""Each may need a place for those of its steps that find no other."""

_Row: TypeAlias = "array[int]"
"""A step that is kept: one piece of memory, since those of many objects would come to lie all over it."""
_UNKNOWN = -1

Taken = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""What ``Watch.take()`` gives: when, then time, bytes and allocations by phase since the last time."""


class Stretch:
    """A piece of the program's time, and what happened in it."""

    # Defaults of the class: one is made for every step, and most of it stays as it is.
    ended_ns = 0
    ns: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    allocations: tuple[int, ...] = ()
    batches = 0
    forward_calls = 0
    grad_forward_calls = 0
    backward_passes = 0
    samples: int | None = None
    unknown_samples = False
    tokens: int | None = None
    called_with: tuple[int | None, int | None] | None = None
    """Samples and tokens that the first root call got since the last backward pass."""
    called_samples: int | None = None
    """Of all root calls since: those of a step that has no backward pass."""
    called_tokens: int | None = None
    worker_ns: int | None = None
    optimizers: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    token: "Token | None" = None
    """What the last forward pass in it made, if it may be a text generator's."""
    generates = False
    """It is one: a pass for the next token came before or after."""
    kind = ""
    label = ""
    """Of the step it has become."""

    def root_called(self, samples: int | None, tokens: int | None) -> None:
        """The first root module gets so many; whether they are new ones, a backward pass tells."""
        if self.called_with is None:
            self.called_with = samples, tokens
        self.called_samples = _more(self.called_samples, samples)
        self.called_tokens = _more(self.called_tokens, tokens)

    def backward_passed(self) -> None:
        """What was learned from are the samples of the first call before it.

        Another call is for the same ones: for an accuracy, say, or for another loss.
        """
        self.backward_passes += 1
        if self.called_with is not None:
            samples, tokens = self.called_with
            self.samples = _more(self.samples, samples)
            self.tokens = _more(self.tokens, tokens)
            self.called_with = self.called_samples = self.called_tokens = None

    def settle_samples(self) -> None:
        """The step is over: where nothing was learned, the samples are those of all calls."""
        if self.samples is None and self.tokens is None:
            self.samples, self.tokens = self.called_samples, self.called_tokens

    def forget_samples(self) -> None:
        """They are not the step's."""
        self.samples = self.tokens = None
        self.called_with = self.called_samples = self.called_tokens = None

    def end(self, taken: Taken) -> None:
        """The stretch ends here."""
        self.ended_ns, self.ns, self.bytes, self.allocations = taken

    def ending(self, taken: Taken) -> "Stretch":
        """One in which the same happened, that ends so."""
        other = Stretch()
        vars(other).update(vars(self))
        other.end(taken)
        return other

    @property
    def is_empty(self) -> bool:
        """Whether nothing has happened in it."""
        return not vars(self)

    @property
    def taken(self) -> Taken:
        """What was taken at its end."""
        return self.ended_ns, self.ns, self.bytes, self.allocations

    def absorb(self, later: "Stretch") -> None:
        """Take in the stretch that follows."""
        self.ended_ns = later.ended_ns
        if bool(self.batches) is not bool(later.batches):
            # What a loader gave goes before what root modules were seen to get.
            (later if self.batches else self).forget_samples()
        elif not self.batches and self.roots[:1] != later.roots[:1] and self.roots:
            # What the first root module gave to another is no new sample.
            later.forget_samples()
        self.add_figures([later.taken])
        self.add_counts(later)
        self.optimizers += tuple(name for name in later.optimizers if name not in self.optimizers)
        self.roots += tuple(name for name in later.roots if name not in self.roots)
        self.token = self.token or later.token
        self.generates = self.generates or later.generates

    def absorb_rest(self, taken: Taken) -> None:
        """Take in the time that has gone by since."""
        self.ended_ns = taken[0]
        self.add_figures([taken])

    def add_figures(self, taken: Sequence[Taken]) -> None:
        """Add time and memory, by phase."""
        _, ns, allocated, allocations = zip(*taken, strict=True)
        self.ns = _added(self.ns, *ns)
        self.bytes = _added(self.bytes, *allocated)
        self.allocations = _added(self.allocations, *allocations)

    def add_counts(self, other: "Stretch", times: int = 1) -> None:
        """Add what happened in the other, and so many times."""
        self.batches += other.batches * times
        self.forward_calls += other.forward_calls * times
        self.grad_forward_calls += other.grad_forward_calls * times
        self.backward_passes += other.backward_passes * times
        self.samples = _more(self.samples, other.samples, times)
        self.tokens = _more(self.tokens, other.tokens, times)
        self.called_samples = _more(self.called_samples, other.called_samples, times)
        self.called_tokens = _more(self.called_tokens, other.called_tokens, times)
        self.worker_ns = _more(self.worker_ns, other.worker_ns, times)
        if other.unknown_samples:
            self.unknown_samples = True


def _more(known: int | None, other: int | None, times: int = 1) -> int | None:
    """The sum of what is known."""
    return known if other is None else other * times + (known or 0)


class StepGroups:
    """All steps of a run, by (kind, label).

    For one thread at a time. It may come in again before it is out, in a ``__del__`` or a signal
    handler of the program's: what it then adds waits.
    """

    def __init__(self, *, phases: list[str], counts_bytes: bool, origin_ns: int, seed: int = 0) -> None:
        self._phases = phases
        """By the watch's numbers, ``other`` first; may grow."""
        self._origin_ns = origin_ns
        self._counts_bytes = counts_bytes
        # Our own: the program's random numbers are not touched.
        self._random = Random(seed)  # noqa: S311 - a choice of steps is no secret
        self._groups: dict[tuple[str, str], _Group] = {}
        self._waiting: list[Callable[[], None]] = []
        self._is_busy = False
        self.steps = 0

    def add(self, step: Stretch, taken: Sequence[Taken], *, began_ns: int, keep: bool) -> None:
        """Count finished steps in each of which happened what happened in ``step``, one for each taken.

        With ``keep`` False they only move the steps' number on.
        """
        index = self.steps
        self.steps += len(taken)
        if keep:
            self._waiting.append(partial(self._add, index, step, taken, began_ns))
            if not self._is_busy:
                self._add_waiting()

    def _add_waiting(self) -> None:
        self._is_busy = True
        try:
            while self._waiting:
                self._waiting.pop(0)()
        finally:
            self._is_busy = False

    def _add(self, index: int, step: Stretch, taken: Sequence[Taken], began_ns: int) -> None:
        label = step.label
        group = self._groups.get((step.kind, label))
        if group is None:
            if len(self._groups) >= MAX_GROUPS - _KINDS:
                label = OVERFLOW_LABEL
            group = self._groups.setdefault((step.kind, label), _Group(self._origin_ns))
        group.add(index, step, taken, began_ns, self._random)

    def records(self) -> tuple[StepGroup, ...]:
        """The groups so far, in the order they came up."""
        if not self._is_busy:
            self._add_waiting()
        was_busy, self._is_busy = self._is_busy, True
        try:
            return tuple(
                group.record(kind, label, self._phases, counts_bytes=self._counts_bytes)
                for (kind, label), group in self._groups.copy().items()
            )
        finally:
            self._is_busy = was_busy


class _Group:
    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self.total = Stretch()
        self.steps = 0
        self.total_ns = 0
        self.min_ns: int | None = None
        self.max_ns = 0
        self.buckets: dict[int, int] = {}
        self.first: list[_Row] = []
        self.sampled: list[_Row] = []

    def add(self, index: int, step: Stretch, taken: Sequence[Taken], began_ns: int, random: Random) -> None:
        self._add_durations([sum(ns) for _, ns, _, _ in taken])
        self.total.add_figures(taken)
        self.total.add_counts(step, len(taken))
        for ended_ns, ns, allocated, _ in taken:
            self.steps += 1
            rows, place = self._place(random)
            if rows is not None:
                row = _packed(index, began_ns - self._origin_ns, ns, sum(allocated), step)
                rows[place : place + 1] = [row]
            index += 1
            began_ns = ended_ns

    def _add_durations(self, durations_ns: list[int]) -> None:
        least_ns = min(durations_ns)
        self.min_ns = least_ns if self.min_ns is None else min(self.min_ns, least_ns)
        self.max_ns = max(self.max_ns, *durations_ns)
        self.total_ns += sum(durations_ns)
        buckets = self.buckets
        for bucket in map(bucket_of, durations_ns):
            buckets[bucket] = buckets.get(bucket, 0) + 1

    def _place(self, random: Random) -> "tuple[list[_Row] | None, int]":
        """Where the step that was counted last is kept, if it is."""
        later = self.steps - MAX_FIRST_STEPS
        if later <= 0:
            return self.first, self.steps - 1
        if later <= MAX_SAMPLED_STEPS:
            return self.sampled, later - 1
        place = int(random.random() * later)
        return (self.sampled if place < MAX_SAMPLED_STEPS else None), place

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
            min_ns=self.min_ns or 0,
            max_ns=self.max_ns,
            buckets=tuple(sorted(self.buckets.items())),
            batches=total.batches,
            forward_calls=total.forward_calls,
            grad_forward_calls=total.grad_forward_calls,
            backward_passes=total.backward_passes,
            samples=None if total.unknown_samples else total.samples,
            tokens=total.tokens,
            worker_ns=total.worker_ns,
            first=tuple(_step_of(row, order, counts_bytes=counts_bytes) for row in self.first),
            sampled=tuple(_step_of(row, order, counts_bytes=counts_bytes) for row in sorted(self.sampled)),
        )


def _packed(index: int, began_ns: int, ns: tuple[int, ...], allocated_bytes: int, step: Stretch) -> _Row:
    samples = None if step.unknown_samples else step.samples
    known = (_UNKNOWN if figure is None else figure for figure in (samples, step.tokens, step.worker_ns))
    return array("q", (index, began_ns, allocated_bytes, *known, *ns))


def _step_of(row: _Row, order: list[int], *, counts_bytes: bool) -> Step:
    index, began_ns, allocated_bytes, samples, tokens, worker_ns, *ns = row
    return Step(
        index=index,
        started_ns=max(began_ns, 0),
        duration_ns=sum(ns),
        phase_ns=_ordered(ns, order),
        samples=None if samples == _UNKNOWN else samples,
        tokens=None if tokens == _UNKNOWN else tokens,
        allocated_bytes=allocated_bytes if counts_bytes else None,
        worker_ns=None if worker_ns == _UNKNOWN else worker_ns,
    )


def _ordered(figures: Sequence[int], order: list[int]) -> tuple[int, ...]:
    return tuple(figures[number] if number < len(figures) else 0 for number in order)


def _added(*figures: tuple[int, ...]) -> tuple[int, ...]:
    # A phase the program has just named makes the later ones longer.
    return (*map(sum, zip_longest(*figures, fillvalue=0)),)
