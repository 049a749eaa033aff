"""What a group of steps is: training, evaluation, inference, generation, or what the program marked."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.torch_run import StepGroup

# Epochs that end with fewer batches than the others make averages a little off the whole number.
_SEVERAL = 1.5


class GroupKind(Enum):
    """What the steps of a group do."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    """Forward passes in a run that also trains."""
    INFERENCE = "inference"
    """Forward passes in a run that does not train."""
    GENERATION = "generation"
    """A forward pass for each token."""
    MARKED = "marked"
    """Steps the program marked itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNature:
    """What a group is, beyond its kind."""

    kind: GroupKind
    trains: bool
    """Its steps have backward passes or an optimizer."""
    optimizers: tuple[str, ...]
    """Those that step together in one step; empty where none does."""
    accumulates: int | None
    """Gradient accumulation: how many batches, each with its backward pass, make one step; else None."""
    closure: bool
    """The optimizer calls forward and backward itself, several times a batch (as L-BFGS does)."""


def nature_of(group: StepGroup, *, run_trains: bool) -> GroupNature:
    """What a group is, by its kind and counts."""
    trains = group_trains(group)
    optimizers = tuple(group.label.split(" + ")) if group.kind == "training" else ()
    closure = trains and _has_closure(group, optimizers)
    accumulates = _batches_per_step(group, optimizers) if trains and not closure else None
    return GroupNature(
        kind=_kind(group, run_trains=run_trains),
        trains=trains,
        optimizers=optimizers,
        accumulates=accumulates,
        closure=closure,
    )


def group_trains(group: StepGroup) -> bool:
    """Whether an optimizer stepped in it, or gradients were computed."""
    return group.kind == "training" or group.backward_passes > 0


def any_trains(groups: Iterable[StepGroup]) -> bool:
    """Whether the run trains at all."""
    return any(group_trains(group) for group in groups)


def _kind(group: StepGroup, *, run_trains: bool) -> GroupKind:
    if group.kind == "forward":
        return GroupKind.EVALUATION if run_trains else GroupKind.INFERENCE
    return GroupKind(group.kind)


def _has_closure(group: StepGroup, optimizers: tuple[str, ...]) -> bool:
    if any("LBFGS" in name for name in optimizers):
        return True
    # Without a loader nothing tells new batches from the same one again; several optimizers have
    # forward and backward passes of their own each.
    if not group.batches or len(optimizers) != 1:
        return False
    return min(group.forward_calls, group.backward_passes) >= _SEVERAL * group.batches


def _batches_per_step(group: StepGroup, optimizers: tuple[str, ...]) -> int | None:
    # Without a loader each forward pass may be a new batch, unless several optimizers want theirs.
    batches = group.batches or (group.forward_calls if len(optimizers) <= 1 else 0)
    if min(batches, group.backward_passes) < _SEVERAL * group.steps:
        return None
    return round(min(batches, group.backward_passes) / group.steps)
