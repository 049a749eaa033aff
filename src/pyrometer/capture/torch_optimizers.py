"""The program's optimizers: when they step, and what they are called."""

import functools
import sys
import weakref
from typing import Any

from pyrometer._native import Watch
from pyrometer.capture.losses import note_failure
from pyrometer.capture.patches import Patches
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
    """Has the watch see every optimizer's step.

    The methods are replaced, class by class, so that all of a step is seen. One that the program took
    hold of before, as torch's schedulers of learning rates do, is known by torch's own hooks.
    """

    def __init__(self, patches: Patches, watch: Watch, gpu: GpuWatch | None = None) -> None:
        self._patches = patches
        self._watch = watch
        self._gpu = gpu
        module = sys.modules["torch.optim.optimizer"]
        self._handles = (
            module.register_optimizer_step_pre_hook(self._before),
            module.register_optimizer_step_post_hook(self._after),
        )
        self._replace_steps(module.Optimizer)

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
        self._watch.optimizer_ended(optimizer)

    def _replace_steps(self, base: Any) -> None:
        """Replace those there are, and the others as torch puts its hooks around them."""
        put_hooks = base._patch_step_function  # noqa: SLF001 - there is no other sign

        @functools.wraps(put_hooks)
        def put_hooks_and_ours(optimizer: object) -> None:
            put_hooks(optimizer)
            try:
                for kind in type(optimizer).__mro__:
                    self._replace_step(kind)
            except Exception as error:  # noqa: BLE001 - the program trains whatever happens to us
                note_failure("torch", "an optimizer's step is seen only in part", error)

        self._patches.replace(base, put_hooks.__name__, put_hooks_and_ours)
        kinds = [base]
        for kind in kinds:
            self._replace_step(kind)
            kinds += kind.__subclasses__()

    def _replace_step(self, kind: type) -> None:
        step: Any = vars(kind).get("step")
        if getattr(step, "hooked", False) and not self._patches.is_replaced(kind, "step"):
            self._patches.replace(kind, "step", self._watch.step_call(step))
