"""The analysed figures of a run as JSON, for programs.

The raw record is the run file; this is what the other reports say, unrounded. Keys stay, new
ones may come, and ``version`` rises when the meaning of one changes. Times are in nanoseconds
(``_ns``), sizes in bytes (``_bytes``), shares are fractions of ``profiled_ns``. What is unknown
is ``null``. The text is plain ASCII.

``format``, ``version``
    ``"pyrometer-report"`` and the version of this layout.
``program``, ``outcome``, ``started_at``, ``machine``, ``software``, ``recorder``, ``pyrometer_version``
    As in the run file, with every key present.
``profiled_ns``, ``outside_ns``
    Wall time the recorder was on, and the part of it the main thread spent in no scope.
``scopes``, ``scopes_not_shown``
    By name, largest ``total_ns`` first: ``name``, ``calls``, ``open_calls``, ``total_ns``,
    ``self_ns``, ``average_ns``, ``min_ns``, ``p50_ns``, ``p95_ns``, ``p99_ns``, ``max_ns``,
    ``suspended_ns``, ``wall_ns``, ``wall_is_upper_bound`` (``wall_ns``, and so ``share``, adds up
    places whose times may have overlapped), ``share``, ``parallel``, ``recursive``,
    ``allocated_bytes`` and ``allocations`` (of torch's CPU tensors).
``tree``
    Every node, a parent before its children: ``name``, ``parent`` (its index in this list, null
    at the top), ``depth``, ``calls``, ``open_calls``, ``total_ns``, ``self_ns``, ``min_ns``,
    ``max_ns``, ``suspended_ns``, ``wall_ns``, ``allocated_bytes``, ``self_allocated_bytes``,
    ``allocations``, ``share``, ``parallel``, ``starts_strand``.
    ``self_ns`` and the ``total_ns`` of the children without ``starts_strand`` make ``total_ns``.
    A flat list, since a tree a thousand levels deep is more than many JSON readers take.
``threads``
    Each thread that was in scopes, largest ``total_ns`` first: ``thread_id``, ``thread_name``,
    ``threads`` (how many are folded together here, all figures summed), ``started_in`` (the index
    in ``tree`` of the scope it was started in, or null), ``total_ns``, and its own ``tree``, in
    which nothing is parallel, ``wall_ns`` is null and ``share`` is that of ``total_ns``.
``own_cost``
    ``scope_ns`` times ``scope_entries`` is ``scopes_ns``, its ``share``, ``startup_ns``,
    ``checkpoint_ns``, ``hook_ns`` (around PyTorch's calls), ``window_ns`` (opening and closing windows of
    operators).
``torch``, ``memory``
    See ``torch_json``.
``allocations``
    null when they were not counted. ``bytes`` and ``allocations`` of tensors and heap together; ``process``:
    ``tensor_bytes``, ``tensor_allocations``, ``heap_bytes``, ``heap_allocations``, ``freed_bytes``,
    ``frees``, ``mapped_bytes``, ``maps``, ``mapped_shared_bytes``, ``shared_maps``, ``unmapped_bytes``,
    ``unmaps`` (by ``mmap``, in no other figure), ``live_bytes``, ``peak_bytes`` (both over what was there
    when counting began), ``python_bytes``, ``python_allocations`` (null unless asked for), and the same,
    but for maps, by phase in ``phases``;
    ``spots``: ``kind`` (phase, module, scope), ``name``, ``bytes``, ``tensor_bytes``, ``allocations``,
    ``share``, ``bytes_per_allocation``, ``allocations_per_step``, of its own code, over ``steps``;
    ``held``, of the same with all that is called inside: ``kind``, ``name``, ``calls``, ``bytes``,
    ``tensor_bytes``, ``allocations``, ``freed_bytes``, ``kept_bytes``, ``peak_bytes``;
    ``lines``: ``function``, ``file``, ``line``, ``bytes``, ``error_bytes``, ``share``, ``samples``,
    ``large_allocations``, ``mostly_in``; ``sampled_bytes``, ``bytes_without_python``, ``bytes_missed``.
``counters``
    What ``--counters`` and ``--cachegrind`` counted; null when neither was asked for.
    ``hardware``: ``source``; ``process`` and each of ``threads`` with ``name``, ``threads`` (how many are
    put together), ``instructions_per_cycle`` and ``counters``: ``name``, ``count``, ``reason`` (why there
    is none), ``counted_share`` (below 1 the count is scaled), ``rate`` and what it is a ``rate_of``;
    ``with_forked_processes``, ``advice``.
    ``simulated``: ``source``, ``reason`` (why there are no counts), ``scope`` (null: the whole program),
    ``instructions``, ``caches`` (``name``, ``references``, ``misses``, ``rate``), ``functions`` (``name``,
    ``library``, ``instructions``, ``share``, ``data_references``, ``d1_misses``, ``d1_rate``,
    ``ll_misses``, ``ll_share``) of ``function_count``, ``models`` (the shape of each cache),
    ``slowdown``, ``environment`` (what was set), ``file``.
``samples``
    See ``sample_json``.
``losses``
    ``collector``, ``reason`` and ``count`` of each.
"""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.call_tree import CallTree
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.results import Results, build_results, largest_first
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.record.run import Run
from pyrometer.report.sample_json import sample_content
from pyrometer.report.torch_json import as_json, torch_content
from pyrometer.report.tree_rows import tree_share

REPORT_FORMAT = "pyrometer-report"
REPORT_VERSION = 1

_SCOPE_FIGURES = tuple(field.name for field in dataclasses.fields(ScopeSummary))
_NODE_FIGURES = (
    "calls", "open_calls", "total_ns", "self_ns", "min_ns", "max_ns", "suspended_ns", "wall_ns",
    "allocated_bytes", "self_allocated_bytes", "allocations",
)  # fmt: skip


def render_json(run: Run | Observed, *, top: int | None = None) -> str:
    """The figures of the report, by default of all scopes; tree and threads are always whole."""
    observed = observe(run)
    run, results = observed.run, build_results(observed)
    scopes = results.scopes[:top]
    content = {
        "format": REPORT_FORMAT,
        "version": REPORT_VERSION,
        "pyrometer_version": run.pyrometer_version,
        "recorder": run.recorder,
        "started_at": run.started_at,
        "program": as_json(run.program),
        "outcome": as_json(run.outcome),
        "profiled_ns": run.profiled_ns,
        "outside_ns": results.tree.outside_ns,
        "scopes": _scopes(scopes, share_is_known=run.profiled_ns > 0),
        "scopes_not_shown": len(results.scopes) - len(scopes),
        "tree": _tree(results.tree),
        "threads": _threads(results),
        "torch": None if results.torch is None else torch_content(results.torch),
        "memory": as_json(results.memory),
        "allocations": _allocations(results.allocations),
        "counters": as_json(observed.counters),
        "samples": None if results.samples is None else sample_content(results.samples, top=top),
        "own_cost": {
            **as_json(run.cost),
            "scopes_ns": run.cost.scopes_ns,
            "share": run.cost.scopes_ns / run.profiled_ns if run.profiled_ns else None,
        },
        "losses": [as_json(loss) for loss in run.losses],
        "machine": as_json(run.machine),
        "software": as_json(run.software),
    }
    return f"{_laid_out(content)}\n"


def _laid_out(content: dict[str, Any]) -> str:
    try:
        # In two steps: asked for an indent, json leaves its C encoder, and a large tree takes seconds.
        return msgspec.json.format(json.dumps(content, allow_nan=False), indent=2)
    except msgspec.DecodeError:
        # Lone surrogates, from arguments and paths that are not UTF-8, are json's alone to write.
        return json.dumps(content, allow_nan=False, indent=2)


def _scopes(scopes: Iterable[ScopeSummary], *, share_is_known: bool) -> list[dict[str, Any]]:
    rows = [{figure: getattr(scope, figure) for figure in _SCOPE_FIGURES} for scope in scopes]
    return rows if share_is_known else [{**row, "share": None} for row in rows]


def _allocations(results: AllocationResults | None) -> dict[str, Any] | None:
    if results is None:
        return None
    content: dict[str, Any] = as_json(results)
    del content["process"]["sites"]  # as raw as in the run file
    return content


def _tree(tree: CallTree) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    above: list[int] = []
    for depth, node in tree.walk():
        del above[depth:]
        row: dict[str, Any] = {"name": node.name, "parent": above[-1] if above else None, "depth": depth}
        row |= {figure: getattr(node, figure) for figure in _NODE_FIGURES}
        row["share"] = tree_share(node, tree.profiled_ns)
        row |= {"parallel": node.parallel, "starts_strand": node.starts_strand}
        above.append(len(rows))
        rows.append(row)
    return rows


def _threads(results: Results) -> list[dict[str, Any]]:
    # An index, as the paths of many threads deep in a tree would be far longer than the tree itself.
    indices = {node.place: index for index, (_, node) in enumerate(results.tree.walk())}
    return [
        {
            "thread_id": thread.thread_id,
            "thread_name": thread.thread_name,
            "threads": thread.threads,
            "started_in": None if thread.parent is None else indices[thread.parent],
            "total_ns": thread.total_ns,
            "tree": _tree(thread.tree),
        }
        for thread in largest_first(results.threads)
    ]
