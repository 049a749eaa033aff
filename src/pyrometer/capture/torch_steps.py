"""From what torch is asked to do to steps.

A step runs from the end of the one before to the return of the last optimizer's ``step()`` before
the next batch is fetched. Without a loader, an optimizer that steps again begins a new one; without
an optimizer a step runs from batch to batch, or from root call to root call.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TYPE_CHECKING

from pyrometer.capture.step_groups import StepGroups, Stretch, Taken

if TYPE_CHECKING:
    from pyrometer.capture.torch_generation import Token

# Root calls, or steps of one optimizer, in a row that may yet turn out to belong to one larger step: a
# teacher that is asked twice before the backward pass, an optimizer that steps more than once a batch.
MAX_UNDECIDED = 16

# Batches, or root calls, with a backward pass before the first optimizer of all steps: it may be that
# gradients are accumulated over many, or that the program changes its weights by its own hand.
MAX_BEFORE_OPTIMIZER = 256

MAX_NAMED = 3

LoopStretch = tuple[bool, int, int | None, int | None, int, int, tuple[str, ...], str | None, Taken | None]
"""What the core has followed by itself: whether a fetch began it, batches, samples, tokens, forward
calls, backward passes, root modules, the optimizer that ended it, and what was taken then."""

_NOTHING = (False, 0, None, None, 0, 0, (), None)


class StepFinder:
    """Cuts the time of one thread into steps, as the thread's loop goes on.

    Every moment from the first event to the end of the last step is in exactly one step.
    """

    def __init__(
        self,
        *,
        take: Callable[[], Taken],
        groups: StepGroups,
        includes: Callable[[int], bool],
        on_step: Callable[[int, Stretch], None],
        on_alike: Callable[[int, Stretch, Sequence[Taken]], None] | None,
        lock: AbstractContextManager[object],
    ) -> None:
        self._take = take
        self._groups = groups
        self._includes = includes
        self._on_step = on_step
        self._on_alike = on_alike
        self._lock = lock
        self._began = False
        self._began_ns = 0
        """When the first stretch that is in no step yet began."""
        self._now = Stretch()
        self._undecided: list[Stretch] = []
        self._repeated: tuple[tuple[object, ...], Stretch] = (), self._now
        """What the core has followed last, from a fetch to an optimizer's return, and its stretch."""
        self._streaming = False
        self._marked: str | None = None
        self._marked_samples: int | None = None
        self._marks_steps = False
        self._trains = False
        self._has_optimizer = False

    @property
    def undecided_returns(self) -> int:
        """How many returns of optimizers are in no step yet."""
        return sum(bool(stretch.optimizers) for stretch in self._undecided)

    @property
    def wants_sizes(self) -> bool:
        """Whether the size of a root module's input is to be told: no loader has told it."""
        return self._now.batches == 0

    # What happens.

    def fetch_begun(self) -> None:
        """The next batch is asked for."""
        self._begin()
        if self._marks_steps:
            return
        if self._undecided:
            self._finish_training()
        if self._is_forward_only() or self._is_trained_by_hand():
            self._cut()
        if self._undecided:
            self._finish_forwards()
            self._finish_by_hand()

    def fetched(self, samples: int | None, tokens: int | None, worker_ns: int | None) -> None:
        """A batch has come."""
        now = self._now
        if now.batches == 0:
            # What the loader gives goes before what a root module was seen to get.
            now.forget_samples()
        now.batches += 1
        now.unknown_samples = now.unknown_samples or samples is None
        if samples is not None:
            now.samples = samples + (now.samples or 0)
        if tokens is not None:
            now.tokens = tokens + (now.tokens or 0)
        if worker_ns is not None:
            now.worker_ns = worker_ns + (now.worker_ns or 0)

    def forward_begun(
        self,
        root: str,
        samples: int | None,
        tokens: int | None,
        *,
        tracks_gradients: bool,
        continues: bool,
        again: bool,
    ) -> None:
        """A root module is called.

        ``continues``: for the next token of a sequence. ``again``: by an optimizer's closure, which
        may ask many times for the same samples.
        """
        self._begin()
        now = self._now
        if not self._marks_steps:
            if continues or now.generates:
                now.generates = now.token is not None
                self._cut()
                self._finish_training()
                self._finish_forwards()
                now = self._now
            elif root in now.roots and self._is_trained_by_hand() and not (again or self._is_fetched()):
                self._cut()
                self._finish_by_hand()
                now = self._now
            elif root in now.roots and not now.backward_passes and not self._is_fetched():
                self._cut()
                if self._streaming or self._count_forwards() > MAX_UNDECIDED:
                    self._streaming = True
                    self._finish_training()
                    self._finish_forwards()
                now = self._now
        now.forward_calls += 1
        now.grad_forward_calls += tracks_gradients
        if root not in now.roots:
            now.roots = (*now.roots, root)
        if now.batches == 0 and now.roots[0] == root and not (again and now.forward_calls > 1):
            now.root_called(samples, tokens)

    def forward_ended(self, token: "Token | None") -> None:
        """The root call has returned; ``token`` says what it made, if it may be a text generator's."""
        if token is not None:
            self._now.token = token
            self._now.generates = self._now.generates or not token.starts
        may_be_last = not self._trains or self._now.generates or not self._now.grad_forward_calls
        if may_be_last and not self._marks_steps:
            # What comes after the last root call of all is in no step.
            self._settle()

    def backward_ended(self) -> None:
        """A backward pass has returned."""
        self._begin()
        self._now.backward_passed()
        self._streaming = False
        self._trains = True
        if not self._has_optimizer and not self._marks_steps:
            self._settle()

    def optimizer_ended(self, name: str, taken: Taken | None = None) -> None:
        """An optimizer's ``step()`` has returned: now, or when ``taken`` was."""
        self._begin()
        self._trains = True
        self._has_optimizer = True
        self._streaming = False
        if self._marks_steps:
            if taken is not None:
                self._now.absorb_rest(taken)
            return
        again = [stretch for stretch in self._undecided if name in stretch.optimizers]
        if again and (not self._is_fetched() or len(again) > MAX_UNDECIDED):
            self._finish_training(one_by_one=self._is_fetched())
        self._now.optimizers = (name,)
        self._cut(taken)

    def catch_up(self, stretches: Sequence[LoopStretch]) -> None:
        """What happened up to each return of an optimizer, or up to now, in a loop of the usual shape."""
        for happened, group in groupby(stretches, _what_happened):
            for stretch in group:
                if self._repeats(happened):
                    self._catch_up_on_steps([taken for *_, taken in (stretch, *group) if taken is not None])
                elif happened != _NOTHING:
                    self._catch_up_on(stretch)

    def _repeats(self, happened: tuple[object, ...]) -> bool:
        """Whether this has just happened, and nothing else: if it does again, that was a whole step."""
        return happened == self._repeated[0] and self._undecided == [self._repeated[1]] and self._now.is_empty

    def _catch_up_on_steps(self, taken: Sequence[Taken]) -> None:
        """On many at once, all like the one before; the last is not over before the next fetch."""
        (step,) = self._undecided
        step.kind, step.label = "training", _label(step.optimizers)
        ended = [step.taken, *taken[:-1]]
        self._undecided = [step.ending(taken[-1])]
        self._repeated = self._repeated[0], self._undecided[0]
        with self._lock:
            last = self._groups.steps + len(ended) - 1
            self._groups.add(step, ended, began_ns=self._began_ns, keep=True)
        self._began_ns = ended[-1][0]
        if self._on_alike is not None:
            self._on_alike(last, step, ended)

    def _catch_up_on(self, stretch: LoopStretch) -> None:
        fetch_begun, batches, samples, tokens, forward_calls, backward_passes, roots, optimizer, taken = (
            stretch
        )
        is_whole = fetch_begun and self._now.is_empty
        if fetch_begun:
            self.fetch_begun()
        now = self._now
        if batches and not now.batches:
            now.forget_samples()
        now.batches += batches
        now.forward_calls += forward_calls
        now.grad_forward_calls += forward_calls
        now.roots += tuple(root for root in roots if root not in now.roots)
        if samples is not None:
            now.samples = samples + (now.samples or 0)
        if tokens is not None:
            now.tokens = tokens + (now.tokens or 0)
        if backward_passes:
            now.backward_passes += backward_passes
            self._streaming = False
            self._trains = True
        if optimizer is not None:
            self.optimizer_ended(optimizer, taken)
            if is_whole and not self._marks_steps and self._on_alike is not None:
                self._repeated = _what_happened(stretch), now

    def mark_begun(self, name: str, samples: int | None) -> None:
        """The program says that a step begins here; from now on only it says so."""
        self._begin()
        if not self._marks_steps:
            self._finish_all()
            self._marks_steps = True
        self._drop()
        self._marked = name
        self._marked_samples = samples

    def mark_ended(self) -> None:
        """The program says that the step ends here."""
        if self._marked is None:
            return
        name, self._marked = self._marked, None
        if self._marked_samples is not None:
            self._now.samples, self._now.unknown_samples = self._marked_samples, False
        self._cut()
        self._finish([self._undecided.pop()], "marked", name)

    def end(self) -> None:
        """Nothing more comes."""
        if self._began and not self._marks_steps:
            self._finish_all()

    # Stretches.

    def _begin(self) -> None:
        if not self._began:
            self._began = True
            self._began_ns = self._take()[0]

    def _cut(self, taken: Taken | None = None) -> None:
        """End the stretch here; it is in no step yet."""
        now = self._now
        if taken is None:
            taken = self._take()
        if now.ns:
            now.absorb_rest(taken)
        else:
            now.end(taken)
        self._undecided.append(now)
        self._now = Stretch()

    def _settle(self) -> None:
        """Note how far the stretch has come, should nothing follow."""
        self._now.absorb_rest(self._take())

    def _drop(self) -> None:
        """What lies between two steps that the program marks is in none."""
        self._began_ns = self._take()[0]
        self._now = Stretch()
        self._undecided.clear()

    def _is_fetched(self) -> bool:
        return self._now.batches > 0 or any(stretch.batches for stretch in self._undecided)

    def _is_forward_only(self) -> bool:
        now = self._now
        return now.forward_calls > 0 and not now.backward_passes and not self._waits_for_backward()

    def _is_trained_by_hand(self) -> bool:
        """As far as can be told: it has backward passes, and no optimizer has ever stepped."""
        return not self._has_optimizer and self._now.backward_passes > 0

    def _waits_for_backward(self) -> bool:
        return any(stretch.backward_passes and not stretch.optimizers for stretch in self._undecided)

    def _count_forwards(self) -> int:
        return sum(not stretch.optimizers for stretch in self._undecided)

    # Steps.

    def _finish_training(self, *, one_by_one: bool = False) -> None:
        """Everything up to the last optimizer's return is a step; or one for each return."""
        last = len(self._undecided)
        while last > 0 and not self._undecided[last - 1].optimizers:
            last -= 1
        if last == 0:
            return
        parts, self._undecided = self._undecided[:last], self._undecided[last:]
        step: list[Stretch] = []
        for part in parts:
            step.append(part)
            if one_by_one and part.optimizers:
                self._finish(step, "training")
                step = []
        if step:
            self._finish(step, "training")

    def _finish_forwards(self) -> None:
        """Each stretch that waits is a step of its own, if none of them needs a backward pass."""
        if self._waits_for_backward() or any(stretch.optimizers for stretch in self._undecided):
            return
        waiting, self._undecided = self._undecided, []
        for stretch in waiting:
            self._finish([stretch], "generation" if stretch.generates else "forward")

    def _finish_by_hand(self, *, at_last: bool = False) -> None:
        """Each stretch with a backward pass is a step, when no optimizer is to be expected any more."""
        if self._has_optimizer or not (at_last or len(self._undecided) > MAX_BEFORE_OPTIMIZER):
            return
        waiting, self._undecided = self._undecided, []
        for stretch in waiting:
            self._finish([stretch], "training" if stretch.backward_passes else "forward")

    def _finish_all(self) -> None:
        self._finish_training()
        if self._now.ns and self._now.forward_calls:
            if self._is_trained_by_hand() or not self._now.backward_passes:
                self._undecided.append(self._now)
            self._now = Stretch()
        self._finish_forwards()
        self._finish_by_hand(at_last=True)

    def _finish(self, parts: list[Stretch], kind: str, name: str | None = None) -> None:
        step, *others = parts
        for other in others:
            step.absorb(other)
        step.settle_samples()
        label = name if name is not None else _label(step.optimizers or step.roots)
        step.kind, step.label = kind, label
        if kind == "generation" and step.token is not None:
            step.tokens = step.token.sequences  # those it made, not those it was given
        with self._lock:
            index = self._groups.steps
            self._groups.add(step, [step.taken], began_ns=self._began_ns, keep=self._includes(index))
        self._began_ns = step.ended_ns
        self._on_step(index, step)


def _what_happened(stretch: LoopStretch) -> tuple[object, ...]:
    return stretch[:-1]


def _label(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return " + ".join(names[:MAX_NAMED]) + more
