"""The program's optimizers: when they step, what they are called, and what they are.

Optimizers are held weakly: one lives as long as it would without us.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pyrometer._native import Watch
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_compilation import Uncompiled, unseen_by_dynamo
from pyrometer.capture.torch_gpu import GpuWatch
from pyrometer.capture.torch_modules import has_size, is_traced, unheard
from pyrometer.capture.weak_names import WeakNames
from pyrometer.record.torch_run import MAX_OPTIMIZERS, OptimizerFacts


class OptimizerNames:
    """Names optimizers by their class, and keeps what is known of each by name.

    Two that live at the same time are told apart; one made anew goes on under the name of one that
    is gone, and is what is known then.
    """

    def __init__(self) -> None:
        self._names = WeakNames()
        self._holders: dict[str, weakref.ref[object]] = {}
        self._known: dict[str, OptimizerFacts] = {}
        self._steps: dict[str | None, int] = {}

    def name_of(self, optimizer: object) -> str:
        """The same for as long as it lives; called when its first step has ended."""
        name = self._names.get(optimizer)
        if name is None:
            name = self._free_name(type(optimizer).__name__)
            self._holders[name] = weakref.ref(optimizer)
            self._names.put(optimizer, name)
            self._learn(optimizer, name)
        return name

    def count_steps(self, names: Iterable[str | None]) -> None:
        """These have made a step, each time they are named; None is nobody."""
        # Not a Counter: it counts by a function of Python's, which Dynamo would compile.
        for name in names:
            self._steps[name] = self._steps.get(name, 0) + 1

    def records(self) -> tuple[OptimizerFacts, ...]:
        """Those that have made a step."""
        steps = self._steps.copy()
        return tuple(
            msgspec.structs.replace(facts, steps=steps[name])
            for name, facts in list(self._known.items())
            if name in steps
        )

    def forget_steps(self) -> None:
        """Count anew; names stay, as the watch knows them."""
        self._steps.clear()

    def _learn(self, optimizer: Any, name: str) -> None:
        if name not in self._known and len(self._known) >= MAX_OPTIMIZERS:
            note_loss("torch", "more optimizers than are kept apart: no more is known of the others")
            return
        try:
            self._known[name] = facts_of(optimizer, name)
        except Exception as error:  # noqa: BLE001 - it may be of any class, and answer anything
            self._known[name] = OptimizerFacts(name=name, kind=type(optimizer).__name__)
            note_failure("torch", "an optimizer does not say what it changes", error)

    def _free_name(self, kind: str) -> str:
        name, number = kind, 1
        while (holder := self._holders.get(name)) is not None and holder() is not None:
            number += 1
            name = f"{kind} ({number})"
        return name


def facts_of(optimizer: Any, name: str) -> OptimizerFacts:
    """What it is now. Raises what it raises."""
    kind = type(optimizer).__name__
    if is_traced():
        return OptimizerFacts(name=name, kind=kind)
    # Torch's own functions are asked, and the step that has ended may be one that is compiled.
    with Uncompiled(), unheard():
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        return OptimizerFacts(
            name=name,
            kind=kind,
            implementation=_implementation_of(optimizer),
            tensors=len(tensors),
            parameters=sum(tensor.numel() for tensor in tensors if has_size(tensor)),
        )


def _implementation_of(optimizer: Any) -> str | None:
    module = _module_of_step(type(optimizer))
    if not any(name.startswith("_single_tensor_") for name in module):
        return None  # not torch's own, or the only one of its kind
    chosen = {_choice(group, module) for group in optimizer.param_groups if group["params"]}
    return chosen.pop() if len(chosen) == 1 else None


def _module_of_step(kind: Any) -> dict[str, Any]:
    """The variables of torch's module that the class has its step from; none of anybody else's.

    The step itself says so: what torch and we put around it, on whichever class, has its ``__module__``.
    """
    name = str(getattr(kind.step, "__module__", None))
    module = sys.modules.get(name)
    return vars(module) if module is not None and name.startswith("torch.optim.") else {}


def _choice(group: dict[str, Any], module: dict[str, Any]) -> str:
    """What torch's own function takes for parameters of this group."""
    fused, foreach = group.get("fused"), group.get("foreach")
    choose: Callable[..., tuple[bool, bool]] | None = module.get("_default_to_fused_or_foreach")
    if fused is None and foreach is None and choose is not None:
        _, foreach = choose(group["params"], bool(group.get("differentiable")), use_fused=False)
        if "adam" in module and not group.get("capturable"):
            foreach = foreach and not isinstance(group.get("lr"), sys.modules["torch"].Tensor)
    return "fused" if fused else "foreach" if foreach else "for-loop"


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
