"""What the program itself says of its steps and phases: it goes before what we find."""

from __future__ import annotations

import threading

from pyrometer.capture.losses import note_failure
from pyrometer.capture.recording import torch_watch

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from pyrometer.capture.torch_watch import TorchWatch

_NOT_WATCHED = -1


class _Entered:
    """One entry of a phase, on the thread that made it."""

    __slots__ = ("is_left", "thread_id", "token")

    def __init__(self, token: int) -> None:
        self.token = token
        self.thread_id = threading.get_ident()
        self.is_left = False


class _Phases(threading.local):
    """The phases that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.phases: list[_Entered] = []


_here = _Phases()


class phase:  # noqa: N801 - used as a word, `with phase("augment"):`, like `contextlib.suppress`.
    """The code inside is this phase of the step, whatever torch is asked to do in it.

    One of the names found without a word (``data``, ``forward``, …) counts there. Without a
    recording, or without torch, it does nothing.
    """

    __slots__ = ("_entered", "_name")

    def __init__(self, name: str) -> None:
        if type(name) is not str or not name:
            raise TypeError(f"a phase's name must be a str that is not empty, not {name!r}")
        self._name = name
        self._entered: list[_Entered] = []

    def __enter__(self) -> None:
        watch = _running_watch()
        token = _NOT_WATCHED
        if watch is not None:
            try:
                token = watch.enter_phase(self._name)
            except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
                note_failure("torch", "a phase that the program named is not seen", error)
        entered = _Entered(token)
        _here.phases.append(entered)
        self._entered.append(entered)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        here = threading.get_ident()
        # One phase may be entered by several threads, and by each more than once.
        place = max((n for n, each in enumerate(self._entered) if each.thread_id == here), default=-1)
        self._entered.pop(place).is_left = True
        phases = _here.phases
        # Coroutines leave phases in any order: an outer one waits for those inside.
        while phases and phases[-1].is_left:
            self._leave(phases.pop().token)

    @staticmethod
    def _leave(token: int) -> None:
        watch = _running_watch()
        if watch is not None and token != _NOT_WATCHED:
            try:
                watch.leave_phase(token)
            except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
                note_failure("torch", "the end of a phase that the program named is not seen", error)


class step:  # noqa: N801 - likewise, `with step():`.
    """The code inside is one step. From the first on, steps are only what the program marks so.

    ``samples`` says how many were worked on, where neither a loader nor a model's input shows it.
    """

    __slots__ = ("_name", "_samples")

    def __init__(self, name: str = "step", *, samples: int | None = None) -> None:
        if type(name) is not str or not name:
            raise TypeError(f"a step's name must be a str that is not empty, not {name!r}")
        if samples is not None and (type(samples) is not int or samples < 0):
            raise TypeError(f"a step's samples must be a whole number from 0, not {samples!r}")
        self._name = name
        self._samples = samples

    def __enter__(self) -> None:
        watch = _running_watch()
        if watch is not None:
            try:
                watch.mark_begun(self._name, self._samples)
            except Exception as error:  # noqa: BLE001 - the program goes on whatever happens to us
                note_failure("torch", "a step that the program marked is not seen", error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        watch = _running_watch()
        if watch is not None:
            try:
                watch.mark_ended()
            except Exception as failure:  # noqa: BLE001 - likewise
                note_failure("torch", "a step that the program marked is not seen", failure)


def _running_watch() -> TorchWatch | None:
    watch = torch_watch()
    return watch if watch is not None and watch.running else None
