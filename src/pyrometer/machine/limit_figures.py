"""From the turns of each kernel to the figures of the record: the best, and the median."""

import statistics
from collections.abc import Callable, Iterator, Sequence

from pyrometer.machine.limit_kernels import Sizes, Stretch
from pyrometer.record.limits import ACCESSES, ARITHMETIC, Bandwidth, FlopRate, Latency, StridedAccess

Turns = dict[tuple[str, str | int, int], list[list[Stretch]]]
"""By what was measured, of what and on how many threads: for each turn what each thread did."""


def flop_rates(turns: Turns) -> Iterator[FlopRate]:
    """Operations a second, of all threads together."""
    for (kind, precision, threads), seen in turns.items():
        if kind in ARITHMETIC:
            rates = _after_the_first(seen, per_second)
            yield FlopRate(
                kind=kind,
                precision=str(precision),
                threads=threads,
                best_flops_per_s=max(rates),
                median_flops_per_s=statistics.median(rates),
                repetitions=len(rates),
            )


def bandwidths(turns: Turns) -> Iterator[Bandwidth]:
    """Bytes a second, of all threads together."""
    for (kind, _, threads), seen in turns.items():
        if kind in ACCESSES:
            rates = _after_the_first(seen, per_second)
            yield Bandwidth(
                kind=kind,
                threads=threads,
                best_bytes_per_s=max(rates),
                median_bytes_per_s=statistics.median(rates),
                repetitions=len(rates),
            )


def strided(turns: Turns) -> Iterator[StridedAccess]:
    """Nanoseconds an element, averaged over threads."""
    for (kind, stride, threads), seen in turns.items():
        if kind == "stride":
            times = _after_the_first(seen, ns_each)
            yield StridedAccess(
                stride=int(stride),
                threads=threads,
                best_ns_per_element=min(times),
                median_ns_per_element=statistics.median(times),
                repetitions=len(times),
            )


def latencies(turns: Turns, sizes: Sizes) -> Iterator[Latency]:
    """Nanoseconds a load, averaged over threads."""
    for (kind, level, threads), seen in turns.items():
        if kind == "latency":
            times = _after_the_first(seen, ns_each)
            yield Latency(
                level=str(level),
                working_set_bytes=sizes.ring_bytes[str(level)],
                threads=threads,
                best_ns=min(times),
                median_ns=statistics.median(times),
                repetitions=len(times),
            )


def per_second(turn: Sequence[Stretch]) -> float:
    """All of a turn's work over the time from the first thread's beginning to the last one's end."""
    began_ns = min(began for began, _, _ in turn)
    ended_ns = max(ended for _, ended, _ in turn)
    return sum(work for _, _, work in turn) * 1e9 / max(ended_ns - began_ns, 1)


def ns_each(turn: Sequence[Stretch]) -> float:
    """The time of one element or load, averaged over the threads of a turn."""
    return statistics.fmean(max(ended - began, 1) / work for began, ended, work in turn)


def threads_in_words(threads: int) -> str:
    """``1 thread``, ``8 threads``."""
    return f"{threads} thread{'' if threads == 1 else 's'}"


def _after_the_first(
    turns: Sequence[Sequence[Stretch]], figure: Callable[[Sequence[Stretch]], float]
) -> list[float]:
    """Of each turn but the first, in which caches, pages and clock rates are still settling."""
    return [figure(turn) for turn in (turns[1:] or turns)]
