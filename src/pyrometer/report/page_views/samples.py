"""Functions, lines, call stacks and native code by the CPU time that samples met them in."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.frame_tree import Parts
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import SampleResults, TimeSplit
from pyrometer.analysis.sampled_functions import SampledFunction, SampledLine, Share
from pyrometer.report import sample_wording
from pyrometer.report.map_links import MapLinks
from pyrometer.report.page_views.blocks import (
    Block,
    GridColumn,
    bullets,
    grid,
    heading,
    missing,
    small_print,
    view,
)

NOT_SAMPLED = (
    "No stacks were sampled: it was switched off (--sample-hz 0), or could not be done here. "
    "By default every thread is looked at 100 times a second."
)
SAMPLE_COMMAND = "pyrometer run --sample-hz 100 PROGRAM.py"
_MOST_LINES = 2_000
_NATIVE_NAMES = "The names of native functions were not asked for; --native and --deep record them."


def build_functions_view(observed: Observed, on_map: MapLinks | None = None) -> Block:
    """Where the CPU time goes, from functions down to lines; with a map, also where on it a function is."""
    results = observed.samples
    title = "Functions"
    if results is None:
        return view("functions", title, [missing(NOT_SAMPLED, command=SAMPLE_COMMAND)])
    if not results.overall.parts.samples:
        return view("functions", title, [missing(sample_wording.NO_SAMPLES, command=SAMPLE_COMMAND)])
    blocks = [
        _functions(results.functions, list(sample_wording.describe_shares(results)), on_map),
        *_splits(results),
        *_paths(results),
        *_natives(results),
        heading("Lines"),
        _lines(results.lines[:_MOST_LINES]),
        heading("In words"),
        bullets(sample_wording.in_words(results)),
    ]
    return view("functions", title, blocks, count=len(results.functions))


def _functions(functions: Sequence[SampledFunction], notes: Sequence[str], on_map: MapLinks | None) -> Block:
    return grid(
        "functions",
        heading="function",
        names=[function.name for function in functions],
        full_names=[f"{function.module}.{function.name}" for function in functions],
        columns=[
            *_share_columns(functions),
            GridColumn(heading="self", unit="duration", values=[each.own.cpu_ns for each in functions]),
            GridColumn(heading="total", unit="duration", values=[each.total_cpu_ns for each in functions]),
            GridColumn(
                heading="waiting",
                spelled="time of its own in which the thread did not run",
                unit="duration",
                values=[each.own.waiting_ns for each in functions],
            ),
            GridColumn(heading="samples", unit="count", values=[each.own.samples for each in functions]),
            GridColumn(heading="module", unit="text", values=[each.module for each in functions]),
            GridColumn(
                heading="file:line",
                unit="text",
                values=[sample_wording.place(each.file, each.first_line) for each in functions],
            ),
            GridColumn(
                heading="note",
                unit="text",
                values=[sample_wording.describe_notes(each, wordy=True) or None for each in functions],
            ),
            *([] if on_map is None else [on_map.column(functions)]),
        ],
        sort=0,
        notes=notes,
    )


def _share_columns(rows: Sequence[SampledFunction] | Sequence[SampledLine]) -> list[GridColumn]:
    return [
        GridColumn(
            heading="self %",
            spelled="self, % of the CPU time",
            unit="share",
            values=[_value(row.self_share) for row in rows],
            bar=True,
        ),
        _margins([row.self_share for row in rows]),
        GridColumn(
            heading="total %",
            spelled="with what it calls, % of the CPU time",
            unit="share",
            values=[_value(row.total_share) for row in rows],
        ),
    ]


def _value(share: Share | None) -> float | None:
    return None if share is None else share.value


def _margins(shares: Sequence[Share | None]) -> GridColumn:
    return GridColumn(
        heading="±",
        spelled="half of the 95 % interval",
        unit="share",
        values=[None if share is None else share.interval.margin for share in shares],
    )


def _lines(lines: Sequence[SampledLine]) -> Block:
    return grid(
        "lines",
        heading="line",
        names=[sample_wording.place(line.file, line.line) for line in lines],
        columns=[
            *_share_columns(lines),
            GridColumn(heading="self", unit="duration", values=[line.own.cpu_ns for line in lines]),
            GridColumn(heading="function", unit="text", values=[line.function for line in lines]),
            GridColumn(heading="module", unit="text", values=[line.module for line in lines]),
        ],
        sort=0,
    )


def _splits(results: SampleResults) -> Iterator[Block]:
    yield heading("Where the time goes")
    named = (
        ("phase", results.phases),
        ("module", results.modules),
        ("scope", results.scopes),
        ("thread", results.threads),
    )
    for names, splits in named:
        if splits:
            yield _split(names, splits, results.overall.parts)
    yield from small_print(sample_wording.describe_sampling(results))


def _split(names: str, splits: Sequence[TimeSplit], overall: Parts) -> Block:
    parts = [split.parts for split in splits]
    return grid(
        f"time-by-{names}",
        heading=names,
        names=[split.name for split in splits],
        columns=[
            GridColumn(
                heading="% CPU",
                spelled="% of all CPU time",
                unit="share",
                values=[_part(each.cpu_ns, overall.cpu_ns) for each in parts],
                bar=True,
            ),
            GridColumn(heading="CPU", unit="duration", values=[each.cpu_ns for each in parts]),
            GridColumn(heading="Python", unit="duration", values=[each.python_ns for each in parts]),
            GridColumn(heading="native", unit="duration", values=[each.native_ns for each in parts]),
            GridColumn(heading="waiting", unit="duration", values=[each.waiting_ns for each in parts]),
            GridColumn(
                heading="time",
                spelled="time of threads",
                unit="duration",
                values=[each.wall_ns for each in parts],
            ),
        ],
        sort=0,
    )


def _part(part_ns: int, whole_ns: int) -> float | None:
    return part_ns / whole_ns if whole_ns else None


def _paths(results: SampleResults) -> Iterator[Block]:
    paths = results.hot_paths.paths
    if not paths:
        return
    yield heading("Hot paths: the call stacks with most CPU time")
    yield grid(
        "hot-paths",
        heading="innermost",
        names=[path.frames[-1].frame.name for path in paths],
        columns=[
            GridColumn(
                heading="%",
                spelled="% of the CPU time",
                unit="share",
                values=[_value(path.share) for path in paths],
                bar=True,
            ),
            _margins([path.share for path in paths]),
            GridColumn(heading="CPU", unit="duration", values=[path.cpu_ns for path in paths]),
            GridColumn(heading="samples", unit="count", values=[path.samples for path in paths]),
        ],
        details=[sample_wording.describe_path(path) for path in paths],
    )


def _natives(results: SampleResults) -> Iterator[Block]:
    yield heading("Native functions")
    if not results.natives:
        yield missing(_NATIVE_NAMES, command="pyrometer run --native PROGRAM.py")
        return
    natives = results.natives
    yield grid(
        "native-functions",
        heading="native function",
        names=[sample_wording.native_name(native.frame) for native in natives],
        columns=[
            GridColumn(
                heading="%",
                spelled="% of the CPU time",
                unit="share",
                values=[_value(native.share) for native in natives],
                bar=True,
            ),
            _margins([native.share for native in natives]),
            GridColumn(heading="CPU", unit="duration", values=[native.cpu_ns for native in natives]),
            GridColumn(heading="samples", unit="count", values=[native.samples for native in natives]),
        ],
        sort=0,
    )
