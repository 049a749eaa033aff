"""What must hold in the limits of a machine beyond the types of their fields."""

from collections.abc import Collection, Iterator

from pyrometer.record.limits import ACCESSES, ARITHMETIC, PRECISIONS, Limits
from pyrometer.record.tree_validation import Problem


def limits_problems(limits: Limits, place: str) -> Iterator[Problem]:
    """What contradicts itself in the limits, or names what is not known."""
    for index, rate in enumerate(limits.flop_rates):
        inside = f"{place}.flop_rates[{index}]"
        yield from _unknown(rate.kind, ARITHMETIC, f"{inside}.kind")
        yield from _unknown(rate.precision, PRECISIONS, f"{inside}.precision")
        yield from _order(rate.median_flops_per_s, rate.best_flops_per_s, f"{inside}.best_flops_per_s")
    for index, bandwidth in enumerate(limits.bandwidths):
        inside = f"{place}.bandwidths[{index}]"
        yield from _unknown(bandwidth.kind, ACCESSES, f"{inside}.kind")
        yield from _order(
            bandwidth.median_bytes_per_s, bandwidth.best_bytes_per_s, f"{inside}.best_bytes_per_s"
        )
    for index, access in enumerate(limits.strided):
        inside = f"{place}.strided[{index}].best_ns_per_element"
        yield from _order(access.best_ns_per_element, access.median_ns_per_element, inside)
    for index, latency in enumerate(limits.latencies):
        yield from _order(latency.best_ns, latency.median_ns, f"{place}.latencies[{index}].best_ns")
    yield from _thread_problems(limits, place)


def _unknown(name: str, known: Collection[str], place: str) -> Iterator[Problem]:
    if name not in known:
        yield Problem(place=place, text=f"{name[:40]!r} is none of {', '.join(known)}")


def _order(smaller: float, larger: float, place: str) -> Iterator[Problem]:
    if smaller > larger:
        yield Problem(place=place, text="the best is worse than the median")


def _thread_problems(limits: Limits, place: str) -> Iterator[Problem]:
    counts = [
        *(rate.threads for rate in limits.flop_rates),
        *(bandwidth.threads for bandwidth in limits.bandwidths),
        *(access.threads for access in limits.strided),
        *(latency.threads for latency in limits.latencies),
    ]
    for threads in counts:
        if threads not in {1, limits.threads}:
            text = f"a figure is for {threads} threads, and the limits are for 1 and {limits.threads}"
            yield Problem(place=place, text=text)
            return
