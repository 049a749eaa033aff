"""Findings about the machine's limits: memory that is the bottleneck, and GPUs that wait."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.findings.drafting import (
    Answer,
    Missing,
    See,
    at_most,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, Finding, FindingKind, GainOf, Place
from pyrometer.analysis.findings.training import waiting_while_computing
from pyrometer.analysis.hotspots import LIMITS, Strength, StrengthKind, strength_of
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.roofline import Bound, Placed
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_roofline import LOOKED_UP, Roofline
from pyrometer.units import format_count, format_duration, format_rate, format_share

MEMORY_BOUND_SHARE = 0.10
STRIDED_SHARE = 0.05
OFF_CORE_SHARE = 0.2
FEWEST_BYTES_PER_CALL = 1 << 20
"""What is smaller comes out of a cache, and says nothing of memory."""
HIGH_MISS_RATE = 0.10
STRIDE = 16
IDLE_SHARE = 0.10
BUSY_ENOUGH = 0.9
FEWER_DEVICE_SHARE = 0.7
NO_LIMITS = "the machine's limits are not known: pyrometer limits measures them, once, before the run"
NO_GPU = "no GPU"


def _roofline_of(observed: Observed) -> Roofline | Missing:
    roofline = None if observed.torch is None else observed.torch.roofline
    if roofline is None:
        return Missing(reason=NO_LIMITS)
    return roofline if roofline.roofs is not None else Missing(reason=roofline.reason)


def find_memory_bound(observed: Observed) -> Answer:
    """Modules that wait for memory rather than for arithmetic, in a noticeable part of the step."""
    main, roofline = main_group_of(observed), _roofline_of(observed)
    if isinstance(main, Missing):
        return main
    if isinstance(roofline, Missing):
        return roofline
    held_back = [
        (placed, share)
        for placed, share in _modules_of_a_step(roofline, observed)
        if placed.bound is Bound.MEMORY and _from_memory(placed)
    ]
    share = sum(share for _, share in held_back)
    if share < MEMORY_BOUND_SHARE:
        return ()
    placed, own_share = max(held_back, key=lambda pair: pair[1])
    return (
        finding(
            FindingKind.MEMORY_BOUND,
            f"{_with_others(placed, held_back)} bound by memory",
            Evidence(
                text=f"{placed.work.name} moves {_rate(placed)} and computes "
                f"{placed.intensity or 0.0:.2f} FLOPs for each byte",
                see=See.ROOFLINE,
            ),
            _shares(placed, own_share, share, len(held_back)),
            place=Place(group=main.label, module=placed.work.name),
            share=share,
            duration_ns=share * main.steady.mean_ns,
            gain=at_most(share, "if what they move never went through memory"),
        ),
    )


def _modules_of_a_step(roofline: Roofline, observed: Observed) -> Iterator[tuple[Placed, float]]:
    """Each placed module with its own share of the step, forward and backward."""
    rows = {} if observed.torch is None else {row.name: row for row in observed.torch.modules.rows}
    for placed in roofline.modules:
        row = rows.get(placed.work.name)
        if row is not None and row.self_share is not None:
            yield placed, row.self_share


def _from_memory(placed: Placed) -> bool:
    moved, calls = placed.work.moved_bytes, placed.work.calls
    return bool(moved and calls and moved / calls >= FEWEST_BYTES_PER_CALL)


def _with_others(placed: Placed, all_of_them: Sequence[tuple[Placed, float]]) -> str:
    others = len(all_of_them) - 1
    if not others:
        return f"the module {placed.work.name} is"
    return f"the module {placed.work.name} and {format_count(others, 'other')} are"


def _rate(placed: Placed) -> str:
    return (
        f"{format_rate(placed.bytes_per_s or 0.0, 'B')}, {format_share(placed.memory_share or 0.0)} of the "
        "bandwidth there is,"
    )


def _shares(placed: Placed, own_share: float, share: float, modules: int) -> Evidence:
    text = f"{placed.work.name} takes {format_share(own_share)} of a step itself"
    if modules > 1:
        text += f", all {modules:,} of them {format_share(share)}"
    return Evidence(text=text, see=See.MODULES)


def find_roof_strengths(observed: Observed) -> Iterator[Strength]:
    """Modules in a noticeable part of the step that come near what the machine can do."""
    roofline = _roofline_of(observed)
    if isinstance(roofline, Missing):
        return
    for placed, share in _modules_of_a_step(roofline, observed):
        reached = placed.roof_share
        if (
            reached is not None
            and reached >= LIMITS[StrengthKind.NEAR_THE_ROOF]
            and share >= MEMORY_BOUND_SHARE
        ):
            yield strength_of(StrengthKind.NEAR_THE_ROOF, placed.work.name, min(reached, 1.0))


def find_strided_access(observed: Observed) -> Answer:
    """Modules far below what memory can deliver, though they do little else than move data."""
    main, roofline = main_group_of(observed), _roofline_of(observed)
    misses = tuple(_simulated_misses(observed))
    if isinstance(main, Missing):
        return main
    if isinstance(roofline, Missing):
        return misses or roofline
    off_core = waiting_while_computing(observed, main)
    if not misses and off_core is not None and off_core >= OFF_CORE_SHARE:
        return Missing(
            reason=f"in {format_share(off_core)} of the step its thread computed without a core: something "
            "else used the machine, and bandwidth says nothing then"
        )
    # Modules that read rows by their numbers: of others that are slow something else is the reason.
    modules = () if observed.run.torch is None else observed.run.torch.modules
    look_up = {module.name for module in modules if module.kind in LOOKED_UP}
    slow = [
        (placed, share)
        for placed, share in _modules_of_a_step(roofline, observed)
        if placed.bound is Bound.NEITHER and placed.work.name in look_up and _from_memory(placed)
    ]
    if sum(share for _, share in slow) < STRIDED_SHARE:
        return misses
    return (*misses, _strided(slow, main, observed))


def _strided(slow: Sequence[tuple[Placed, float]], main: GroupResult, observed: Observed) -> Finding:
    placed, own_share = max(slow, key=lambda pair: pair[1])
    share = sum(share for _, share in slow)
    lacking = sum(share * (1 - (placed.memory_share or 0.0)) for placed, share in slow)
    return finding(
        FindingKind.STRIDED_ACCESS,
        f"{_with_others(placed, slow)} far slower at looking rows up than memory is at moving them",
        Evidence(
            text=f"{placed.work.name} moves {_rate(placed)} in calls of "
            f"{format_duration(placed.work.duration_ns / placed.work.calls)}, and computes "
            f"{placed.intensity or 0.0:.2f} FLOPs for each byte",
            see=See.ROOFLINE,
        ),
        _shares(placed, own_share, share, len(slow)),
        *_strides_here(observed),
        place=Place(group=main.label, module=placed.work.name),
        share=share,
        duration_ns=share * main.steady.mean_ns,
        gain=at_most(lacking, "if the same bytes were moved as fast as memory can"),
    )


def _strides_here(observed: Observed) -> Iterator[Evidence]:
    """What a stride costs on this machine."""
    limits = observed.run.limits
    taken = {} if limits is None else {one.stride: one for one in limits.strided if one.threads == 1}
    if 1 in taken and STRIDE in taken:
        factor = taken[STRIDE].best_ns_per_element / taken[1].best_ns_per_element
        yield Evidence(
            text=f"on this machine each {STRIDE}th element takes {factor:.1f} × as long to read as each one",
            see=See.ROOFLINE,
        )


def _simulated_misses(observed: Observed) -> Iterator[Finding]:
    simulated = None if observed.run.counters is None else observed.run.counters.simulated
    counts = None if simulated is None else simulated.counts
    if counts is None:
        return
    references = counts.reads + counts.writes
    misses = counts.d1_read_misses + counts.d1_write_misses
    if not references or misses < HIGH_MISS_RATE * references:
        return
    yield finding(
        FindingKind.STRIDED_ACCESS,
        "much of what is read is not in the first cache",
        Evidence(
            text=f"{format_share(misses / references)} of {references:,} references miss the simulated first "
            f"cache ({format_count(misses, 'miss', 'misses')})",
            see=See.COUNTERS,
        ),
        place=Place(),
    )


def find_graph_breaks(observed: Observed) -> Answer:
    """Compiled code that falls back to Python, or is compiled again and again."""
    compilation = None if observed.torch is None else observed.torch.compilation
    if compilation is None or not (compilation.graph_breaks or compilation.recompilations):
        return ()
    reasons = tuple(
        Evidence(text=f"graph break, {number:,} ×: {reason}", see=See.COMPILATION)
        for reason, number in compilation.break_reasons[:3]
    )
    run_ns = observed.run.profiled_ns
    share = min(compilation.compile_ns / run_ns, 1.0) if run_ns else None
    return (
        finding(
            FindingKind.GRAPH_BREAKS,
            f"torch.compile breaks the model into {compilation.graphs:,} graphs",
            Evidence(
                text=f"{format_count(compilation.graph_breaks, 'graph break')}, "
                f"{format_count(compilation.recompilations, 'recompilation')}, "
                f"{format_duration(compilation.compile_ns)} spent compiling",
                see=See.COMPILATION,
            ),
            *reasons,
            place=Place(),
            share=share,
            duration_ns=compilation.compile_ns,
            gain=None
            if share is None
            else at_most(
                share, "if nothing were compiled; what breaks cost later is not known", of=GainOf.RUN
            ),
        ),
    )


def find_idle_gpu(observed: Observed) -> Answer:
    """A GPU that has nothing to do for a noticeable part of the run."""
    gpu = None if observed.torch is None else observed.torch.gpu
    if gpu is None:
        return Missing(reason=NO_GPU)
    if gpu.utilisation_percent is None:
        return Missing(reason="the use of the GPU was not measured: pip install nvidia-ml-py")
    busy = min(gpu.utilisation_percent / 100, 1.0)
    if busy >= BUSY_ENOUGH:
        return ()
    return (
        finding(
            FindingKind.GPU_IDLE,
            f"the GPU is idle {format_share(1 - busy)} of the time",
            Evidence(text=f"{gpu.name} was in use {format_share(busy)} of the time, by NVML", see=See.MEMORY),
            place=Place(),
            share=1 - busy,
            gain=at_most(1 - busy, "if the GPU never waited", of=GainOf.RUN),
        ),
    )


def find_launch_bound(observed: Observed) -> Answer:
    """Steps in which the host takes longer to ask for work than the GPU to do it."""
    main = main_group_of(observed)
    if observed.torch is None or observed.torch.gpu is None:
        return Missing(reason=NO_GPU)
    if isinstance(main, Missing):
        return main
    times = [
        (phase, observed.torch.device_ns_per_step(phase.name))
        for phase in main.phases
        if phase.name in ("forward", "backward", "optimizer")
    ]
    known = [(phase, device_ns) for phase, device_ns in times if device_ns is not None]
    if not known:
        return Missing(reason="no phase could be timed on the GPU")
    host_ns = sum(phase.mean_ns for phase, _ in known)
    device_ns = sum(device_ns for _, device_ns in known)
    idle = (host_ns - device_ns) / main.steady.mean_ns
    if device_ns >= FEWER_DEVICE_SHARE * host_ns or idle < IDLE_SHARE:
        return ()
    return (
        finding(
            FindingKind.LAUNCH_BOUND,
            "launching the work takes longer than doing it",
            Evidence(
                text=f"{', '.join(phase.name for phase, _ in known)}: {format_duration(host_ns)} on the "
                f"host, {format_duration(device_ns)} on the GPU in a step",
                see=See.PHASES,
            ),
            place=Place(group=main.label),
            share=idle,
            duration_ns=host_ns - device_ns,
            gain=at_most(idle, "if launching took no longer than the work itself"),
        ),
    )
