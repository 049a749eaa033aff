"""The scopes of a run by name, wherever in the call tree they stand."""

from dataclasses import dataclass

from pyrometer.analysis.call_tree import (
    CallTree,
    TreeNode,
    build_call_tree,
    greatest,
    least,
    merge_histograms,
    sum_known,
)
from pyrometer.record.run import Run
from pyrometer.stats.buckets import quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSummary:
    """All calls of all scopes of one name.

    ``total_ns`` and ``suspended_ns`` count outermost calls only, so a recursive scope's time is
    counted once; ``self_ns`` counts every call, and summed over all names it is all time in scopes.
    ``calls``, ``average_ns``, ``min_ns``, the percentiles and ``max_ns`` describe single finished
    calls, recursive ones too.
    """

    name: str
    calls: int
    open_calls: int
    total_ns: int
    self_ns: int
    average_ns: float | None
    """None while a call is open: its time so far cannot be told apart from the finished calls'."""
    min_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    suspended_ns: int
    wall_ns: int | None
    """For names that occur on several threads: time that went by, where ``total_ns`` sums threads.

    Never more than the profiled time. None where no parallel scope has the name, or where the
    wall time of one was not measured.
    """
    wall_is_upper_bound: bool
    """Whether ``wall_ns``, and so ``share``, adds up places whose times may have overlapped."""
    share: float
    """Fraction of the profiled time: of ``wall_ns`` where that is known, else of ``total_ns``."""
    parallel: bool
    allocated_bytes: int | None
    """Bytes of torch's CPU tensors allocated inside outermost calls; None where not counted."""
    allocations: int | None
    recursive: bool
    """Whether it was entered inside itself: then ``total_ns`` is less than calls times average."""


def summarize_by_name(run: Run) -> tuple[ScopeSummary, ...]:
    """Each name's summary, ordered by ``total_ns``, largest first, then by name."""
    return summarize_tree(build_call_tree(run))


def summarize_tree(tree: CallTree) -> tuple[ScopeSummary, ...]:
    """Each name's summary over a call tree, ordered as ``summarize_by_name`` orders them."""
    names: dict[str, _Name] = {}
    open_names: dict[str, int] = {}
    path: list[str] = []
    for depth, node in tree.walk():
        while len(path) > depth:
            open_names[path.pop()] -= 1
        outermost = not open_names.get(node.name)
        names.setdefault(node.name, _Name()).add(node, outermost=outermost)
        path.append(node.name)
        open_names[node.name] = open_names.get(node.name, 0) + 1
    summaries = (collected.summary(name, tree.profiled_ns) for name, collected in names.items())
    return tuple(sorted(summaries, key=lambda summary: (-summary.total_ns, summary.name)))


class _Name:
    """The nodes of one name, as they are met in the tree."""

    __slots__ = ("nodes", "outermost")

    def __init__(self) -> None:
        self.nodes: list[TreeNode] = []
        self.outermost: list[TreeNode] = []

    def add(self, node: TreeNode, *, outermost: bool) -> None:
        self.nodes.append(node)
        if outermost:
            self.outermost.append(node)

    def summary(self, name: str, profiled_ns: int) -> ScopeSummary:
        calls = sum(node.calls for node in self.nodes)
        open_calls = sum(node.open_calls for node in self.nodes)
        total_ns = sum(node.total_ns for node in self.outermost)
        walls_ns = self._walls_ns()
        wall_ns = None if walls_ns is None else min(sum(walls_ns), profiled_ns)
        min_ns = max_ns = None
        for node in self.nodes:
            min_ns = least(min_ns, node.min_ns)
            max_ns = greatest(max_ns, node.max_ns)
        average_ns = None
        if calls and not open_calls:
            average_ns = sum(node.total_ns for node in self.nodes) / calls
        p50_ns, p95_ns, p99_ns = self._percentiles(min_ns, max_ns)
        share_ns = total_ns if wall_ns is None else wall_ns
        return ScopeSummary(
            name=name,
            calls=calls,
            open_calls=open_calls,
            total_ns=total_ns,
            self_ns=sum(node.self_ns for node in self.nodes),
            average_ns=average_ns,
            min_ns=min_ns,
            p50_ns=p50_ns,
            p95_ns=p95_ns,
            p99_ns=p99_ns,
            max_ns=max_ns,
            suspended_ns=sum(node.suspended_ns for node in self.outermost),
            wall_ns=wall_ns,
            wall_is_upper_bound=walls_ns is not None and len(walls_ns) > 1,
            share=share_ns / profiled_ns if profiled_ns else 0.0,
            parallel=any(node.parallel for node in self.nodes),
            allocated_bytes=sum_known([node.allocated_bytes for node in self.outermost]),
            allocations=sum_known([node.allocations for node in self.outermost]),
            recursive=len(self.nodes) > len(self.outermost),
        )

    def _percentiles(
        self, min_ns: int | None, max_ns: int | None
    ) -> tuple[int | None, int | None, int | None]:
        buckets = merge_histograms([node.buckets for node in self.nodes])
        if min_ns is None or max_ns is None or not buckets:
            return None, None, None
        p50_ns, p95_ns, p99_ns = (
            quantile(buckets, q, min_ns=min_ns, max_ns=max_ns) for q in (0.50, 0.95, 0.99)
        )
        return p50_ns, p95_ns, p99_ns

    def _walls_ns(self) -> list[int] | None:
        """The wall times, 0 left out, of the places that may have run side by side."""
        if not any(node.parallel for node in self.nodes):
            return None
        # Under a parallel scope, a scope and its namesake on a thread started there share one wall
        # clock: the same stretch of time, to be counted once.
        shared: dict[object, int] = {}
        alone_ns = 0
        for node in self.outermost:
            if not node.parallel:
                alone_ns += node.total_ns
            elif node.wall_ns is None:
                return None
            else:
                shared[node.place.outer] = max(shared.get(node.place.outer, 0), node.wall_ns)
        return [wall_ns for wall_ns in (alone_ns, *shared.values()) if wall_ns]
