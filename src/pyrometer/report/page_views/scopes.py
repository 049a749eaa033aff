"""The program's own scopes, as a tree and by name."""

from collections.abc import Sequence

from pyrometer.analysis.call_tree import CallTree, TreeNode
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.report import wording
from pyrometer.report.page_views.blocks import (
    MOST_ROWS,
    Block,
    GridColumn,
    code,
    grid,
    heading,
    left_out,
    missing,
    text,
    view,
)
from pyrometer.report.tree_rows import tree_share
from pyrometer.units import compact_share, format_duration, format_share

_PARALLEL = " ∥"
_OUTSIDE = "(outside any scope)"


def build_scopes_view(observed: Observed) -> Block:
    """The tree, then each name with the spread of its calls."""
    tree = observed.merged.tree
    if not tree.roots:
        blocks = [missing(wording.NO_SCOPES), code(wording.HOW_TO_MARK)]
        return view("scopes", "Scopes", blocks)
    scopes = observed.scopes
    apart = tuple(scope for scope in scopes if scope.open_calls or scope.suspended_ns)
    profiled = format_duration(tree.profiled_ns)
    blocks = [
        text(f"What the program marked itself; % is of the {profiled} profiled."),
        heading("Tree"),
        _tree(tree, wording.describe_marks(scopes, apart, tree)),
        heading("By name"),
        _table(
            scopes[:MOST_ROWS],
            (*wording.describe_apart(apart), *left_out(len(scopes) - MOST_ROWS)),
            share_is_known=tree.profiled_ns > 0,
        ),
    ]
    return view("scopes", "Scopes", blocks, count=len(scopes))


def _tree(tree: CallTree, notes: Sequence[str]) -> Block:
    nodes: list[TreeNode] = []
    parents: list[int] = []
    above: list[int] = []
    for depth, node in tree.walk():
        del above[depth:]
        parents.append(above[-1] if above else -1)
        above.append(len(nodes))
        nodes.append(node)
    outside_share = None if not tree.profiled_ns else tree.outside_ns / tree.profiled_ns
    columns = [
        GridColumn(
            heading="%",
            spelled="% of the profiled time",
            unit="share",
            values=[tree_share(node, tree.profiled_ns) for node in nodes],
            bar=True,
        ),
        GridColumn(heading="total", unit="duration", values=[node.total_ns for node in nodes]),
        GridColumn(heading="self", unit="duration", values=[node.self_ns for node in nodes]),
        GridColumn(heading="calls", unit="count", values=[node.calls for node in nodes]),
        GridColumn(heading="min", unit="duration", values=[node.min_ns for node in nodes]),
        GridColumn(heading="max", unit="duration", values=[node.max_ns for node in nodes]),
        GridColumn(
            heading="suspended", unit="duration", values=[node.suspended_ns or None for node in nodes]
        ),
        GridColumn(
            heading="open",
            spelled="open calls",
            unit="count",
            values=[node.open_calls or None for node in nodes],
        ),
        GridColumn(
            heading="wall",
            spelled="wall time of threads side by side",
            unit="duration",
            values=[node.wall_ns for node in nodes],
        ),
        GridColumn(
            heading="allocated",
            spelled="bytes of torch's CPU tensors",
            unit="bytes",
            values=[node.allocated_bytes for node in nodes],
        ),
    ]
    shown = [column.heading for column in columns if column.is_known]
    written = {
        "%": "" if outside_share is None else compact_share(outside_share),
        "total": format_duration(tree.outside_ns),
    }
    return grid(
        "scopes-tree",
        heading="scope",
        names=[_marked(node.name, parallel=node.parallel) for node in nodes],
        parents=parents,
        columns=columns,
        total=(_OUTSIDE, [written.get(heading, "") for heading in shown]),
        notes=notes,
    )


def _table(scopes: Sequence[ScopeSummary], notes: Sequence[str], *, share_is_known: bool) -> Block:
    columns = [
        GridColumn(
            heading="%",
            spelled="% of the profiled time",
            unit="share",
            values=[scope.share if share_is_known else None for scope in scopes],
            texts=[_bounded(scope) if share_is_known else None for scope in scopes],
            bar=True,
        ),
        GridColumn(heading="total", unit="duration", values=[scope.total_ns for scope in scopes]),
        GridColumn(heading="self", unit="duration", values=[scope.self_ns for scope in scopes]),
        GridColumn(heading="calls", unit="count", values=[scope.calls for scope in scopes]),
        *(
            GridColumn(
                heading=figure,
                unit="duration",
                values=[getattr(scope, f"{figure if figure != 'avg' else 'average'}_ns") for scope in scopes],
            )
            for figure in ("avg", "min", "p50", "p95", "p99", "max")
        ),
        GridColumn(heading="allocated", unit="bytes", values=[scope.allocated_bytes for scope in scopes]),
    ]
    return grid(
        "scopes",
        heading="scope",
        names=[_marked(scope.name, parallel=scope.parallel) for scope in scopes],
        columns=columns,
        sort=1,
        notes=notes,
    )


def _bounded(scope: ScopeSummary) -> str | None:
    written = format_share(scope.share).removesuffix(" %")
    return f"≤ {written}" if scope.wall_is_upper_bound and not written.startswith("<") else None


def _marked(name: str, *, parallel: bool) -> str:
    return f"{name}{_PARALLEL}" if parallel else name
