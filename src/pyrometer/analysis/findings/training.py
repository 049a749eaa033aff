"""Findings about the model and its training: optimizer, precision, gradients, threads, generation."""

from collections.abc import Iterator

from pyrometer.analysis.findings.drafting import (
    COMPUTING,
    NO_STEPS,
    Answer,
    Missing,
    See,
    at_most,
    computing_share,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import (
    Evidence,
    Finding,
    FindingKind,
    Gain,
    GainOf,
    Place,
    Remedy,
)
from pyrometer.analysis.generation import CacheUse, GenerationResult, GrowthVerdict
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.record.torch_run import Module, OptimizerFacts
from pyrometer.units import format_bytes, format_count, format_duration, format_share

OPTIMIZER_SHARE = 0.05
FUSED_CLASSES = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})
"""Those torch has fused kernels for, on the CPU too."""
WAITING_SHARE = 0.05
FEWEST_PASSES_WITHOUT_CACHE = 8


def find_optimizer_loop(observed: Observed) -> Answer:
    """Optimizers that update one parameter after the other, in a noticeable part of the step."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    phase, torch = main.phase("optimizer"), observed.run.torch
    if phase is None or phase.share < OPTIMIZER_SHARE or torch is None:
        return ()
    used = [facts for facts in torch.optimizers if facts.name in main.nature.optimizers]
    if not used:
        return Missing(reason="it was not recorded how the optimizer updates its parameters")
    looping = [facts for facts in used if facts.implementation == "for-loop" and facts.tensors > 1]
    if not looping:
        return ()
    largest = max(looping, key=lambda facts: facts.tensors)
    return (
        finding(
            FindingKind.OPTIMIZER_LOOP,
            f"the optimizer {largest.name} updates its {largest.tensors:,} tensors one after the other",
            Evidence(
                text=f"optimizer takes {format_duration(phase.mean_ns)} of a step: "
                f"{format_share(phase.share)}",
                see=See.PHASES,
            ),
            Evidence(
                text=f"{format_count(largest.tensors, 'tensor')} of {largest.parameters:,} parameters in "
                "all, in a loop: neither foreach nor fused",
                see=See.PHASES,
            ),
            place=Place(group=main.label, phase="optimizer"),
            share=phase.share,
            duration_ns=phase.mean_ns,
            gain=at_most(phase.share, "if the optimizer took no time"),
            remedies=(_faster_optimizer(largest),),
        ),
    )


def _faster_optimizer(facts: OptimizerFacts) -> Remedy:
    if facts.kind in FUSED_CLASSES:
        return Remedy(
            text="the fused form, one pass over all parameters",
            snippet=f"torch.optim.{facts.kind}(model.parameters(), lr=lr, fused=True)",
        )
    return Remedy(text="the form that takes all parameters at once", snippet="foreach=True")


def find_double_precision(observed: Observed) -> Answer:
    """Models whose parameters, or whose inputs, are float64."""
    main = main_group_of(observed)
    torch = observed.run.torch
    if isinstance(main, Missing) or torch is None or observed.torch is None:
        return main if isinstance(main, Missing) else Missing(reason=NO_STEPS)
    roots = {place.name for place in observed.torch.modules.roots}
    double = [module for module in torch.modules if module.name in roots and _is_double(module)]
    if not double:
        return ()
    largest = max(double, key=lambda module: module.parameter_bytes)
    computing = computing_share(main)
    texts = []
    if largest.parameter_bytes:
        texts.append(
            f"{format_count(largest.parameters, 'parameter')} of {largest.name} take "
            f"{format_bytes(largest.parameter_bytes)}, 8 bytes each"
        )
    if largest.input_dtype == "float64":
        texts.append(f"{largest.name} is given float64")
    return (
        finding(
            FindingKind.DOUBLE_PRECISION,
            f"the model {largest.name} computes in double precision",
            *(Evidence(text=text, see=See.MODULES) for text in texts),
            Evidence(text=f"computing takes {format_share(computing)} of a step", see=See.PHASES),
            place=Place(group=main.label, module=largest.name),
            share=computing,
            duration_ns=computing * main.steady.mean_ns,
            size_bytes=largest.parameter_bytes or None,
            gain=at_most(computing / 2, "half the bytes and twice the values in a register: half the time"),
        ),
    )


def _is_double(module: Module) -> bool:
    if module.dtype is not None:
        return module.dtype == "float64"
    # Records from before types were kept, and modules without parameters.
    sized = bool(module.parameters) and module.parameter_bytes == 8 * module.parameters
    return sized or (not module.parameters and module.input_dtype == "float64")


def find_unused_gradients(observed: Observed) -> Answer:
    """Forward passes that record gradients nobody asks for."""
    if observed.torch is None or not observed.torch.groups:
        return Missing(reason=NO_STEPS)
    return tuple(
        _unused_gradients(group, observed)
        for group in observed.torch.groups
        if group.records_unused_gradients
    )


def _unused_gradients(group: GroupResult, observed: Observed) -> Finding:
    kept_bytes = _kept_for_gradients(observed)
    peak_bytes = None if observed.memory is None else observed.memory.peak_bytes
    gain = None
    if kept_bytes is not None and peak_bytes:
        gain = at_most(
            kept_bytes / peak_bytes, "if no module's output were kept for gradients", of=GainOf.MEMORY
        )
    return finding(
        FindingKind.UNUSED_GRADIENTS,
        f"{group.nature.kind.value} records gradients that are never used",
        Evidence(
            text=f"{format_share(group.grad_forward_share or 0.0)} of its forward passes recorded gradients, "
            "and no backward pass followed",
            see=See.PHASES,
        ),
        place=Place(group=group.label, phase="forward"),
        size_bytes=kept_bytes,
        gain=gain,
    )


def _kept_for_gradients(observed: Observed) -> float | None:
    """What the modules that call no other give in one pass: at most so much is kept for gradients."""
    if observed.torch is None:
        return None
    rows = {row.name: row for row in observed.torch.modules.rows}
    sizes = [
        rows[place.name].output_bytes_per_call
        for _, place in observed.torch.modules.walk()
        if not place.children and place.name in rows
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def find_too_many_threads(observed: Observed) -> Answer:
    """More threads at work than there are cores for them."""
    main = main_group_of(observed)
    if isinstance(main, Missing) or observed.torch is None:
        return main if isinstance(main, Missing) else Missing(reason=NO_STEPS)
    threads, cores = observed.torch.intra_op_threads, observed.run.machine.usable_cores
    if threads is None or cores is None:
        return Missing(reason="the number of threads, or of usable cores, is not known")
    busy_workers = sum(
        loader.workers * (loader.worker_busy_share or 0.0) for loader in observed.torch.loaders
    )
    waiting = waiting_while_computing(observed, main)
    beside_workers = threads > 1 and threads + busy_workers > cores + 0.5
    if threads <= cores and not (beside_workers and waiting is not None and waiting >= WAITING_SHARE):
        return ()
    evidence = [
        Evidence(text=f"torch uses {threads:,} threads on {format_count(cores, 'core')}", see=See.FACTS)
    ]
    if busy_workers:
        evidence.append(
            Evidence(text=f"loader workers keep {busy_workers:.1f} cores busy besides", see=See.LOADING)
        )
    if waiting is not None:
        evidence.append(
            Evidence(
                text=f"in {format_share(waiting)} of the step its thread computes, but is not running",
                see=See.TIME,
            )
        )
    fitting = max(1, int(cores - busy_workers))
    return (
        finding(
            FindingKind.TOO_MANY_THREADS,
            "more threads compute than there are cores",
            *evidence,
            place=Place(group=main.label),
            share=waiting,
            duration_ns=None if waiting is None else waiting * main.steady.mean_ns,
            gain=None
            if waiting is None
            else at_most(waiting, "if the computing thread never waited for a core or for other threads"),
            remedies=(
                Remedy(
                    text="as many threads as there are cores left",
                    snippet=f"torch.set_num_threads({fitting})",
                ),
            ),
        ),
    )


def waiting_while_computing(observed: Observed, main: GroupResult) -> float | None:
    """The share of a step in which it computes, but its thread is not running; None without samples."""
    if observed.samples is None:
        return None
    met = {split.name: split.parts for split in observed.samples.phases}
    shares = [
        phase.share * met[phase.name].waiting_ns / met[phase.name].wall_ns
        for phase in main.phases
        if phase.name in COMPUTING and phase.name in met and met[phase.name].wall_ns
    ]
    return sum(shares) if shares else None


def find_no_cache(observed: Observed) -> Answer:
    """Generation that computes the whole context again for each token."""
    generations = () if observed.torch is None else observed.torch.generations
    if not generations:
        return ()
    if all(generation.cache is CacheUse.CANNOT_TELL for generation in generations):
        return Missing(reason="no sequence has more than one token made")
    return tuple(found for generation in generations for found in _without_cache(generation, observed))


def _without_cache(generation: GenerationResult, observed: Observed) -> Iterator[Finding]:
    later_passes = generation.passes - generation.sequences
    if generation.cache not in (CacheUse.WITHOUT, CacheUse.PARTLY):
        return
    if later_passes < FEWEST_PASSES_WITHOUT_CACHE or generation.ns_per_token is None:
        return
    growth = generation.growth
    evidence = [
        Evidence(
            text=f"{format_share(1 - (generation.cached_share or 0.0))} of the {later_passes:,} passes after "
            "a first one get the whole context again",
            see=See.GENERATION,
        )
    ]
    if (
        growth.ratio is not None
        and growth.first_quarter_ns is not None
        and growth.last_quarter_ns is not None
    ):
        evidence.append(
            Evidence(
                text=f"a token costs {format_duration(growth.first_quarter_ns)} in the first quarter of the "
                f"positions and {format_duration(growth.last_quarter_ns)} in the last: {growth.ratio:.2f} ×",
                see=See.GENERATION,
            )
        )
    if generation.bytes_per_token is not None:
        evidence.append(
            Evidence(
                text=f"each token allocates {format_bytes(generation.bytes_per_token)}", see=See.GENERATION
            )
        )
    gain = _gain_of_a_cache(generation, observed)
    yield finding(
        FindingKind.NO_CACHE,
        f"the model {generation.label} computes past tokens again for each new one",
        *evidence,
        place=Place(module=generation.label, phase="forward"),
        share=None if gain is None else gain.share,
        duration_ns=None if gain is None else gain.share * generation.ns_per_token,
        size_bytes=generation.bytes_per_token,
        gain=gain,
    )


def _gain_of_a_cache(generation: GenerationResult, observed: Observed) -> Gain | None:
    """What a token costs for its position, by the line through the costs at all positions.

    Where all positions are alike, as with a window that is always full, at most the forward pass, less
    one token's part of it.
    """
    tokens = sum(position.tokens for position in generation.positions)
    if not tokens or not generation.ns_per_token:
        return None
    middle = sum((one.low + one.high) / 2 * one.tokens for one in generation.positions) / tokens
    growth = generation.growth
    if growth.verdict is not GrowthVerdict.CANNOT_TELL and growth.slope_ns_per_position is not None:
        share = growth.slope_ns_per_position * (middle - 1) / generation.ns_per_token
        return at_most(
            share, "if a token at any position cost what it costs at the first one", of=GainOf.TOKEN
        )
    group = next(
        (one for one in (observed.torch.groups if observed.torch else ()) if one.label == generation.label),
        None,
    )
    forward = None if group is None else group.phase("forward")
    if forward is None or middle <= 1:
        return None
    return at_most(
        forward.share * (1 - 1 / middle),
        "if the forward pass took a part that is one token's of its context",
        of=GainOf.TOKEN,
    )
