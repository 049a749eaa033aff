"""Hot paths: ranked by time and by allocation, and each with what is known of it."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.findings.model import Finding
from pyrometer.analysis.frame_tree import FrameKind
from pyrometer.analysis.hot_places import HotPlace, HotPlaces
from pyrometer.report import sample_wording
from pyrometer.report.adding_up import written_to_sum
from pyrometer.report.blocks import Block, Bullets, Column, Heading, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.document import Document
from pyrometer.report.findings_wording import gain_text
from pyrometer.report.torch_operators import operator_name
from pyrometer.report.torch_wording import format_figure, short
from pyrometer.units import format_bytes, format_count, format_duration, format_share

HOT_PATHS_TITLE = "Hot paths, one by one"
RANKED_TITLE = "Hot paths, by time and by allocation"

_NO_ALLOCATIONS = "Allocations were not counted: pyrometer run --memory."
_NO_OPPORTUNITY = "nothing that was looked for was found here"
_MOST_PHASES = 3


def build_ranked_section(document: Document, hot: HotPlaces, *, most: int) -> Section:
    """What takes most time, and beside it what allocates most."""
    blocks: list[Block] = []
    if hot.places:
        blocks.append(_by_time(hot.places[:most]))
    else:
        blocks.append(Lines(lines=("No path is known: nothing was sampled, no scope entered.",)))
    blocks += _by_allocation(document.allocations, most=most)
    return Section(title=RANKED_TITLE, blocks=tuple(blocks))


def build_hot_path_section(hot: HotPlaces) -> Section | None:
    """Each hot path with its impact, call stack, analysis and opportunity; None without any."""
    if not hot.places:
        return None
    blocks: list[Block] = []
    for place in hot.places:
        blocks += hot_path_blocks(place)
    more = [f"{format_count(hot.not_shown, 'more hot path')} not shown."] if hot.not_shown else []
    return Section(title=HOT_PATHS_TITLE, blocks=(*blocks, *notes(more)))


def hot_path_blocks(place: HotPlace) -> Iterator[Block]:
    """One hot path in full."""
    yield Heading(text=f"Hot path {place.rank}: {short(place.name)}")
    yield Bullets(
        lines=(
            f"Impact: {_impact(place)}.",
            f"Call stack: {call_stack(place)}.",
            f"Analysis: {'; '.join(analysis_of(place)) or UNKNOWN_CELL}.",
            f"Opportunity: {'; '.join(_opportunities(place.findings)) or _NO_OPPORTUNITY}.",
        )
    )


def call_stack(place: HotPlace) -> str:
    """From the outermost function to the one that ran; unknown where stacks were not sampled."""
    if place.path is None:
        return f"{UNKNOWN_CELL} (stacks were not sampled: pyrometer run --sample-hz 100)"
    return sample_wording.describe_stack(place.stack)


def analysis_of(place: HotPlace) -> Iterator[str]:
    """What runs there: Python, native code or waiting, in which phase, for which modules and operators."""
    if place.split is not None:
        parts = (place.split.python_ns, place.split.native_ns, place.split.waiting_ns)
        whole = sum(parts)
        if whole:
            python, native, waiting, _ = written_to_sum(
                [100 * part / whole for part in parts], 100, decimals=1
            )
            most = None if place.path is None else place.path.native
            often = "" if most is None else f" (most often {short(sample_wording.native_name(most))})"
            yield f"{python} % in Python's own code, {native} % in native code{often}, {waiting} % waiting"
    if place.phases:
        named = (f"{short(name)} {format_share(share)}" for name, share in place.phases[:_MOST_PHASES])
        yield f"by phase: {', '.join(named)}"
    if place.modules:
        yield f"for {', '.join(map(short, place.modules))}"
    if place.operators:
        yield f"operators with most time there: {', '.join(short(operator_name(n)) for n in place.operators)}"


def _impact(place: HotPlace) -> str:
    margin = "" if place.margin is None else f" ± {100 * place.margin:.1f}"
    return (
        f"{format_duration(place.duration_ns)}, {format_share(place.share)}{margin} of {place.share_of.value}"
    )


def _opportunities(found: Sequence[Finding]) -> Iterator[str]:
    for finding in found:
        yield f"finding {finding.rank}, {finding.what} ({gain_text(finding)})"


def _by_time(places: Sequence[HotPlace]) -> Table:
    of = places[0].share_of.value
    columns = (
        Column(heading="time"),
        Column(heading="%", spelled=f"% of {of}"),
        Column(heading="where", left=True),
    )
    rows = tuple(
        Row(
            name=f"{place.rank}. {place.name}",
            cells=(
                format_duration(place.duration_ns),
                f"{100 * place.share:.1f}",
                _where(place),
            ),
        )
        for place in places
    )
    return Table(names="by time", columns=columns, rows=rows)


def _where(place: HotPlace) -> str:
    if place.path is not None:
        frame = next((frame for frame in reversed(place.stack) if frame.frame.kind is FrameKind.OWN), None)
        innermost = frame or place.stack[-1]
        if innermost.frame.file:
            return sample_wording.place(innermost.frame.file, innermost.line)
    return short(place.phases[0][0]) if place.phases else UNKNOWN_CELL


def _by_allocation(allocations: AllocationResults | None, *, most: int) -> Iterator[Block]:
    if allocations is None:
        yield from notes([_NO_ALLOCATIONS])
        return
    spots = [spot for spot in allocations.spots if spot.kind != "scope"] or list(allocations.spots)
    rows = tuple(
        Row(
            name=f"{rank}. {spot.name}",
            cells=(
                spot.kind,
                format_bytes(spot.bytes),
                f"{100 * spot.share:.1f}",
                f"{spot.allocations:,}",
                write_known(spot.allocations_per_step, format_figure),
            ),
        )
        for rank, spot in enumerate(spots[:most], start=1)
    )
    columns = (
        Column(heading="what", left=True),
        Column(heading="bytes"),
        Column(heading="%", spelled="% of all bytes"),
        Column(heading="allocations"),
        Column(heading="a step", spelled="allocations a step"),
    )
    if rows:
        yield Table(names="by allocation", columns=columns, rows=rows)
    else:
        yield Lines(lines=("No operation allocated anything.",))
