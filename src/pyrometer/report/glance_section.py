"""A run at a glance: how much was looked at, what is hot, how often caches miss, what could be gained."""

from collections.abc import Iterator

from pyrometer.analysis.counters import CounterResults
from pyrometer.analysis.hot_places import LEAST_SHARE, HotPlaces
from pyrometer.analysis.plan import Plan
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.report.blocks import Pairs, Section
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.document import Document
from pyrometer.report.findings_wording import times
from pyrometer.units import format_count, format_duration, format_share

GLANCE_TITLE = "At a glance"
NOT_COUNTED = f"{UNKNOWN_CELL} (not counted: pyrometer run --counters, or --cachegrind)"
NOT_SAMPLED = f"{UNKNOWN_CELL} (stacks were not sampled: pyrometer run --sample-hz 100)"


def build_glance_section(document: Document, hot: HotPlaces, plan: Plan) -> Section:
    """The opening figures; what the run cannot know says how to have it."""
    return Section(title=GLANCE_TITLE, blocks=(Pairs(rows=tuple(glance_rows(document, hot, plan))),))


def glance_rows(document: Document, hot: HotPlaces, plan: Plan) -> Iterator[tuple[str, str]]:
    """The opening figures, each with its label."""
    yield "profiled", format_duration(document.headline.profiled_ns)
    yield "functions profiled", _functions(document.samples)
    yield "hot paths identified", _hot_paths(hot)
    yield "cache miss rate", describe_miss_rate(document.counters)
    yield "findings", format_count(len(document.findings.found) + document.findings.not_shown, "finding")
    yield "possible speed-up", describe_speedup(plan)


def describe_speedup(plan: Plan) -> str:
    """What all findings together could gain at most."""
    if not plan.totals:
        return f"{UNKNOWN_CELL} (no finding bounds it)"
    total = plan.totals[0]
    conservative, optimistic = total.speedups
    if conservative is None:
        return f"{UNKNOWN_CELL} (what was found is all of {total.of.value})"
    if optimistic is not None and times(optimistic) == times(conservative):
        return f"≤ {times(conservative)}: an upper bound for {total.of.value}, not measured"
    apart = "not bounded" if optimistic is None else f"≤ {times(optimistic)}"
    return (
        f"≤ {times(conservative)} if the changes overlap, {apart} if they do not: "
        f"upper bounds for {total.of.value}, not measured"
    )


def describe_miss_rate(counters: CounterResults | None) -> str:
    """How often caches miss, by the processor's counters or by simulation."""
    told = [] if counters is None else [*_hardware_rates(counters), *_simulated_rates(counters)]
    return "; ".join(told) or NOT_COUNTED


def _functions(samples: SampleResults | None) -> str:
    if samples is None:
        return NOT_SAMPLED
    functions = format_count(len(samples.functions), "function")
    return f"{functions}, from {format_count(samples.samples, 'sample')}"


def _hot_paths(hot: HotPlaces) -> str:
    if not hot.places:
        return "none"
    of = hot.places[0].share_of.value
    known = f"{hot.count:,}{' or more' if hot.may_be_more else ''}"
    return f"{known}, each with at least {format_share(LEAST_SHARE)} of {of}"


def _hardware_rates(counters: CounterResults) -> Iterator[str]:
    if counters.hardware is not None:
        for name in ("cache misses", "L1d load misses", "LLC load misses"):
            counter = counters.hardware.process[name]
            if counter is not None and counter.rate is not None:
                yield f"{format_share(counter.rate)} of {counter.rate_of} (hardware)"


def _simulated_rates(counters: CounterResults) -> Iterator[str]:
    if counters.simulated is not None:
        rates = {cache.name.partition(",")[0]: cache.rate for cache in counters.simulated.caches}
        told = [f"{name} {format_share(rate)}" for name, rate in rates.items() if rate is not None]
        if told:
            yield f"{', '.join(told)} (simulated)"
