"""What must hold in the PyTorch part of a run beyond the types of its fields."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pyrometer.record.operators_validation import operators_problems
from pyrometer.record.torch_run import (
    OPTIMIZER_IMPLEMENTATIONS,
    OTHER,
    Generation,
    OptimizerFacts,
    Step,
    StepGroup,
    TorchRun,
)
from pyrometer.record.tree_validation import Problem, bucket_problems, strand_problems

_KINDS = ("training", "forward", "generation", "marked")


def torch_problems(torch: TorchRun, place: str) -> Iterator[Problem]:
    """What contradicts itself in the PyTorch part."""
    if torch.window is not None and torch.window[1] is not None and torch.window[1] <= torch.window[0]:
        yield Problem(place=f"{place}.window", text=f"the window {list(torch.window)} holds no step")
    for index, group in enumerate(torch.groups):
        yield from _group_problems(group, f"{place}.groups[{index}]")
    yield from strand_problems(torch.calls, f"{place}.calls")
    yield from _part_problems(
        torch.timed_backward_passes,
        torch.backward_passes,
        f"{place}.timed_backward_passes",
        "backward_passes",
    )
    for index, optimizer in enumerate(torch.optimizers):
        yield from _optimizer_problems(optimizer, f"{place}.optimizers[{index}]")
    for index, generation in enumerate(torch.generations):
        yield from _generation_problems(generation, f"{place}.generations[{index}]")
    if torch.operators is not None:
        yield from operators_problems(torch.operators, f"{place}.operators", kinds=_KINDS)
    utilisation = None if torch.gpu is None else torch.gpu.utilisation_percent
    if utilisation is not None and not 0 <= utilisation <= 100:
        yield Problem(place=f"{place}.gpu.utilisation_percent", text=f"{utilisation} is not from 0 to 100")


def _group_problems(group: StepGroup, place: str) -> Iterator[Problem]:
    if group.kind not in _KINDS:
        text = f"{group.kind[:40]!r} is none of {', '.join(_KINDS)}"
        yield Problem(place=f"{place}.kind", text=text)
    if not group.phases or group.phases[-1] != OTHER or len({*group.phases}) != len(group.phases):
        yield Problem(place=f"{place}.phases", text=f'the phases must differ, and the last be "{OTHER}"')
    yield from _phase_problems(group.phase_ns, group.total_ns, group, place, whole="total_ns")
    if (group.phase_bytes is None) != (group.phase_allocations is None):
        yield Problem(place=place, text="phase_bytes and phase_allocations must be there both or neither")
    for field in ("phase_bytes", "phase_allocations"):
        figures = getattr(group, field)
        if figures is not None and len(figures) != len(group.phases):
            yield Problem(place=f"{place}.{field}", text=_lengths(figures, group))
    if not group.min_ns * group.steps <= group.total_ns <= group.max_ns * group.steps:
        text = f"{group.steps} steps of {group.min_ns} to {group.max_ns} ns cannot take {group.total_ns} ns"
        yield Problem(place=f"{place}.total_ns", text=text)
    yield from bucket_problems(group.buckets, group.steps, f"{place}.buckets", unit="steps", holder="group")
    yield from _part_problems(
        group.grad_forward_calls, group.forward_calls, f"{place}.grad_forward_calls", "forward_calls"
    )
    yield from _step_problems(group, place)


def _step_problems(group: StepGroup, place: str) -> Iterator[Problem]:
    kept = [*group.first, *group.sampled]
    yield from _part_problems(len(kept), group.steps, place, "steps")
    if any(one.index >= later.index for one, later in pairwise(kept)):
        yield Problem(place=place, text="the steps are not in order, each one once")
    for name in ("first", "sampled"):
        steps: tuple[Step, ...] = getattr(group, name)
        for index, step in enumerate(steps):
            inside = f"{place}.{name}[{index}]"
            yield from _phase_problems(step.phase_ns, step.duration_ns, group, inside, whole="duration_ns")
            if not group.min_ns <= step.duration_ns <= group.max_ns:
                text = f"{step.duration_ns} ns are not from {group.min_ns} to {group.max_ns}"
                yield Problem(place=f"{inside}.duration_ns", text=text)


def _phase_problems(
    phase_ns: Sequence[int], whole_ns: int, group: StepGroup, place: str, *, whole: str
) -> Iterator[Problem]:
    if len(phase_ns) != len(group.phases):
        yield Problem(place=f"{place}.phase_ns", text=_lengths(phase_ns, group))
    elif sum(phase_ns) != whole_ns:
        text = f"the phases take {sum(phase_ns)} ns in all, {whole} is {whole_ns}"
        yield Problem(place=f"{place}.phase_ns", text=text)


def _optimizer_problems(optimizer: OptimizerFacts, place: str) -> Iterator[Problem]:
    chosen = optimizer.implementation
    if chosen is not None and chosen not in OPTIMIZER_IMPLEMENTATIONS:
        text = f"{chosen[:40]!r} is none of {', '.join(OPTIMIZER_IMPLEMENTATIONS)}"
        yield Problem(place=f"{place}.implementation", text=text)


def _generation_problems(generation: Generation, place: str) -> Iterator[Problem]:
    yield from _part_problems(generation.cached_passes, generation.passes, f"{place}.cached_passes", "passes")
    inside = f"{place}.positions"
    highest = -1
    for position in generation.positions:
        if not highest < position.low <= position.high:
            text = "the bins must follow each other, each from low to high"
            yield Problem(place=inside, text=text)
            return
        highest = position.high
    tokens = sum(position.tokens for position in generation.positions)
    yield from _part_problems(tokens, generation.tokens, inside, "tokens")
    total_ns = sum(position.total_ns for position in generation.positions)
    yield from _part_problems(total_ns, generation.total_ns, inside, "total_ns")


def _part_problems(part: int, whole: int, place: str, whole_name: str) -> Iterator[Problem]:
    if part > whole:
        yield Problem(place=place, text=f"{part} are more than the {whole} of {whole_name}")


def _lengths(figures: Sequence[int], group: StepGroup) -> str:
    return f"{len(figures)} figures for {len(group.phases)} phases"
