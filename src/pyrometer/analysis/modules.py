"""Modules: what each ``nn.Module`` took, forward and backward, by name and as the tree of calls.

All figures are over the whole run, warm-up too. Forward passes made while no gradients are
recorded stand apart. Backward figures are over the passes in which modules were timed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pyrometer.record.torch_run import TorchRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFigures:
    """Calls of one sort (forward, forward without gradients, or backward).

    ``self_ns`` is ``total_ns`` less the time in modules below; summed over all places of a tree
    it is the time in modules. The bytes are of torch's CPU tensors, None where not counted.
    """

    calls: int
    total_ns: int
    self_ns: int
    allocated_bytes: int | None
    self_allocated_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePlace:
    """One module at one place in the tree of calls, ``children`` with most time per step first."""

    name: str
    """Qualified: ``model.layers.0.attn``."""
    kind: str | None
    """Its class; None when the record does not say."""
    forward: PassFigures
    """While gradients were recorded; of loss modules too."""
    without_gradients: PassFigures
    backward: PassFigures
    """Over the timed backward passes."""
    ns_per_step: float
    """Forward and backward, as in ``ModuleRow.ns_per_step``."""
    share: float | None
    """Of the steps' time, as in ``ModuleRow.share``."""
    hidden: str | None
    children: "tuple[ModulePlace, ...]"

    def walk(self) -> "Iterator[tuple[int, ModulePlace]]":
        """This place and all below it with their depth, each parent before its children."""
        return _walk((self,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRow:
    """All calls of one module, wherever they were made.

    Totals count outermost calls only, so the time of a module that calls itself is counted once;
    ``self_ns`` counts every call.
    """

    name: str
    kind: str | None
    places: int
    """How many places in the tree it has: several when it is shared or called from several modules."""
    forward: PassFigures
    without_gradients: PassFigures
    backward: PassFigures
    """Over the timed backward passes."""
    backward_ns_per_pass: float | None
    """Averages over the timed backward passes; None when there were none."""
    backward_self_ns_per_pass: float | None
    ns_per_step: float
    """Forward plus backward in one step of ``ModuleTable.steps``."""
    self_ns_per_step: float
    share: float | None
    """``ns_per_step`` against the mean step; None without steps."""
    self_share: float | None
    parameters: int | None
    """Of it and the modules below; None when the record does not say, likewise the bytes."""
    parameter_bytes: int | None
    output_bytes_per_call: float | None
    flops_per_call: float | None
    """Floating-point operations of one forward call, by formula, with those of the modules below;
    None when none of them was counted."""
    flops_are_at_least: bool
    """Some of the modules in it have no formula: the true figure is higher."""
    hidden: str | None
    """``compiled`` or ``scripted``: what runs inside cannot be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTable:
    """The modules of a run."""

    rows: tuple[ModuleRow, ...]
    """Each module that was called, most ``ns_per_step`` first, then by name."""
    roots: tuple[ModulePlace, ...]
    """The same as a tree: modules called by no other one."""
    steps: int
    """The steps ``ns_per_step`` is over: those that train, else all."""
    step_ns: float | None
    """The mean of those steps, warm-up too; None without steps."""
    backward_passes: int
    timed_backward_passes: int
    parameters: int | None
    """Of all root modules together."""
    parameter_bytes: int | None
    hidden: tuple[str, ...]
    """Modules whose inside cannot be seen."""

    def walk(self) -> Iterator[tuple[int, ModulePlace]]:
        """Every place of the tree with its depth, each parent before its children."""
        return _walk(self.roots)


def build_modules(torch: TorchRun) -> ModuleTable:
    """What each module of the run took."""
    ...


def _walk(roots: tuple[ModulePlace, ...]) -> Iterator[tuple[int, ModulePlace]]:
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, place = waiting.pop()
        yield depth, place
        waiting.extend((depth + 1, child) for child in reversed(place.children))
