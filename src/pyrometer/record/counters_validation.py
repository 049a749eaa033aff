"""What must hold in the counters of a run beyond the types of their fields."""

from collections.abc import Iterator, Sequence

from pyrometer.record.counters import CacheCounts, CacheSimulation, CounterRecord, HardwareCounter
from pyrometer.record.tree_validation import Problem

# (misses, what was looked up): no cache misses more often than it is asked.
_AT_MOST = (
    ("i1_misses", "instructions"),
    ("d1_read_misses", "reads"),
    ("d1_write_misses", "writes"),
    ("ll_instruction_misses", "i1_misses"),
    ("ll_read_misses", "d1_read_misses"),
    ("ll_write_misses", "d1_write_misses"),
)


def counters_problems(record: CounterRecord, place: str) -> Iterator[Problem]:
    """What contradicts itself in the counters."""
    if record.hardware is not None:
        yield from _hardware_problems(record.hardware.counters, f"{place}.hardware.counters")
        for index, thread in enumerate(record.hardware.threads):
            inside = f"{place}.hardware.threads[{index}].counters"
            yield from _hardware_problems(thread.counters, inside)
    if record.simulated is not None:
        yield from _simulation_problems(record.simulated, f"{place}.simulated")


def _hardware_problems(counters: Sequence[HardwareCounter], place: str) -> Iterator[Problem]:
    names = [counter.name for counter in counters]
    if len(set(names)) != len(names):
        yield Problem(place=place, text="an event is counted twice")
    for index, counter in enumerate(counters):
        inside = f"{place}[{index}]"
        yield from _count_or_reason(counter.count, counter.reason, inside)
        if counter.count is not None and not counter.counted_share:
            yield Problem(place=inside, text="there is a count, but it was never counted")


def _simulation_problems(simulation: CacheSimulation, place: str) -> Iterator[Problem]:
    yield from _count_or_reason(simulation.counts, simulation.reason, place)
    if len(simulation.functions) > simulation.function_count:
        text = f"{len(simulation.functions)} functions are more than all {simulation.function_count}"
        yield Problem(place=f"{place}.functions", text=text)
    if simulation.counts is None:
        if simulation.functions:
            yield Problem(place=f"{place}.functions", text="there are functions, but no counts")
        return
    yield from _misses_problems(simulation.counts, f"{place}.counts")
    for index, function in enumerate(simulation.functions):
        yield from _misses_problems(function.counts, f"{place}.functions[{index}]")
    for figure in CacheCounts.__struct_fields__:
        counted = sum(getattr(function.counts, figure) for function in simulation.functions)
        if counted > getattr(simulation.counts, figure):
            text = f"the functions have {counted} {figure}, more than all"
            yield Problem(place=f"{place}.functions", text=text)


def _misses_problems(counts: CacheCounts, place: str) -> Iterator[Problem]:
    for misses, references in _AT_MOST:
        if getattr(counts, misses) > getattr(counts, references):
            yield Problem(place=place, text=f"{misses} are more than {references}")


def _count_or_reason(count: object, reason: str | None, place: str) -> Iterator[Problem]:
    if (count is None) == (reason is None):
        text = "there is neither a count nor a reason" if count is None else "a count needs no reason"
        yield Problem(place=place, text=text)
