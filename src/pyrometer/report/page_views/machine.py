"""The machine and how it was measured, counters, own cost and losses, and the files to keep."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.observed import Observed
from pyrometer.report import wording
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.counters_section import build_counter_sections
from pyrometer.report.page_views.blocks import (
    Block,
    bullets,
    from_sections,
    heading,
    missing,
    pairs,
    small_print,
    view,
)
from pyrometer.report.safe_text import escape_controls
from pyrometer.report.torch_baseline import build_baseline_sections

_NOT_COUNTED = (
    "Nothing was counted. --counters asks the processor for cycles, instructions and misses; --cachegrind "
    "simulates the caches, many times slower."
)
_METHOD = (
    "Phases and what is in none of them are exactly the step, in whole nanoseconds.",
    "Forward times of modules are measured at each call; backward times in some passes, chosen at random.",
    "Percentiles are within 1.6 %. Shares of functions are estimates: ± is half of their 95 % interval.",
    "A gain is an upper bound: what would be saved if the part at fault took no time at all.",
    "What was not measured is shown as –, and never as 0.",
)
_MOST_COUNTED = 200


def build_counters_view(observed: Observed) -> Block:
    """What the processor or valgrind counted."""
    sections = list(build_counter_sections(observed.counters, SPACIOUS, top=_MOST_COUNTED))
    if not sections:
        blocks = [missing(_NOT_COUNTED, command="pyrometer run --counters PROGRAM.py")]
        return view("counters", "Counters", blocks)
    return view("counters", "Counters", from_sections(sections))


def build_machine_view(observed: Observed) -> Block:
    """Facts, how to read, and how it was measured."""
    return view("machine", "Machine and method", _machine(observed))


def _machine(observed: Observed) -> Iterator[Block]:
    yield pairs(wording.describe_facts(observed.run))
    yield heading("How to read it")
    yield bullets(wording.HOW_TO_READ)
    yield heading("How it was measured")
    yield bullets(_METHOD)
    if observed.torch is not None:
        yield from from_sections(build_baseline_sections(observed.run, observed.torch))


def build_cost_view(observed: Observed) -> Block:
    """What the profiler cost this run, and what it could not see."""
    losses = [wording.describe_loss(loss) for loss in observed.run.losses]
    blocks = [
        heading("What the profiler cost this run"),
        bullets(wording.describe_cost(observed.run)),
        heading("Losses"),
        bullets(losses) if losses else bullets(["Nothing was lost."]),
        *small_print(["A loss is something that could not be seen or kept: the figures are without it."]),
    ]
    return view("cost", "Own cost and losses", blocks, count=len(losses))


def build_download_view(observed: Observed, views: Sequence[Block]) -> Block:
    """The run itself, and each table of these views."""
    program = escape_controls(observed.run.program.name).rpartition("/")[2]
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in program)
    block = {
        "type": "downloads",
        "file": f"{kept.removesuffix('.py')[:60] or 'run'}-run.json",
        "tables": [
            {"view": one["key"], "key": table["key"], "rows": len(table["names"])}
            for one in views
            for table in one["blocks"]
            if table["type"] == "grid"
        ],
    }
    return view("download", "Raw data", [block])
