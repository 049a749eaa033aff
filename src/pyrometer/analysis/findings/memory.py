"""Findings about memory: what is allocated again and again, what is never given back, and its collection."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.findings.drafting import (
    WORTH_TELLING,
    Answer,
    Missing,
    See,
    at_most,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, FindingKind, GainOf, Place, Remedy
from pyrometer.analysis.findings.operators import window_of
from pyrometer.analysis.hotspots import LIMITS, Strength, StrengthKind, strength_of
from pyrometer.analysis.memory import FEWEST_SAMPLES, MemoryResult
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.record.garbage import GarbageCollections
from pyrometer.record.torch_run import FORWARD_WITHOUT_GRADIENTS
from pyrometer.stats.rates import per
from pyrometer.units import format_bytes, format_count, format_duration, format_share

CHURN_RATIO = 8.0
"""Training allocates two to four times what its largest phase holds: activations, gradients, updates."""
LEAST_CHURN_BYTES = 8 << 20
"""Smaller amounts come out of what was freed just before, at no cost worth telling."""
GROWTH_SHARE = 0.05
LEAST_GROWTH_BYTES = 8 << 20
STILL_GROWING = 0.5
"""The later half must grow at least so much of what the earlier one did: caches fill and stop."""
_QUARTERS = 4

ALLOCATING = frozenset(
    {
        "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::resize_",
        "aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero_", "aten::fill_", "aten::clone",
    }
)  # fmt: skip


def find_churn(observed: Observed) -> Answer:
    """Steps that allocate several times what ever lives at once."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    if observed.allocations is None or main.steady.allocated_bytes_per_step is None:
        return Missing(reason="allocations were not counted: leave --no-memory out")
    # What gradients are made in is autograd's own, and can be neither kept nor written into.
    phases = [phase for phase in main.phases if phase.name != "backward"]
    each = sum(phase.allocated_bytes_per_step or 0.0 for phase in phases)
    held_bytes = _most_held_in_a_step(observed.allocations, main)
    if held_bytes is None:
        return Missing(reason="what a phase holds at once was not recorded")
    if not held_bytes or each < LEAST_CHURN_BYTES or each < CHURN_RATIO * held_bytes:
        return ()
    window = window_of(observed, main)
    gain, evidence = None, []
    if not isinstance(window, Missing):
        rows = [row for row in window.rows if row.name in ALLOCATING]
        spent_ns = sum(row.self_ns_per_step for row in rows)
        gain = at_most(
            spent_ns / window.step_ns if window.step_ns else 0.0,
            "if no operator that makes or clears a tensor ran",
        )
        evidence.append(
            Evidence(
                text=f"operators that make or clear tensors take {format_duration(spent_ns)} of a step",
                see=See.OPERATORS,
            )
        )
    most = max(phases, key=lambda phase: phase.allocated_bytes_per_step or 0.0)
    return (
        finding(
            FindingKind.ALLOCATION_CHURN,
            f"each step allocates {each / held_bytes:.1f} × what it ever holds at once",
            Evidence(
                text=f"a step allocates {format_bytes(each)} of tensors outside its backward pass; none of "
                f"its phases ever holds more than {format_bytes(held_bytes)} of its own at once",
                see=See.ALLOCATIONS,
            ),
            Evidence(
                text=f"{format_bytes(most.allocated_bytes_per_step or 0.0)} of it in {most.name}",
                see=See.PHASES,
            ),
            *evidence,
            place=Place(group=main.label, phase=most.name),
            share=None if gain is None else gain.share,
            size_bytes=each,
            gain=gain,
        ),
    )


def _most_held_in_a_step(allocations: AllocationResults, main: GroupResult) -> int | None:
    """The most that one call of any of its phases held at once, over what was there when it began."""
    names = {FORWARD_WITHOUT_GRADIENTS, *(phase.name for phase in main.phases)}
    held = [
        one.peak_bytes
        for one in allocations.held
        if one.kind == "phase" and one.name in names and one.peak_bytes is not None
    ]
    return max(held, default=None)


def find_growth(observed: Observed) -> Answer:
    """Memory that grows with each step and does not stop."""
    memory = observed.memory
    if memory is None:
        return Missing(reason="the process's memory was not recorded")
    main = main_group_of(observed)
    steady = _steady_memory(memory, main)
    if len(steady) < FEWEST_SAMPLES or memory.growth_bytes_per_second is None:
        return Missing(
            reason=f"memory was looked at fewer than {FEWEST_SAMPLES} times while the steps went on"
        )
    grown_bytes = _steady_growth(steady)
    if not memory.peak_bytes or grown_bytes < max(GROWTH_SHARE * memory.peak_bytes, LEAST_GROWTH_BYTES):
        return ()
    return (
        finding(
            FindingKind.MEMORY_GROWTH,
            "memory grows as long as the program runs",
            Evidence(
                text=f"resident memory grows from {format_bytes(steady[0][1])} after the warm-up to "
                f"{format_bytes(steady[-1][1])}, {_rate(memory)}",
                see=See.MEMORY,
            ),
            *_what_was_kept(observed),
            place=Place(group=None if isinstance(main, Missing) else main.label),
            size_bytes=grown_bytes,
            gain=at_most(
                grown_bytes / memory.peak_bytes, "if nothing were kept after the warm-up", of=GainOf.MEMORY
            ),
        ),
    )


def _steady_memory(memory: MemoryResult, main: GroupResult | Missing) -> list[tuple[int, int]]:
    """Memory while the steps went on, after their warm-up."""
    if isinstance(main, Missing):
        return list(memory.series)
    return [point for point in memory.series if main.steady_from_ns <= point[0] <= _end_of(main)]


def _end_of(main: GroupResult) -> int:
    """When the last step that was kept ended: what comes after it is not the loop's."""
    last = main.series[-1]
    return max(last.started_ns + last.duration_ns, main.steady_from_ns + main.steady.total_ns)


def _steady_growth(points: Sequence[tuple[int, int]]) -> float:
    """How much the last quarter of the points is over the first; 0 where growth is not steady."""
    size = len(points) // _QUARTERS
    levels = [mean(bytes_ for _, bytes_ in points[index * size : (index + 1) * size]) for index in range(3)]
    levels.append(mean(bytes_ for _, bytes_ in points[3 * size :]))
    earlier, later = levels[1] - levels[0], levels[3] - levels[2]
    rising = all(one < other for one, other in pairwise(levels))
    if not rising or later < STILL_GROWING * earlier:
        return 0.0
    return points[-1][1] - points[0][1]


def _rate(memory: MemoryResult) -> str:
    if memory.growth_bytes_per_step is not None:
        return f"{format_bytes(memory.growth_bytes_per_step)} a step"
    return f"{format_bytes(memory.growth_bytes_per_second or 0.0)} a second"


def _what_was_kept(observed: Observed) -> tuple[Evidence, ...]:
    """The phase that kept most, where that is counted."""
    if observed.allocations is None:
        return ()
    phases = [phase for phase in observed.allocations.process.phases if phase.kept_bytes > 0]
    most = max(phases, key=lambda phase: phase.kept_bytes, default=None)
    if most is None:
        return ()
    return (
        Evidence(
            text=f"{most.name} allocates {format_bytes(most.kept_bytes)} more than it frees; "
            f"{format_bytes(max(observed.allocations.process.live_bytes, 0))} more live at the end than when "
            "counting began",
            see=See.ALLOCATIONS,
        ),
    )


_LATER = Remedy(
    text="none while modules are imported and models made, which leave little garbage",
    snippet="import gc\ngc.disable()  # the first lines of the program\n...\ngc.enable()  # before the loop",
)


def find_collections(observed: Observed) -> Answer:
    """Python's search for garbage, where it takes a noticeable part of the steps."""
    garbage = observed.run.garbage
    if garbage is None:
        return Missing(reason="collections of garbage were not watched")
    main = main_group_of(observed)
    if isinstance(main, Missing):
        began_ns, ended_ns, of = 0, observed.run.profiled_ns, GainOf.RUN
    else:
        # Imports and set-up make many objects too, and collect them once.
        began_ns, ended_ns, of = main.steady_from_ns, _end_of(main), GainOf.STEP
    spent_ns = _paused_between(garbage, began_ns, ended_ns)
    share = _share(spent_ns, ended_ns - began_ns)
    if share < WORTH_TELLING:
        return ()
    return (
        finding(
            FindingKind.GARBAGE_COLLECTION,
            "Python searches for garbage again and again",
            Evidence(
                text=f"{format_duration(spent_ns)} of {format_duration(ended_ns - began_ns)}"
                f"{'' if of is GainOf.RUN else ' of steps'} are spent collecting: {format_share(share)}",
                see=See.GARBAGE,
            ),
            Evidence(text=_describe_collections(garbage), see=See.GARBAGE),
            Evidence(text=f"collector: {observed.run.software.garbage_collector}", see=See.FACTS),
            place=Place(group=None if isinstance(main, Missing) else main.label),
            share=share,
            duration_ns=spent_ns,
            gain=at_most(share, "if garbage were never searched for", of=of),
            remedies=() if of is GainOf.STEP else (_LATER,),
        ),
    )


def find_memory_strengths(observed: Observed) -> Iterator[Strength]:
    """Memory that does not grow, and garbage that takes no time to collect."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return
    memory, garbage = observed.memory, observed.run.garbage
    if memory is not None and len(steady := _steady_memory(memory, main)) >= FEWEST_SAMPLES:
        grown = per(max(steady[-1][1] - steady[0][1], 0), memory.peak_bytes)
        if grown is not None and grown < LIMITS[StrengthKind.STEADY_MEMORY]:
            yield strength_of(StrengthKind.STEADY_MEMORY, main.label, grown)
    if garbage is not None:
        began_ns, ended_ns = main.steady_from_ns, _end_of(main)
        share = _share(_paused_between(garbage, began_ns, ended_ns), ended_ns - began_ns)
        if share < LIMITS[StrengthKind.LITTLE_GARBAGE]:
            yield strength_of(StrengthKind.LITTLE_GARBAGE, main.label, share)


def _share(part_ns: int, whole_ns: int) -> float:
    return min(part_ns / whole_ns, 1.0) if whole_ns > 0 else 0.0


def _paused_between(garbage: GarbageCollections, began_ns: int, ended_ns: int) -> int:
    """What the collections took that began in the intervals that lie in between."""
    width_ns = garbage.interval_ns
    return sum(
        pause_ns
        for index, pause_ns in enumerate(garbage.interval_pause_ns)
        if began_ns <= index * width_ns and (index + 1) * width_ns <= ended_ns + width_ns
    )


def _describe_collections(garbage: GarbageCollections) -> str:
    return (
        f"{format_count(garbage.collections, 'collection')} in the whole run, "
        f"{garbage.generations[-1].collections:,} of them of all objects, the longest "
        f"{format_duration(garbage.max_ns)}"
    )
