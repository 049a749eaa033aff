"""Watches a PyTorch program: installed when torch is imported, and taken off at the end.

The program's own hooks, graphs, results and random numbers are left alone, and nothing is ever
made to wait for a device.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from pyrometer._native import Recorder, Watch
from pyrometer.capture import allocations, garbage, memory, recording
from pyrometer.capture.close_ups import NOTHING, CloseUps
from pyrometer.capture.live import LiveLine, Progress
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.own_cost import scope_cost_ns
from pyrometer.capture.pacing import Pacer
from pyrometer.capture.patches import Patches
from pyrometer.capture.snapshots import strands_in
from pyrometer.capture.step_finders import StepFinders
from pyrometer.capture.step_groups import StepGroups, Stretch, Taken
from pyrometer.capture.torch_batches import batch_size
from pyrometer.capture.torch_compilation import CompilationWatch
from pyrometer.capture.torch_functions import replace_functions
from pyrometer.capture.torch_generation import GenerationWatch
from pyrometer.capture.torch_gpu import GpuWatch
from pyrometer.capture.torch_loading import LoaderWatch
from pyrometer.capture.torch_modules import ModuleNames, is_traced, token_shape
from pyrometer.capture.torch_operators import OperatorWatch
from pyrometer.capture.torch_optimizers import OptimizerHooks, OptimizerNames
from pyrometer.capture.torch_steps import LoopStretch, StepFinder
from pyrometer.record.allocations import ProcessAllocations
from pyrometer.record.torch_run import OTHER, PHASES, TorchRun


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked of the watch."""

    warmup: int | None = None
    window: tuple[int, int | None] | None = None
    live: LiveLine | None = None
    ops: int = 0
    """In so many steps every operator is seen; 0: in none."""
    keeps_events: bool = False
    """Whether those operators are kept one by one, for a trace."""
    max_steps: int | None = None
    """After so many the program is to end."""
    pacer: Pacer | None = None
    """Who says when the program may go on, if its steps take turns with another's."""

    def includes(self, index: int) -> bool:
        """Whether the step by this number is to be recorded."""
        if self.max_steps is not None and index >= self.max_steps:
            return False
        if self.window is None:
            return True
        first, first_not = self.window
        return first <= index and (first_not is None or index < first_not)


class Seen(NamedTuple):
    """What a watch has seen."""

    run: TorchRun
    losses: dict[str, int]
    """What the tree of calls could not keep, by kind."""
    hook_ns: int
    """What our hooks took: the callbacks as timed, the rest by the cost of a scope."""
    window_ns: int
    """What it took to open and close windows of operators."""


settings = Settings()


def configure(**wanted: Any) -> None:
    """Say what the watch is to do, before torch is imported."""
    global settings
    settings = Settings(**wanted)


class TorchWatch:
    """Everything we know of a process's PyTorch work; started and stopped with the recording."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch: Any = torch
        self._recorder = Recorder(suspends=False)
        self._watch = Watch(self._recorder, (OTHER, *PHASES), self._note_failure)
        self._phases = [OTHER, *PHASES]
        self._patches = Patches()
        self._names = ModuleNames()
        self._learned: set[str] = set()
        self._optimizers = OptimizerNames()
        self._optimizer_hooks: OptimizerHooks | None = None
        self._loaders = LoaderWatch()
        self._compilation = CompilationWatch()
        self.gpu = GpuWatch(torch.cuda) if torch.backends.cuda.is_built() else None
        """None where torch knows of no GPU."""
        # A signal handler of the program's, or a __del__, may find its own thread inside.
        self._lock = threading.RLock()
        self._counts_bytes = False
        self.running = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._close_ups = {True: CloseUps(), False: CloseUps()}
        """Of training steps, and of all others."""
        self._finders = StepFinders(self._new_finder, self._note_failure)
        self._followed: dict[int, Any] = {}
        """By thread: where the batches are counted that the core follows by itself."""
        self._groups: StepGroups | None = None
        self._generation = GenerationWatch()
        self._operators = self._new_operators() if settings.ops else None
        self._backward_passes = 0
        self._was_ended = False
        self._shown = Stretch()
        """All steps together, for the live line."""

    # Switching.

    def start(self) -> None:
        """Begin to watch, in every thread; what fails half-way leaves torch as it was."""
        try:
            self._install()
        except BaseException:
            self.stop()
            raise

    def _install(self) -> None:
        allocations.start()
        self._counts_bytes = allocations.counts_tensors()
        self._watch.set_tensor_type(self._torch.Tensor, self._torch._C.DisableTorchFunction)  # noqa: SLF001
        self._watch.start()
        if self._groups is None:
            self._groups = self._new_groups()
        self._record_step(self._groups.steps, trains=False)
        replace_functions(self._patches, self._watch, self, self._torch)
        self._loaders.install(self._patches)
        self._compilation.install(self._patches)
        self._watch.tell_steps(self.optimizer_ended)
        if self._operators is not None:
            self._operators.install()
        self._optimizer_hooks = OptimizerHooks(self._patches, self._watch, self.gpu)
        # A window begins and ends with a step, a GPU's time with a phase: each is looked at as it comes.
        follow = self._catch_up if settings.window is None and self.gpu is None else None
        is_overridden = self._torch._C._is_torch_function_mode_enabled  # noqa: SLF001
        self._watch.follow(follow, (self._torch.int64, self._torch.int32), is_overridden)
        self.running = True

    def stop(self) -> None:
        """Take everything off again; what was seen stays."""
        self.running = False
        if self._operators is not None:
            self._operators.halt()
        self._watch.stop()
        self._watch.catch_up_all()
        self._compilation.remove()
        self._patches.remove()
        if self._optimizer_hooks is not None:
            self._optimizer_hooks.remove()
            self._optimizer_hooks = None
        self._finders.end()
        if self._operators is not None:
            self._operators.remove()
        if self._recorder.enabled:
            self._recorder.stop()
        allocations.stop()

    def reset(self) -> None:
        """Forget what was seen so far."""
        with self._lock:
            self._recorder.reset()
            self._watch.reset()
            self._names.forget()
            self._learned.clear()
            self._optimizers.forget_steps()
            self._loaders.reset()
            self._compilation.reset()
            if self._operators is not None:
                self._operators.remove()
            if self.gpu is not None:
                self.gpu.reset()
            self._begin_anew()
            if self.running and self._operators is not None:
                self._operators.install()
            if self.running:
                self._groups = self._new_groups()
                self._record_step(0, trains=False)

    def abandon(self) -> None:
        """In a forked child: what is replaced only calls through, and what was under way is forgotten."""
        self.running = False
        self._watch.stop()
        self._watch.follow(None, ())
        self._finders = StepFinders(self._new_finder, self._note_failure)

    # What the hooks tell. They run on the program's threads, and their errors end in `_note_failure`.

    def fetch_begun(self, _: object) -> None:
        """A loader's iterator is asked for a batch."""
        self._finders.here().fetch_begun()

    def loader_started(self, _: object, iterator: object, duration_ns: int, raised: bool) -> None:  # noqa: FBT001
        """A loader has made an iterator."""
        if not raised:
            self._loaders.started(iterator, duration_ns)

    def fetched(self, iterator: object, batch: object, wait_ns: int, raised: bool) -> None:  # noqa: FBT001
        """It has answered."""
        if raised:
            self._loaders.exhausted(iterator)
            return
        seen = self._loaders.fetched(iterator, batch, wait_ns, counted=self._recorder.enabled)
        if self._loaders.works_in_process(iterator):
            self._followed[threading.get_ident()] = self._loaders.group_of(iterator)
            self._watch.follow_iterator(iterator)
        self._finders.here().fetched(seen.samples, seen.tokens, seen.worker_ns)

    def root_begun(
        self,
        module: object,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any] | None,
        tracks_gradients: bool,  # noqa: FBT001
    ) -> None:
        """A root module is called."""
        finder = self._finders.here()
        samples = tokens = shape = None
        if (finder.wants_sizes or not tracks_gradients) and not is_traced():
            given = (*arguments, *keywords.values()) if keywords else arguments
            samples, tokens = batch_size(keywords if keywords and not arguments else given)
            if not tracks_gradients:
                shape = token_shape(given)
        name = self._names.name_of(module)
        finder.forward_begun(
            name,
            samples,
            tokens,
            tracks_gradients=tracks_gradients,
            continues=self._generation.called(name, shape, tracks_gradients=tracks_gradients),
            again=self._watch.is_stepping,
        )
        if self.gpu is not None:
            self.gpu.phase_began("forward")

    def root_ended(self, module: object, _: object, duration_ns: int, raised: bool) -> None:  # noqa: FBT001
        """It has returned, or raised."""
        if self.gpu is not None:
            self.gpu.phase_ended("forward")
        name = self._names.name_of(module)
        self._finders.here().forward_ended(None if raised else self._generation.returned(name, duration_ns))
        if name not in self._learned and not raised and not is_traced():
            self._learned.add(name)
            self._names.learn(module)

    def backward_ended(self, _first: object, _result: object, _ns: int, raised: bool) -> None:  # noqa: FBT001
        """A backward pass has returned, or raised."""
        if not raised:
            self._backward_passes += self._recorder.enabled
            self._finders.here().backward_ended()

    def optimizer_ended(self, optimizer: object) -> None:
        """An optimizer's step has returned."""
        name = self._optimizers.name_of(optimizer)
        if self._recorder.enabled:
            self._optimizers.count_steps((name,))
        self._finders.here().optimizer_ended(name)
        self._watch.know_optimizer(optimizer, name)

    def _catch_up(
        self, thread_id: int, stretches: list[LoopStretch], now: LoopStretch, fetches: int, wait_ns: int
    ) -> None:
        """What the core has followed by itself, in the order it happened."""
        if memory.series.begun:
            memory.series.sample(time.perf_counter_ns())
        group = self._followed.get(thread_id)
        if group is not None:
            group.batches += fetches
            group.wait_ns += wait_ns
        self._optimizers.count_steps(stretch[7] for stretch in (*stretches, now))
        finder = self._finders.of(thread_id)
        if finder is not None:
            stretches.append(now)
            self._backward_passes += sum(stretch[5] for stretch in stretches)
            finder.catch_up(stretches)
            # An optimizer that has returned ends its step only with the next fetch.
            self._watch.stretches_due = max(self._steps_left(trains=True) - finder.undecided_returns, 0)

    @property
    def calls(self) -> Recorder:
        """The recorder of torch's calls."""
        return self._recorder

    @property
    def names(self) -> ModuleNames:
        """The modules seen."""
        return self._names

    def phase_number(self, name: str) -> int:
        """The number of a phase, found or named by the program."""
        with self._lock:
            if name in self._phases:
                return self._phases.index(name)
            number = self._watch.phase(name)
            if number == len(self._phases):
                self._phases.append(name)
            return number

    def enter_phase(self, name: str) -> int:
        """The program says what it is at; the token is for ``leave_phase``."""
        return self._watch.enter(self.phase_number(name), True)  # noqa: FBT003

    def leave_phase(self, token: int) -> None:
        """The program is at something else."""
        self._watch.leave(token)

    def mark_begun(self, name: str, samples: int | None) -> None:
        """The program says that a step begins."""
        self._watch.catch_up()
        self._finders.here().mark_begun(name, samples)

    def mark_ended(self) -> None:
        """The program says that it ends."""
        self._watch.catch_up()
        self._finders.here().mark_ended()

    # Steps.

    def _new_groups(self) -> StepGroups:
        # When recording began, so that all that has a time is on one axis: torch comes later.
        origin_ns = self._watch.take()[0] - garbage.watch.elapsed_ns
        return StepGroups(phases=self._phases, counts_bytes=self._counts_bytes, origin_ns=origin_ns)

    def _new_finder(self) -> StepFinder:
        if self._groups is None:
            raise RuntimeError("asked before the start")
        return StepFinder(
            take=self._watch.take,
            groups=self._groups,
            includes=self._keeps_step,
            on_step=partial(self._on_step, threading.get_ident()),
            on_alike=self._on_alike if self._operators is None else None,
            lock=self._lock,
        )

    def _new_operators(self) -> OperatorWatch:
        return OperatorWatch(
            self._torch,
            steps=settings.ops,
            warmup=settings.warmup,
            calls=self._recorder,
            scopes=recording.recorder,
            phases=self._phases,
            keeps_events=settings.keeps_events,
        )

    def _keeps_step(self, index: int) -> bool:
        return settings.includes(index) and (self._operators is None or self._operators.keeps(index))

    def _on_step(self, thread_id: int, index: int, step: Stretch) -> None:
        if self._operators is not None and (self.running or self._operators.is_open):
            self._operators.step_ended(index, step, thread_id=thread_id, is_recorded=settings.includes(index))
        if settings.pacer is not None and self.running:
            self._pace(settings.pacer, step, 1)
        with self._lock:
            if step.generates and step.token is not None and settings.includes(index):
                self._generation.made(step.token, step)
            if self.running:
                self._record_step(index + 1, trains=bool(step.backward_passes))
        if settings.live is not None:
            self._show(settings.live, step, [step.taken])
        self._end_if_due(index + 1)

    def _on_alike(self, last: int, step: Stretch, taken: Sequence[Taken]) -> None:
        """So many steps like one before have ended, none of which was to be looked at closely."""
        if settings.pacer is not None and self.running:
            self._pace(settings.pacer, step, len(taken))
        trains = bool(step.backward_passes)
        with self._lock:
            if self.running:
                for _ in taken[1:]:
                    self._close_ups[trains].next_detail()
                self._record_step(last + 1, trains=trains)
        if settings.live is not None:
            self._show(settings.live, step, taken)
        self._end_if_due(last + 1)

    def _pace(self, pacer: Pacer, step: Stretch, count: int) -> None:
        pacer.prefetched_batches = self._loaders.prefetched_batches
        if self.gpu is not None and self._torch.cuda.is_initialized():
            pacer.has_gpu = True
            pacer.before_reading_the_clock = self._torch.cuda.synchronize
        known = step.samples is not None and not step.unknown_samples
        pacer.steps_ended(count, count * step.samples if known and step.samples is not None else None)

    def _end_if_due(self, steps: int) -> None:
        """End the program as ``sys.exit()`` in its loop would; again, if it should go on all the same."""
        if settings.max_steps is not None and steps >= settings.max_steps and self.running:
            if self._was_ended:
                note_loss("torch", "a step after --max-steps: the program caught SystemExit, and went on")
            self._was_ended = True
            raise SystemExit(0)

    def _record_step(self, index: int, *, trains: bool) -> None:
        """Get ready for the step that begins."""
        garbage.watch.time_if_many()
        wanted = settings.window is None or settings.includes(index)
        if wanted is not self._recorder.enabled:
            if wanted:
                self._recorder.start()
            else:
                self._recorder.stop()
        # The next step is most likely of the same kind.
        detail = self._close_ups[trains].next_detail() if wanted and settings.pacer is None else NOTHING
        if self._operators is not None and self._operators.is_open:
            detail = NOTHING
        if self._watch.detail != detail:
            self._watch.detail = detail
        self._watch.stretches_due = self._steps_left(trains=trains)

    def _steps_left(self, *, trains: bool) -> int:
        """After how many steps Python has to look again."""
        if settings.pacer is not None:
            return settings.pacer.steps_left
        left = self._close_ups[trains].steps_left
        if settings.max_steps is not None and self._groups is not None:
            left = min(left, max(settings.max_steps - self._groups.steps, 0))
        return left if self._operators is None else min(left, self._operators.steps_left)

    def _show(self, live: LiveLine, step: Stretch, taken: Sequence[Taken]) -> None:
        self._shown.add_figures(taken)
        self._shown.add_counts(step, len(taken))
        live.update(self._progress)

    @property
    def steps(self) -> int:
        """How many were seen so far."""
        return 0 if self._groups is None else self._groups.steps

    def _progress(self) -> Progress:
        return Progress(
            steps=self.steps,
            samples=self._shown.samples,
            total_ns=sum(self._shown.ns),
            phase_ns=dict(zip(self._phases, self._shown.ns, strict=False)),
        )

    # The record.

    def allocations(self) -> ProcessAllocations | None:
        """What the process has allocated so far, by phase too."""
        by_phase = self._watch.memory()
        return allocations.record(self._phases, by_phase, with_tensors=self._counts_bytes)

    def seen(self) -> Seen:
        """What was seen so far, from one look at the tree of calls."""
        self._watch.catch_up()
        snapshot = self._recorder.snapshot()
        window_ns = 0 if self._operators is None else self._operators.own_work_ns
        callbacks_ns = max(self._watch.hook_ns - window_ns, 0)
        return Seen(
            run=self._record(snapshot),
            losses=snapshot["losses"],
            hook_ns=callbacks_ns + round(snapshot["entries"] * scope_cost_ns()),
            window_ns=window_ns,
        )

    def _record(self, snapshot: dict[str, Any]) -> TorchRun:
        with self._lock:
            groups = () if self._groups is None else self._groups.records()
            generations = self._generation.records(counts_bytes=self._counts_bytes)
        return TorchRun(
            torch_version=str(self._torch.__version__),
            intra_op_threads=self._torch.get_num_threads(),
            gpu=None if self.gpu is None else self.gpu.record(),
            groups=groups,
            warmup=settings.warmup,
            window=settings.window,
            max_steps=settings.max_steps,
            calls=strands_in(snapshot),
            modules=self._names.records(),
            optimizers=self._optimizers.records(),
            backward_passes=self._backward_passes,
            timed_backward_passes=self._watch.timed_backward_passes,
            timed_backward_ns=self._watch.timed_backward_ns,
            loaders=self._loaders.records(),
            generations=generations,
            compilation=self._compilation.record(),
            operators=None if self._operators is None else self._operators.record(),
        )

    def trace(self) -> Iterator[str] | None:
        """The windows of operators as pieces of a trace file; None where none was asked for."""
        return None if self._operators is None else self._operators.trace()

    def _note_failure(self, error: BaseException) -> None:
        note_failure("torch", "a hook of ours failed", error)


active: TorchWatch | None = None
_inherited: TorchWatch | None = None
"""The parent's, in a forked child."""


def begin(torch: ModuleType) -> None:
    """Start to watch; torch is there now."""
    global active, _inherited
    if _inherited is not None:
        _inherited.stop()
        _inherited = None
    if active is None:
        active = TorchWatch(torch)
    if not active.running:
        active.start()


def abandon() -> None:
    """In a forked child: what was seen is the parent's, and nothing more is until the next ``begin()``."""
    global active, _inherited
    if active is not None:
        active.abandon()
        _inherited, active = active, None
