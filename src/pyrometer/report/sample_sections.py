"""What stack samples say: where the CPU time goes, by function, line and call stack."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pyrometer.analysis.frame_tree import Parts
from pyrometer.analysis.hot_paths import HotPath
from pyrometer.analysis.outside_phases import OutsideCall
from pyrometer.analysis.sample_results import SampleResults, TimeSplit
from pyrometer.analysis.sampled_functions import SampledFunction, SampledLine, Share
from pyrometer.report import sample_wording
from pyrometer.report.adding_up import written_to_sum
from pyrometer.report.blocks import (
    Block,
    Bullets,
    Column,
    Emphasis,
    Lines,
    Row,
    Section,
    Table,
    notes,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style
from pyrometer.report.map_links import MapLinks
from pyrometer.units import format_count

FEW_FUNCTIONS = 8
FEW_PATHS = 2
FEW_NATIVES = 5
FEW_OUTSIDE = 3
FEW_OUTSIDE_NAMED = 2
MOST_OUTSIDE = 20
MOST_PATHS = 10
FEW_SPLITS = 6
MOST_SPLITS = 8

_Row = TypeVar("_Row", SampledFunction, SampledLine)

_SPLIT_COLUMNS = (
    Column(heading="time", spelled="time of threads"),
    Column(heading="CPU", spelled="CPU time"),
    Column(heading="% CPU", spelled="% of all CPU time"),
    Column(heading="% Python", spelled="% in Python"),
    Column(heading="% native", spelled="% in native code"),
    Column(heading="% waiting"),
)
_OUTSIDE_COLUMNS = (
    Column(heading="time", spelled="time of threads"),
    Column(heading="%", spelled="% of the time outside"),
    Column(heading="called at", left=True, widest=40),
)
_FUNCTION_COLUMNS = (
    Column(heading="self", spelled="self %"),
    Column(heading="±"),
    Column(heading="total", spelled="total %"),
    Column(heading="module", left=True, widest=60, dropped=3),
    Column(heading="file:line", left=True, widest=20, dropped=1),
    Column(heading="note", left=True, dropped=2),
)
_LINE_COLUMNS = (
    Column(heading="self", spelled="self %"),
    Column(heading="±"),
    Column(heading="total", spelled="total %"),
    Column(heading="function", left=True, widest=30),
    Column(heading="module", left=True, widest=60, dropped=1),
)
_PATH_COLUMNS = (
    Column(heading="%"),
    Column(heading="±"),
    Column(heading="samples"),
)


def build_sample_sections(
    results: SampleResults, style: Style, *, top: int, whole: bool, on_map: MapLinks | None = None
) -> Iterator[Section]:
    """The split of the time, functions and call stacks; with ``whole`` lines, too, and more of each."""
    if not results.overall.parts.samples:
        yield Section(title="Functions", blocks=(Lines(lines=(sample_wording.NO_SAMPLES,)),))
        return
    yield _time(results, style, whole=whole)
    if results.outside_phases:
        yield _outside(results.outside_phases, style, most=MOST_OUTSIDE if whole else FEW_OUTSIDE)
    if results.overall.parts.cpu_ns:
        most = top if whole else min(top, FEW_FUNCTIONS)
        yield _functions(results, top=most, style=style, whole=whole, on_map=on_map)
        if whole:
            yield _lines(results, top=top)
        yield _paths(results, most=MOST_PATHS if whole else FEW_PATHS)
        if results.natives:
            yield _natives(results, top=top if whole else min(top, FEW_NATIVES))
    words = Bullets(lines=sample_wording.in_words(results, most=None if whole else FEW_OUTSIDE_NAMED))
    how = () if style.wordy else notes([sample_wording.how_to_see_more(whole=whole)])
    yield Section(title="The flame graph in words", blocks=(words, *how))


def _time(results: SampleResults, style: Style, *, whole: bool) -> Section:
    blocks: list[Block] = []
    few = MOST_SPLITS if whole else FEW_SPLITS
    if results.phases:
        blocks.append(_split_table("phase", results.phases, results.overall, style, most=few))
    if results.modules and whole:
        blocks.append(_split_table("module", results.modules, results.overall, style, most=few))
    if results.scopes and (whole or not results.phases):
        blocks.append(_split_table("scope", results.scopes, results.overall, style, most=few))
    if not blocks or (whole and len(results.threads) > 1):
        blocks.append(_split_table("thread", results.threads, results.overall, style, most=few))
    return Section(
        title=f"Where the time goes, from {format_count(results.samples, 'sample')}",
        blocks=(*blocks, *notes(sample_wording.describe_sampling(results, wordy=style.wordy or whole))),
    )


def _split_table(
    names: str, splits: Sequence[TimeSplit], overall: TimeSplit, style: Style, *, most: int
) -> Table:
    shown = list(splits[:most])
    others = splits[most:]
    if others:
        rest = sum((split.parts for split in others[1:]), others[0].parts)
        shown.append(TimeSplit(name=f"{len(others):,} others", parts=rest))
    cpu_shares = _adding_up([split.parts.cpu_ns for split in shown], overall.parts.cpu_ns)
    rows = [
        Row(name=split.name, cells=_split_cells(split.parts, cpu_share, style))
        for split, cpu_share in zip(shown, cpu_shares, strict=False)
    ]
    if len(shown) > 1:
        cells = _split_cells(overall.parts, cpu_shares[-1], style)
        rows.append(Row(name="all", cells=cells, emphasis=Emphasis.STRONG, total=True))
    return Table(names=names, columns=_SPLIT_COLUMNS, rows=tuple(rows))


def _outside(calls: Sequence[OutsideCall], style: Style, *, most: int) -> Section:
    shown, others = calls[:most], calls[most:]
    rest_ns = sum(call.parts.wall_ns for call in others)
    all_ns = rest_ns + sum(call.parts.wall_ns for call in shown)
    shares = _adding_up([*(call.parts.wall_ns for call in shown), rest_ns], all_ns)
    rows = [
        Row(
            name=sample_wording.outside_name(call),
            cells=(style.duration(call.parts.wall_ns), share, sample_wording.called_at(call)),
        )
        for call, share in zip(shown, shares, strict=False)
    ]
    if others:
        rest = format_count(len(others), "other function")
        cells = style.duration(rest_ns), shares[-2], ""
        rows.append(Row(name=f"… {rest}", cells=cells, emphasis=Emphasis.FAINT))
    cells = style.duration(all_ns), shares[-1], ""
    rows.append(Row(name="all", cells=cells, emphasis=Emphasis.STRONG, total=True))
    table = Table(names="function", columns=_OUTSIDE_COLUMNS, rows=tuple(rows))
    return Section(title="Outside any phase: the functions called there", blocks=(table,))


def _split_cells(parts: Parts, cpu_share: str, style: Style) -> tuple[str, ...]:
    shares = _adding_up([parts.python_ns, parts.native_ns, parts.waiting_ns], parts.wall_ns)
    return (style.duration(parts.wall_ns), style.duration(parts.cpu_ns), cpu_share, *shares[:3])


def _adding_up(parts: Sequence[int], total: int) -> list[str]:
    """Percentages that make 100.0 as printed, last their sum; dashes where there is nothing to share."""
    if not total:
        return [UNKNOWN_CELL] * (len(parts) + 1)
    return written_to_sum([100 * part / total for part in parts], 100 * sum(parts) / total, decimals=1)


def _own_shares(
    shown: Sequence[SampledFunction | SampledLine],
    others: Sequence[SampledFunction | SampledLine],
    results: SampleResults,
) -> list[str]:
    """Of all CPU time, that of each one's own, of the others together, and of all."""
    own_ns = [place.own.cpu_ns for place in shown]
    rest_ns = sum(place.own.cpu_ns for place in others)
    return _adding_up([*own_ns, rest_ns], results.overall.parts.cpu_ns)


def _functions(
    results: SampleResults, *, top: int, style: Style, whole: bool, on_map: MapLinks | None
) -> Section:
    shown, others = _largest(results.functions, top)
    selves = _own_shares(shown, others, results)
    rows = [
        Row(
            name=f"{function.rank}. {function.name}",
            cells=(
                own,
                _margin(function.self_share),
                _at_least(own, function.total_share),
                function.module,
                _file_and_line(function),
                sample_wording.describe_notes(function, wordy=style.wordy),
            ),
            link=None if on_map is None else on_map.address(function),
        )
        for function, own in zip(shown, selves, strict=False)
    ]
    rows += _rest(len(others), selves, "function", blanks=4)
    table = Table(names="function", columns=_FUNCTION_COLUMNS, rows=tuple(rows))
    if not whole:
        # Names and files say more in the same room.
        table = _without(table, "module")
    return Section(
        title="Functions, by CPU time of their own",
        blocks=(table, *notes(sample_wording.describe_shares(results, wordy=style.wordy or whole))),
    )


def _without(table: Table, heading: str) -> Table:
    kept = [index for index, column in enumerate(table.columns) if column.heading != heading]
    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(replace(row, cells=tuple(row.cells[index] for index in kept)) for row in table.rows),
    )


def _lines(results: SampleResults, *, top: int) -> Section:
    shown, others = _largest(results.lines, top)
    selves = _own_shares(shown, others, results)
    rows = [
        Row(
            name=f"{line.rank}. {sample_wording.place(line.file, line.line)}",
            cells=(
                own,
                _margin(line.self_share),
                _at_least(own, line.total_share),
                line.function,
                line.module,
            ),
        )
        for line, own in zip(shown, selves, strict=False)
    ]
    rows += _rest(len(others), selves, "line", blanks=3)
    table = Table(names="line", columns=_LINE_COLUMNS, rows=tuple(rows))
    return Section(title="Lines, by CPU time of their own", blocks=(table,))


def _largest(rows: Sequence[_Row], top: int) -> tuple[Sequence[_Row], Sequence[_Row]]:
    """The first rows, as far as they have CPU time of their own, and the others."""
    most = min(top, sum(1 for row in rows if row.own.cpu_ns))
    return rows[:most], rows[most:]


def _rest(others: int, selves: Sequence[str], noun: str, *, blanks: int) -> Iterator[Row]:
    """What is not shown, and the sum."""
    if others:
        yield Row(
            name=f"… {format_count(others, f'other {noun}')}",
            cells=(selves[-2], *[""] * (blanks + 1)),
            emphasis=Emphasis.FAINT,
        )
    yield Row(name="all", cells=(selves[-1], *[""] * (blanks + 1)), emphasis=Emphasis.STRONG, total=True)


def _paths(results: SampleResults, *, most: int) -> Section:
    found = results.hot_paths
    shown, others = found.paths[:most], found.paths[most:]
    rest_ns = found.others_cpu_ns + sum(path.cpu_ns for path in others)
    shares = _adding_up([*(path.cpu_ns for path in shown), rest_ns], results.overall.parts.cpu_ns)
    rows = [
        Row(
            name=f"{rank}. {_innermost(path)}",
            cells=(share, _margin(path.share), f"{path.samples:,}"),
            details=(sample_wording.describe_path(path),),
        )
        for rank, (path, share) in enumerate(zip(shown, shares, strict=False), start=1)
    ]
    rows += _rest(found.others + len(others), shares, "stack", blanks=1)
    table = Table(names="innermost", columns=_PATH_COLUMNS, rows=tuple(rows), details="from the outermost")
    return Section(title="Hot paths: the call stacks with most CPU time", blocks=(table,))


def _natives(results: SampleResults, *, top: int) -> Section:
    shown, others = results.natives[:top], results.natives[top:]
    parts = results.overall.parts
    rest_ns = sum(native.cpu_ns for native in others)
    shares = _adding_up(
        [*(native.cpu_ns for native in shown), rest_ns, parts.python_ns], results.overall.parts.cpu_ns
    )
    rows = [
        Row(
            name=f"{rank}. {sample_wording.native_name(native.frame)}",
            cells=(share, _margin(native.share), f"{native.samples:,}"),
        )
        for rank, (native, share) in enumerate(zip(shown, shares, strict=False), start=1)
    ]
    rows.append(Row(name="Python's own code", cells=(shares[-2], "", ""), emphasis=Emphasis.FAINT))
    rows += _rest(len(others), [shares[-3], shares[-1]], "native function", blanks=1)
    table = Table(names="native function", columns=_PATH_COLUMNS, rows=tuple(rows))
    return Section(title="Native functions, by CPU time", blocks=(table,))


def _innermost(path: HotPath) -> str:
    return path.frames[-1].frame.name


def _file_and_line(function: SampledFunction) -> str:
    return sample_wording.place(function.file, function.first_line)


def _at_least(own: str, share: Share | None) -> str:
    """The total beside what is its own, which was written to add up and may be a tenth more."""
    return UNKNOWN_CELL if share is None else f"{max(float(own), 100 * share.value):.1f}"


def _margin(share: Share | None) -> str:
    return UNKNOWN_CELL if share is None else f"{100 * share.interval.margin:.1f}"
