"""The program's optimizers: when they step, and what they are called."""

import sys
import weakref
from collections.abc import Callable

from pyrometer._native import Watch
from pyrometer.capture.losses import note_failure
from pyrometer.capture.torch_compilation import unseen_by_dynamo
from pyrometer.capture.torch_gpu import GpuWatch
from pyrometer.capture.weak_names import WeakNames


class OptimizerNames:
    """Names optimizers by their class.

    Two that live at the same time are told apart; one made anew goes on under the name of one that
    is gone.
    """

    def __init__(self) -> None:
        self._names = WeakNames()
        self._holders: dict[str, weakref.ref[object]] = {}

    def name_of(self, optimizer: object) -> str:
        """The same for as long as it lives."""
        name = self._names.get(optimizer)
        if name is None:
            name = self._free_name(type(optimizer).__name__)
            self._holders[name] = weakref.ref(optimizer)
            self._names.put(optimizer, name)
        return name

    def _free_name(self, kind: str) -> str:
        name, number = kind, 1
        while (holder := self._holders.get(name)) is not None and holder() is not None:
            number += 1
            name = f"{kind} ({number})"
        return name


class OptimizerHooks:
    """Is told of every optimizer's step by torch's own hooks.

    Not by a wrapper: Dynamo would trace a step anew because of it.
    """

    def __init__(self, watch: Watch, stepped: Callable[[object], None], gpu: GpuWatch | None = None) -> None:
        self._watch = watch
        self._stepped = stepped
        self._gpu = gpu
        module = sys.modules["torch.optim.optimizer"]
        self._handles = (
            module.register_optimizer_step_pre_hook(self._before),
            module.register_optimizer_step_post_hook(self._after),
        )

    def remove(self) -> None:
        """Be told no more."""
        for handle in self._handles:
            handle.remove()

    @unseen_by_dynamo
    def _before(self, optimizer: object, _arguments: object, _keywords: object) -> None:
        self._watch.optimizer_begun(optimizer)
        if self._gpu is not None:
            self._gpu.phase_began("optimizer")

    @unseen_by_dynamo
    def _after(self, optimizer: object, _arguments: object, _keywords: object) -> None:
        if self._gpu is not None:
            self._gpu.phase_ended("optimizer")
        if not self._watch.optimizer_ended(optimizer):
            try:
                self._stepped(optimizer)
            except Exception as error:  # noqa: BLE001 - the program trains whatever happens to us
                note_failure("torch", "a step of an optimizer was not seen", error)
