"""All findings of a run, ranked."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyrometer.analysis.findings import (
    batches,
    between_steps,
    loading,
    machine_limits,
    memory,
    operators,
    python_code,
    steps,
    training,
)
from pyrometer.analysis.findings.drafting import Answer, Finder, Missing, main_group_of
from pyrometer.analysis.findings.model import (
    MOST_FINDINGS,
    Finding,
    FindingKind,
    Findings,
    GainOf,
    NotLookedFor,
)
from pyrometer.analysis.observed import Observed
from pyrometer.units import format_count, format_share

FINDERS: dict[FindingKind, Finder] = {
    FindingKind.INPUT_BOUND: loading.find_input_bound,
    FindingKind.TOO_FEW_WORKERS: loading.find_too_few_workers,
    FindingKind.IDLE_WORKERS: loading.find_idle_workers,
    FindingKind.WORKERS_RESTART: loading.find_restarting_workers,
    FindingKind.SLOW_COLLATE: loading.find_slow_collate,
    FindingKind.SLOW_TRANSFORM: loading.find_slow_transform,
    FindingKind.OPTIMIZER_LOOP: training.find_optimizer_loop,
    FindingKind.TINY_OPERATORS: operators.find_tiny_operators,
    FindingKind.NO_CACHE: training.find_no_cache,
    FindingKind.ALLOCATION_CHURN: memory.find_churn,
    FindingKind.SYNCHRONISING: operators.find_synchronising,
    FindingKind.UNUSED_GRADIENTS: training.find_unused_gradients,
    FindingKind.COPIES: operators.find_copies,
    FindingKind.DOUBLE_PRECISION: training.find_double_precision,
    FindingKind.TOO_MANY_THREADS: training.find_too_many_threads,
    FindingKind.SMALL_BATCH: batches.find_small_batch,
    FindingKind.GARBAGE_COLLECTION: memory.find_collections,
    FindingKind.MEMORY_GROWTH: memory.find_growth,
    FindingKind.LONG_TAIL: steps.find_long_tail,
    FindingKind.FIRST_CALL: steps.find_first_call,
    FindingKind.HOT_PYTHON: python_code.find_hot_python,
    FindingKind.OUTSIDE_PHASES: between_steps.find_outside_phases,
    FindingKind.MEMORY_BOUND: machine_limits.find_memory_bound,
    FindingKind.STRIDED_ACCESS: machine_limits.find_strided_access,
    FindingKind.STALLS: between_steps.find_stalls,
    FindingKind.GRAPH_BREAKS: machine_limits.find_graph_breaks,
    FindingKind.GPU_IDLE: machine_limits.find_idle_gpu,
    FindingKind.LAUNCH_BOUND: machine_limits.find_launch_bound,
}


BUSY_MACHINE_SHARE = 0.3
OF_TORCH = frozenset(FindingKind) - {
    FindingKind.GARBAGE_COLLECTION,
    FindingKind.MEMORY_GROWTH,
    FindingKind.HOT_PYTHON,
    FindingKind.STRIDED_ACCESS,
}
NO_TORCH = Missing(reason="the program did not use PyTorch")


def find(observed: Observed) -> Findings:
    """What is worth changing in this run, what was looked for in vain, and what could not be looked for."""
    found: list[Finding] = []
    clear: list[FindingKind] = []
    missing: list[NotLookedFor] = []
    for kind, finder in FINDERS.items():
        answer: Answer = NO_TORCH if observed.torch is None and kind in OF_TORCH else finder(observed)
        if isinstance(answer, Missing):
            missing.append(NotLookedFor(kind=kind, reason=answer.reason))
        elif answer:
            found += answer
        else:
            clear.append(kind)
    ranked = rank(found)
    shown = ranked[:MOST_FINDINGS]
    return Findings(
        found=shown,
        not_shown=len(ranked) - len(shown),
        clear=tuple(clear),
        not_looked_for=tuple(missing),
        strengths=(
            *(() if observed.torch is None else observed.torch.strengths),
            *memory.find_memory_strengths(observed),
            *machine_limits.find_roof_strengths(observed),
        ),
        verdict=" ".join(
            (
                _verdict(ranked, looked_for=len(FINDERS) - len(missing), missing=len(missing)),
                *_caveat(observed),
            )
        ),
    )


def _caveat(observed: Observed) -> Iterator[str]:
    """That the machine was busy with something else, where times say more of that than of the program."""
    main = main_group_of(observed)
    waiting = None if isinstance(main, Missing) else training.waiting_while_computing(observed, main)
    if waiting is not None and waiting >= BUSY_MACHINE_SHARE:
        yield (
            f"Mind: in {format_share(waiting)} of a step its thread was to compute and had no core, or "
            "waited for other threads."
        )


def rank(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The largest possible gain first; time before memory where alike, those without a bound last."""

    def place(one: Finding) -> tuple[bool, float, bool]:
        gain = one.gain
        is_memory = gain is not None and gain.of is GainOf.MEMORY
        return gain is None, 0.0 if gain is None else -gain.share, is_memory

    ordered = sorted(found, key=place)
    return tuple(replace(one, rank=number) for number, one in enumerate(ordered, start=1))


def _verdict(ranked: tuple[Finding, ...], *, looked_for: int, missing: int) -> str:
    """The run in one sentence."""
    if not ranked:
        unseen = f", {format_count(missing, 'other')} could not be looked for" if missing else ""
        return f"Nothing found: {format_count(looked_for, 'kind')} of slowness were looked for{unseen}."
    first = ranked[0]
    bound = (
        "" if first.gain is None else f": at most {format_share(first.gain.share)} of {first.gain.of.value}"
    )
    others = len(ranked) - 1
    more = f", and {format_count(others, 'more finding')}" if others else ""
    return f"{first.what[:1].upper()}{first.what[1:]}{bound}{more}."
