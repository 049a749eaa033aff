"""From the calls torch was asked to make to the places of each module in them.

A node of the calls is a phase or a module. Phases are looked through: a module called by an
optimizer's closure stands where it stands when the program calls it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyrometer.analysis.call_tree import TreeNode, difference, sum_known, sum_of, tree_of_strands
from pyrometer.analysis.step_kinds import any_trains, group_trains
from pyrometer.record.torch_run import (
    FORWARD_WITHOUT_GRADIENTS,
    OTHER,
    PHASES,
    RECOMPUTED_FORWARD,
    Module,
    StepGroup,
    TorchRun,
)
from pyrometer.stats.rates import per

# Their own forward calls one module after the other and computes nothing.
_PURE_CONTAINERS = frozenset({"Sequential"})


# A string, whose hash is known: each call of each module is looked up by it.
class Pass(StrEnum):
    """What a module is called for."""

    FORWARD = "forward"
    WITHOUT_GRADIENTS = "without gradients"
    BACKWARD = "backward"
    RECOMPUTED = "recomputed"
    """Forward once more, by the backward pass (activation checkpointing)."""


PASSES = tuple(Pass)
"""All of them, in the order figures are told in."""

_PASS_OF_PHASE = {
    "forward": Pass.FORWARD,
    "loss": Pass.FORWARD,
    FORWARD_WITHOUT_GRADIENTS: Pass.WITHOUT_GRADIENTS,
    "backward": Pass.BACKWARD,
    RECOMPUTED_FORWARD: Pass.RECOMPUTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFigures:
    """Calls of one sort: forward, forward without gradients, backward, or recomputed.

    ``self_ns`` is ``total_ns`` less the time in modules below; summed over all places of a tree
    it is the time in modules. The bytes are of torch's CPU tensors, None where not counted.
    """

    calls: int
    total_ns: int
    self_ns: int
    allocated_bytes: int | None
    self_allocated_bytes: int | None


_NO_CALLS = PassFigures(calls=0, total_ns=0, self_ns=0, allocated_bytes=None, self_allocated_bytes=None)


class GatheredPass:
    """Calls of one sort at one place, while they are gathered."""

    __slots__ = (
        "allocated_bytes", "calls", "has_inside", "has_self", "self_allocated_bytes", "self_ns", "total_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = 0
        self.total_ns = 0
        self.self_ns = 0
        self.allocated_bytes: int | None = 0
        self.self_allocated_bytes: int | None = 0
        # Whether any node was added to the total, and to what is its own.
        self.has_inside = False
        self.has_self = False

    def add_call(self, node: TreeNode) -> None:
        """A node of the module itself."""
        self.calls += node.calls + node.open_calls
        self.add_inside(node)

    def add_inside(self, node: TreeNode) -> None:
        """A node that is part of the total, without being a call."""
        self.total_ns += node.total_ns
        self.allocated_bytes = sum_of(self.allocated_bytes, node.allocated_bytes)
        self.has_inside = True

    def add_self(self, node: TreeNode) -> None:
        """A node whose own time is the module's: its own, or a phase's inside it."""
        self.self_ns += node.self_ns
        self.self_allocated_bytes = sum_of(self.self_allocated_bytes, node.self_allocated_bytes)
        self.has_self = True

    def take_away(self, node: TreeNode) -> None:
        """A node inside that is counted elsewhere."""
        self.total_ns -= node.total_ns
        self.allocated_bytes = difference(self.allocated_bytes, node.allocated_bytes)
        self.has_inside = True


class GatheredPlace:
    """One module under one path of modules."""

    __slots__ = ("children", "name", "outer", "outermost", "passes")

    def __init__(self, name: str, outer: "GatheredPlace | None") -> None:
        self.name = name
        self.outer = outer
        self.children: dict[str, GatheredPlace] = {}
        self.outermost = not _stands_in(name, outer)
        self.passes: dict[Pass, GatheredPass] = {}
        """Only those it was called for."""

    def called_for(self, current: Pass) -> GatheredPass:
        """Its calls of one sort, to add to."""
        gathered = self.passes.get(current)
        if gathered is None:
            gathered = self.passes[current] = GatheredPass()
        return gathered


class _Gathering:
    """Places as they are met; ``around`` is what the node to come stands in, from the top."""

    def __init__(self, torch: TorchRun) -> None:
        self.places: list[GatheredPlace] = []
        self._modules = {module.name for module in torch.modules}
        self._phases = {OTHER, *_PASS_OF_PHASE, *PHASES}
        self._phases.update(name for group in torch.groups for name in group.phases)
        self._tops: dict[str, GatheredPlace] = {}
        self._by_name: dict[str, GatheredPlace] = {}
        self._around: list[tuple[GatheredPlace | None, Pass]] = []

    def meet(self, depth: int, node: TreeNode) -> None:
        """The next node of a walk, each parent before its children."""
        del self._around[depth:]
        place, current = self._around[-1] if self._around else (None, Pass.FORWARD)
        at_top = not depth or node.starts_strand
        if at_top or (node.name in self._phases and node.name not in self._modules):
            self._around.append(self._enter_phase(node, place, current))
        else:
            begins_again = current is Pass.RECOMPUTED and place is None
            place = self._place_of(node.name, place, current)
            called = place.called_for(current)
            called.add_call(node)
            called.add_self(node)
            outer = place.outer if begins_again else None
            while outer is not None:
                outer.called_for(current).add_inside(node)
                outer = outer.outer
            self._around.append((place, current))

    def _enter_phase(
        self, node: TreeNode, place: GatheredPlace | None, current: Pass
    ) -> tuple[GatheredPlace | None, Pass]:
        inner = _PASS_OF_PHASE.get(node.name, current)
        if inner is Pass.RECOMPUTED:
            # In every backward pass, timed or not, so it is no part of what is scaled from the timed ones.
            while place is not None:
                place.called_for(current).take_away(node)
                place = place.outer
        elif place is not None and inner is current and not node.starts_strand:
            place.called_for(current).add_self(node)
        return place, inner

    def _place_of(self, name: str, outer: GatheredPlace | None, current: Pass) -> GatheredPlace:
        if outer is None and current is Pass.RECOMPUTED and name in self._by_name:
            return self._by_name[name]
        siblings = self._tops if outer is None else outer.children
        if name not in siblings:
            siblings[name] = GatheredPlace(name, outer)
            self._by_name.setdefault(name, siblings[name])
            self.places.append(siblings[name])
        return siblings[name]


def gather_places(torch: TorchRun) -> list[GatheredPlace]:
    """Every place of every module, each after the one above it."""
    gathering = _Gathering(torch)
    roots = tree_of_strands(torch.calls, 0).roots
    # Last: what is recomputed goes to the place that the forward pass has shown.
    for root in sorted(roots, key=lambda root: root.name == "backward"):
        for depth, node in root.walk():
            gathering.meet(depth, node)
    return gathering.places


def pass_at(place: GatheredPlace, sort: Pass) -> PassFigures:
    """The figures of one module's calls of one sort, at one place."""
    called = place.passes.get(sort)
    if called is None:
        return _NO_CALLS
    return PassFigures(
        calls=called.calls,
        total_ns=called.total_ns,
        self_ns=called.self_ns,
        allocated_bytes=called.allocated_bytes if called.has_inside else None,
        self_allocated_bytes=called.self_allocated_bytes if called.has_self else None,
    )


def pass_at_all(places: Sequence[GatheredPlace], sort: Pass) -> PassFigures:
    """The same at all places of a module, its totals at the outermost ones."""
    called = [place.passes[sort] for place in places if sort in place.passes]
    if not called:
        return _NO_CALLS
    outermost = [place.passes[sort] for place in places if place.outermost and sort in place.passes]
    return PassFigures(
        calls=sum(figures.calls for figures in called),
        total_ns=sum(figures.total_ns for figures in outermost),
        self_ns=sum(figures.self_ns for figures in called),
        allocated_bytes=_bytes([figures.allocated_bytes for figures in outermost if figures.has_inside]),
        self_allocated_bytes=_bytes([figures.self_allocated_bytes for figures in called if figures.has_self]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PerStep:
    """How to spread the time of modules over the steps it was spent in."""

    steps: int
    """Those that were recorded."""
    called_steps: int
    """Those in which modules were counted: also the ones slowed by looking at their operators."""
    step_ns: float | None
    counts_without_gradients: bool
    """Whether forward passes without gradients are part of those steps."""
    backward_ns: float
    """What one step of those takes in its backward phase, for each nanosecond of the timed passes."""
    timed_backward_passes: int

    def ns(self, forward_ns: int, without_gradients_ns: int, backward_ns: int, recomputed_ns: int) -> float:
        """Time per step: of the backward phase a module has the part that it had of the timed passes."""
        all_ns: float = forward_ns + recomputed_ns
        if self.counts_without_gradients:
            all_ns += without_gradients_ns
        return (per(all_ns, self.called_steps) or 0.0) + backward_ns * self.backward_ns

    def figures(
        self, forward: PassFigures, without: PassFigures, backward: PassFigures, recomputed: PassFigures
    ) -> "StepFigures":
        """A module's calls, spread over the steps."""
        ahead = [forward, recomputed, *([without] if self.counts_without_gradients else [])]
        timed = self.timed_backward_passes > 0
        known = [figures.allocated_bytes for figures in ahead if figures.allocated_bytes is not None]
        return StepFigures(
            calls=per(sum(figures.calls for figures in ahead), self.called_steps) or 0.0,
            forward_ns=per(sum(figures.total_ns for figures in ahead), self.called_steps) or 0.0,
            forward_self_ns=per(sum(figures.self_ns for figures in ahead), self.called_steps) or 0.0,
            backward_ns=self.ns(0, 0, backward.total_ns, 0) if timed else None,
            backward_self_ns=self.ns(0, 0, backward.self_ns, 0) if timed else None,
            allocated_bytes=per(sum(known), self.called_steps) if known else None,
        )


def per_step_of(torch: TorchRun) -> PerStep:
    """Over the steps that train or record gradients, if the run trains, else over all."""
    groups = [group for group in torch.groups if group.steps]
    if any_trains(groups):
        groups = [group for group in groups if group_trains(group) or group.grad_forward_calls]
    steps = sum(group.steps for group in groups)
    return PerStep(
        steps=steps,
        called_steps=steps + _looked_at_closely(torch, groups),
        backward_ns=_backward_of_a_step(torch, groups, steps),
        step_ns=per(sum(group.total_ns for group in groups), steps),
        counts_without_gradients=len(groups) == sum(1 for group in torch.groups if group.steps),
        timed_backward_passes=torch.timed_backward_passes,
    )


def _looked_at_closely(torch: TorchRun, groups: Sequence[StepGroup]) -> int:
    """Steps of these groups that are in no group, because looking at their operators slowed them."""
    if torch.operators is None or not torch.operators.windows:
        return 0
    labels = {group.label for group in groups}
    here = sum(window.label in labels for window in torch.operators.windows)
    return round(torch.operators.left_out_steps * here / len(torch.operators.windows))


def _backward_of_a_step(torch: TorchRun, groups: Sequence[StepGroup], steps: int) -> float:
    """What a step has of its backward phase for each nanosecond of the timed passes.

    By the phase itself, and not by the number of passes: a few chosen at random may well be long ones.
    """
    phase_ns = sum(
        group.phase_ns[group.phases.index("backward")] for group in groups if "backward" in group.phases
    )
    if phase_ns and torch.timed_backward_ns:
        return phase_ns / torch.timed_backward_ns / steps
    passes = per(torch.backward_passes, torch.timed_backward_passes)
    return (per(passes, steps) or 0.0) if passes is not None else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """A module in one step, averaged: ``forward_ns`` and ``backward_ns`` are all of its time."""

    calls: float
    """Forward calls, those made again in the backward pass too."""
    forward_ns: float
    """With what the backward pass computed once more (activation checkpointing)."""
    forward_self_ns: float
    backward_ns: float | None
    """Its part of the timed passes, of the backward phase; None when none was timed."""
    backward_self_ns: float | None
    allocated_bytes: float | None
    """In its forward calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flops:
    """Floating-point operations of all forward calls at a place and below."""

    calls: int
    counted: float | None
    at_least: bool


def count_flops(places: Sequence[GatheredPlace], facts: Mapping[str, Module]) -> dict[GatheredPlace, Flops]:
    """For each place what the measured calls say of all its calls, with everything below."""
    counts: dict[GatheredPlace, Flops] = {}
    for place in reversed(places):
        passes = place.passes
        calls = sum(passes[sort].calls for sort in (Pass.FORWARD, Pass.WITHOUT_GRADIENTS) if sort in passes)
        module = facts.get(place.name)
        own = None if module is None else per(module.flops, module.measured_calls)
        computes = module is None or module.kind not in _PURE_CONTAINERS
        parts = [counts[child] for child in place.children.values() if counts[child].calls]
        counted = [part.counted for part in parts if part.counted is not None]
        if own is not None:
            counted.append(own * calls)
        counts[place] = Flops(
            calls=calls,
            counted=sum(counted) if counted else None,
            at_least=(own is None and computes) or any(part.at_least for part in parts),
        )
    return counts


def flops_of_a_call(places: Sequence[Flops]) -> tuple[float | None, bool]:
    """The operations of one call, and whether that is the least they can be."""
    called = [place for place in places if place.calls]
    counted = [place.counted for place in called if place.counted is not None]
    if not counted:
        return None, False
    at_least = len(counted) < len(called) or any(place.at_least for place in called)
    return per(sum(counted), sum(place.calls for place in called)), at_least


def _bytes(sizes: Sequence[int | None]) -> int | None:
    return sum_known(sizes) if sizes else None


def _stands_in(name: str, outer: GatheredPlace | None) -> bool:
    while outer is not None:
        if outer.name == name:
            return True
        outer = outer.outer
    return False
