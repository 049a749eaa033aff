"""The tables of scopes, threads and sampled functions as rows of plain values."""

from collections.abc import Iterable, Iterator

from pyrometer.analysis.call_tree import CallTree, MergedStrands
from pyrometer.analysis.frame_tree import Parts
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.results import build_thread_results, largest_first
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.sampled_functions import Share
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.report.csv_cells import CsvTable, Record, table_of
from pyrometer.report.stack_exports import frame_text
from pyrometer.report.tree_rows import tree_share


def code_tables(observed: Observed) -> Iterator[CsvTable | None]:
    """Scopes, threads, functions, lines and stacks; None where there is nothing."""
    merged, samples = observed.merged, observed.samples
    yield table_of("scopes", _scopes(observed.scopes, share_is_known=observed.run.profiled_ns > 0))
    yield table_of("scope_tree", _scope_tree(merged.tree))
    yield table_of("threads", _threads(observed, merged))
    if samples is not None:
        yield table_of("functions", _functions(samples))
        yield table_of("lines", _lines(samples))
        yield table_of("hot_paths", _hot_paths(samples))


# Scopes and threads.


def _scopes(scopes: Iterable[ScopeSummary], *, share_is_known: bool) -> Iterator[Record]:
    for scope in scopes:
        yield {
            "name": scope.name,
            "calls": scope.calls,
            "open_calls": scope.open_calls,
            "total_ns": scope.total_ns,
            "self_ns": scope.self_ns,
            "average_ns": scope.average_ns,
            "min_ns": scope.min_ns,
            "p50_ns": scope.p50_ns,
            "p95_ns": scope.p95_ns,
            "p99_ns": scope.p99_ns,
            "max_ns": scope.max_ns,
            "suspended_ns": scope.suspended_ns,
            "wall_ns": scope.wall_ns,
            "wall_is_upper_bound": scope.wall_is_upper_bound,
            "share": scope.share if share_is_known else None,
            "is_parallel": scope.parallel,
            "is_recursive": scope.recursive,
            "allocated_bytes": scope.allocated_bytes,
            "allocations": scope.allocations,
        }


def _scope_tree(tree: CallTree) -> Iterator[Record]:
    above: list[int] = []
    for index, (depth, node) in enumerate(tree.walk()):
        del above[depth:]
        yield {
            "index": index,
            "parent": above[-1] if above else None,
            "depth": depth,
            "name": node.name,
            "calls": node.calls,
            "open_calls": node.open_calls,
            "total_ns": node.total_ns,
            "self_ns": node.self_ns,
            "min_ns": node.min_ns,
            "max_ns": node.max_ns,
            "suspended_ns": node.suspended_ns,
            "wall_ns": node.wall_ns,
            "share": tree_share(node, tree.profiled_ns),
            "is_parallel": node.parallel,
            "starts_strand": node.starts_strand,
            "allocated_bytes": node.allocated_bytes,
            "self_allocated_bytes": node.self_allocated_bytes,
            "allocations": node.allocations,
        }
        above.append(index)


def _threads(observed: Observed, merged: MergedStrands) -> Iterator[Record]:
    """By scopes and by samples, which know a thread by different things: its number, and its name."""
    unsampled: Record = dict.fromkeys(_parts(Parts()))
    for thread in largest_first(build_thread_results(observed.run, merged)):
        yield {
            "source": "scopes",
            "thread_name": thread.thread_name,
            "thread_id": thread.thread_id,
            "threads": thread.threads,
            "scopes_total_ns": thread.total_ns,
            **unsampled,
        }
    for split in () if observed.samples is None else observed.samples.threads:
        yield {
            "source": "samples",
            "thread_name": split.name,
            "thread_id": None,
            "threads": None,
            "scopes_total_ns": None,
            **_parts(split.parts),
        }


# Samples.


def _parts(parts: Parts) -> Record:
    return {
        "samples": parts.samples,
        "wall_ns": parts.wall_ns,
        "cpu_ns": parts.cpu_ns,
        "python_ns": parts.python_ns,
        "native_ns": parts.native_ns,
        "waiting_ns": parts.waiting_ns,
    }


def _share(name: str, share: Share | None) -> Record:
    interval = None if share is None else share.interval
    return {
        name: None if share is None else share.value,
        f"{name}_low": None if interval is None else interval.low,
        f"{name}_high": None if interval is None else interval.high,
    }


def _functions(samples: SampleResults) -> Iterator[Record]:
    for function in samples.functions:
        yield {
            "rank": function.rank,
            "name": function.name,
            "module": function.module,
            "file": function.file,
            "first_line": function.first_line,
            "origin": function.origin.value,
            "notes": tuple(note.value for note in function.notes),
            **_parts(function.own),
            "total_cpu_ns": function.total_cpu_ns,
            "total_wall_ns": function.total_wall_ns,
            **_share("self_share", function.self_share),
            **_share("total_share", function.total_share),
        }


def _lines(samples: SampleResults) -> Iterator[Record]:
    for line in samples.lines:
        yield {
            "rank": line.rank,
            "function": line.function,
            "module": line.module,
            "file": line.file,
            "line": line.line,
            **_parts(line.own),
            "total_cpu_ns": line.total_cpu_ns,
            **_share("self_share", line.self_share),
            **_share("total_share", line.total_share),
        }


def _hot_paths(samples: SampleResults) -> Iterator[Record]:
    for rank, path in enumerate(samples.hot_paths.paths, start=1):
        yield {
            "rank": rank,
            "stack": tuple(frame_text(place.frame) for place in path.frames),
            "samples": path.samples,
            "cpu_ns": path.cpu_ns,
            "native_ns": path.native_ns,
            "native": None if path.native is None else frame_text(path.native),
            **_share("share", path.share),
        }
