"""Steps and their phases: a table for each group, whose columns add up as printed."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.steps import GroupResult, PhaseFigures
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.report.adding_up import byte_unit, decimals_for, time_unit, written_to_sum
from pyrometer.report.blocks import Block, Bullets, Column, Emphasis, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.sparkline import bar
from pyrometer.report.torch_wording import (
    NO_STEPS,
    describe_group,
    describe_rates,
    describe_step_times,
    describe_warmup,
    describe_which_steps,
    describe_window,
    name_group,
    sentence,
    short,
)
from pyrometer.units import format_count, format_duration, format_share

# A group with less of all steps' time than this is told in a line.
_SMALL_GROUP_SHARE = 0.01
_BAR_CELLS = 24
_BAR_CELLS_BESIDE_GPU = 14


def build_step_sections(results: TorchResults) -> Iterator[Section]:
    """The main group in full, then the others; what takes next to no time in a line each."""
    if results.main is None:
        yield Section(title="Steps", blocks=(Lines(lines=(NO_STEPS,)),))
        return
    total_ns = sum(group.total_ns for group in results.groups)
    others = [group for group in results.groups if group is not results.main]
    large = [group for group in others if group.total_ns >= _SMALL_GROUP_SHARE * total_ns]
    small = [group for group in others if group.total_ns < _SMALL_GROUP_SHARE * total_ns]
    yield Section(
        title=f"Phases: {describe_group(results.main)}",
        blocks=(*_group(results, results.main, compact=False), *notes(describe_window(results.window))),
    )
    for group in sorted(large, key=lambda group: -group.total_ns):
        yield Section(title=f"Phases: {describe_group(group)}", blocks=_group(results, group, compact=True))
    if small:
        lines = tuple(_in_a_line(group) for group in sorted(small, key=lambda group: -group.total_ns))
        yield Section(title="Other steps, less than 1 % of the time", blocks=(Bullets(lines=lines),))


def build_warmup_section(results: TorchResults) -> Section | None:
    """What the first steps cost, for each group that has more than one."""
    ordered = sorted(results.groups, key=lambda group: group is not results.main)
    groups = [group for group in ordered if group.steps > 1]
    if not groups:
        return None
    lines = tuple(f"{sentence(name_group(group))}: {describe_warmup(group)}" for group in groups)
    if len(results.groups) == 1:
        lines = (sentence(describe_warmup(groups[0])),)
    return Section(title="First step against steady", blocks=(Bullets(lines=lines),))


def _group(results: TorchResults, group: GroupResult, *, compact: bool) -> tuple[Block, ...]:
    return (
        _phases(results, group, compact=compact),
        Lines(lines=(describe_step_times(group.steady), describe_which_steps(group))),
    )


def _phases(results: TorchResults, group: GroupResult, *, compact: bool) -> Table:
    columns: list[tuple[Column, list[str]]] = [
        _times("a step", [phase.mean_ns for phase in group.phases], group.steady.mean_ns),
        (Column(heading="%"), written_to_sum([100 * phase.share for phase in group.phases], 100, decimals=1)),
    ]
    if not compact:
        cells = _BAR_CELLS if results.gpu is None else _BAR_CELLS_BESIDE_GPU
        bars = [bar(phase.share, cells=cells) for phase in group.phases]
        columns.append((Column(heading="share", left=True, color="cyan", dropped=2), [*bars, ""]))
    columns += _optional_columns(results, group.phases, compact=compact)
    names = [phase.name for phase in group.phases]
    rows = [
        Row(name=name, cells=tuple(texts[index] for _, texts in columns)) for index, name in enumerate(names)
    ]
    total = Row(
        name="step", cells=tuple(texts[-1] for _, texts in columns), emphasis=Emphasis.STRONG, total=True
    )
    return Table(names="phase", columns=tuple(column for column, _ in columns), rows=(*rows, total))


def _optional_columns(
    results: TorchResults, phases: Sequence[PhaseFigures], *, compact: bool
) -> Iterator[tuple[Column, list[str]]]:
    device = [results.device_ns_per_step(phase.name) for phase in phases]
    timed = [value for value in device if value is not None]
    if timed:
        column, texts = _times("on GPU", timed, sum(timed))
        written = iter(texts)
        yield column, [*(UNKNOWN_CELL if value is None else next(written) for value in device), texts[-1]]
    sizes = [phase.allocated_bytes_per_step for phase in phases]
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) == len(phases):
        size_bytes, unit = byte_unit(sum(known_sizes))
        values = [size / size_bytes for size in known_sizes]
        decimals = 0 if unit == "B" else decimals_for(sum(values))
        yield (
            Column(heading=f"{unit} a step", spelled=f"{unit} allocated a step", dropped=1),
            written_to_sum(values, sum(values), decimals=decimals),
        )
    counts = [phase.allocations_per_step for phase in phases]
    known_counts = [count for count in counts if count is not None]
    if not compact and len(known_counts) == len(phases):
        whole = all(float(count).is_integer() for count in known_counts)
        yield (
            Column(heading="allocations", spelled="allocations a step", dropped=3),
            written_to_sum(known_counts, sum(known_counts), decimals=0 if whole else 1),
        )


def _times(what: str, parts_ns: Sequence[float], total_ns: float) -> tuple[Column, list[str]]:
    size_ns, unit = time_unit(total_ns)
    decimals = decimals_for(total_ns / size_ns)
    texts = written_to_sum([part / size_ns for part in parts_ns], total_ns / size_ns, decimals=decimals)
    return Column(heading=f"{unit} {what}"), texts


def _in_a_line(group: GroupResult) -> str:
    phases = sorted(group.phases, key=lambda phase: -phase.share)
    shares = ", ".join(
        f"{short(phase.name)} {format_share(phase.share)}" for phase in phases if phase.total_ns
    )
    figures = [
        format_count(group.steps, "step"),
        f"{format_duration(group.steady.mean_ns)} a step",
        *describe_rates(group.steady, only_throughput=True),
    ]
    return sentence(f"{describe_group(group)}: {', '.join(figures)}: {shares}")
