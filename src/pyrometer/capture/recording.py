"""The one recorder of this process, and the switches around it.

Off by default. Scopes cost next to nothing then, because the recorder asks one flag.
"""

from __future__ import annotations

import copyreg
import os
import sys
import threading
from types import ModuleType, TracebackType

from pyrometer._native import Recorder, Scope
from pyrometer.capture import allocations, garbage, processes
from pyrometer.capture.losses import failures, note_failure
from pyrometer.capture.threads import ThreadHooks

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyrometer.capture.sampling import Sampling
    from pyrometer.capture.torch_watch import TorchWatch

recorder = Recorder()

# The bound method itself: a function of ours around it would cost more than the scope.
scope = recorder.scope


def scope_named(name: str) -> Scope:
    """A scope of this process's recorder: what one becomes that was copied or pickled."""
    return scope(name)


def _reduce_scope(original: Scope) -> tuple[Callable[[str], Scope], tuple[str]]:
    return scope_named, (original.name,)


# A model that keeps a scope is copied, saved and sent to workers like any other.
copyreg.pickle(Scope, _reduce_scope)

_hooks = ThreadHooks(recorder)
# A signal handler of the program's, or a __del__, may find its own thread inside.
_lock = threading.RLock()
_starts = 0
_watching_forks = False
_await_torch_no_more: Callable[[], None] | None = None
_torch_is_watched = True


def start() -> None:
    """Switch on. Starts nest: it takes as many stops to switch off."""
    global _starts, _watching_forks
    with _lock:
        if not _watching_forks:
            os.register_at_fork(
                before=_before_fork, after_in_parent=_after_fork, after_in_child=_begin_anew_in_child
            )
            _watching_forks = True
            processes.begin()
        if _starts == 0:
            _hooks.install()
            allocations.start()
            garbage.watch.start()
        _starts += 1
        recorder.start()
        is_first = _starts == 1
        if is_first:
            _begin_sampling()
    if is_first and _torch_is_watched:
        # Not with the lock: another thread may be importing torch, and need it at the end.
        _await_torch()


def stop() -> None:
    """Undo one ``start()``; what was recorded stays until ``reset()``."""
    global _starts
    with _lock:
        if _starts == 0:
            return
        _starts -= 1
        recorder.stop()
        if _starts == 0:
            _end_sampling()
            _hooks.remove()
            _leave_torch()
            garbage.watch.stop()
            allocations.stop()


def reset() -> None:
    """Forget everything recorded so far; scopes open now are not seen again."""
    recorder.reset()
    allocations.reset()
    garbage.watch.reset()
    failures.clear()
    processes.begin()
    samples = sampling()
    if samples is not None:
        samples.reset()
    watch = torch_watch()
    if watch is not None:
        try:
            watch.reset()
        except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
            note_failure("torch", "what was seen may not be forgotten", error)


def watch_torch(*, wanted: bool) -> None:
    """Whether the program's PyTorch work is watched, from the next first ``start()`` on."""
    global _torch_is_watched
    _torch_is_watched = wanted


def torch_watch() -> TorchWatch | None:
    """What watches the program's PyTorch work; None while it has not imported torch."""
    module = sys.modules.get("pyrometer.capture.torch_watch")
    return None if module is None else module.active


def sampling() -> Sampling | None:
    """What samples the program's stacks; None before the first start, or where that was asked not to be."""
    module = sys.modules.get("pyrometer.capture.sampling")
    return None if module is None else module.active


def _begin_sampling() -> None:
    from pyrometer.capture import sampling

    sampling.begin(recorder)


def _end_sampling() -> None:
    samples = sampling()
    if samples is not None:
        samples.stop()


def _await_torch() -> None:
    global _await_torch_no_more
    from pyrometer.capture.import_watch import when_imported

    _await_torch_no_more = when_imported("torch", _begin_torch)


def _begin_torch(torch: ModuleType) -> None:
    from pyrometer.capture import torch_watch

    with _lock:
        if _starts > 0:
            torch_watch.begin(torch)
            samples = sampling()
            if samples is not None and torch_watch.active is not None:
                samples.see_calls(torch_watch.active.calls)


def _leave_torch() -> None:
    if _await_torch_no_more is not None:
        _await_torch_no_more()
    watch = torch_watch()
    if watch is not None and watch.running:
        try:
            watch.stop()
        except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
            note_failure("torch", "what was replaced may not be put back", error)


class profile:  # noqa: N801 - used as a word, `with profile():`, like `contextlib.suppress`.
    """Switches recording on for a stretch of the program; stretches nest, and their times add up.

    Nothing is written or printed: ask ``results()`` or ``report()``.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop()


def _before_fork() -> None:
    """A child must not find the sampler at work; and Python warns of forks beside another thread."""
    _end_sampling()


def _after_fork() -> None:
    if recorder.enabled:
        processes.forks += 1
        _begin_sampling()


def _begin_anew_in_child() -> None:
    """A forked child starts clean: what was recorded is its parent's, what it does is its own."""
    global _lock
    # Another thread of the parent may have held it, and that thread does not exist here.
    _lock = threading.RLock()
    module = sys.modules.get("pyrometer.capture.torch_watch")
    if module is not None:
        module.abandon()
    recorder.reset()
    garbage.watch.begin_anew_in_child()
    failures.clear()
    processes.begin()
