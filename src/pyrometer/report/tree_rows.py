"""The lines of a tree of scopes: the scopes that matter, the rest folded, nothing missing."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count

from pyrometer.analysis.call_tree import CallTree, TreeNode
from pyrometer.analysis.results import ThreadResult
from pyrometer.report import wording
from pyrometer.report.tree_guides import folded_together, with_guides
from pyrometer.units import format_count

DEEPEST = 12
LEAST_SHARE = 0.001


class RowKind(Enum):
    """What a line of the tree stands for."""

    SCOPE = "scope"
    FOLDED = "folded"
    OUTSIDE = "outside"
    THREAD = "thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    """One line of the tree.

    The rows just below a scope, those beside it (``starts_strand``) left out, and its ``self_ns``
    add up to its ``total_ns``; the rows at the top add up to the profiled time.
    """

    kind: RowKind
    depth: int
    guide: str
    """The lines drawn before the name, from the scopes above it."""
    name: str
    parallel: bool
    starts_strand: bool
    calls: int | None
    total_ns: int
    self_ns: int | None
    share: float | None


def tree_share(node: TreeNode, profiled_ns: int) -> float | None:
    """A node's share of the profiled time: of wall time where that was measured; None if unknown."""
    if not profiled_ns:
        return None
    return (node.total_ns if node.wall_ns is None else node.wall_ns) / profiled_ns


def build_tree_rows(tree: CallTree, *, most_scopes: int) -> tuple[TreeRow, ...]:
    """The ``most_scopes`` largest scopes of the tree with all above them, in their places.

    Scopes below a thousandth of the run, deeper than twelve levels or beyond the limit are
    folded, at their place, into one line that counts them, with all below them, and their time.
    """
    return tuple(_Rows(tree, _largest(tree, most_scopes)).top())


def build_thread_rows(
    threads: Sequence[ThreadResult], *, most_threads: int, most_scopes: int
) -> tuple[TreeRow, ...]:
    """The first ``most_threads`` threads, below each its own tree; the rest in one line.

    The rows just below a thread add up to its ``total_ns``.
    """
    rows: list[TreeRow] = []
    for thread in threads[:most_threads]:
        below = _Rows(thread.tree, _largest(thread.tree, most_scopes))
        rows.append(below.row(RowKind.THREAD, wording.describe_thread(thread), total_ns=thread.total_ns))
        rows += below.below(thread.tree.roots, depth=1)
    left_out = threads[most_threads:]
    if left_out:
        rows.append(
            TreeRow(
                kind=RowKind.FOLDED,
                depth=0,
                guide="",
                name=f"… {format_count(len(left_out), 'more thread')}",
                parallel=False,
                starts_strand=False,
                calls=None,
                total_ns=sum(thread.total_ns for thread in left_out),
                self_ns=None,
                # Side by side, their time together is no share of the time that went by.
                share=None,
            )
        )
    return tuple(rows)


def _largest(tree: CallTree, most_scopes: int) -> set[int]:
    """The ids of the nodes to show: largest first, a parent always before its children."""
    order = count()
    waiting = [(-node.total_ns, next(order), 0, node) for node in tree.roots]
    heapq.heapify(waiting)
    chosen: set[int] = set()
    while waiting and len(chosen) < most_scopes:
        _, _, depth, node = heapq.heappop(waiting)
        if node.total_ns < LEAST_SHARE * tree.profiled_ns:
            break  # All that wait are smaller still.
        chosen.add(id(node))
        if depth + 1 < DEEPEST:
            for child in node.children:
                heapq.heappush(waiting, (-child.total_ns, next(order), depth + 1, child))
    return chosen


class _Rows:
    def __init__(self, tree: CallTree, chosen: set[int]) -> None:
        self._tree = tree
        self._chosen = chosen

    def top(self) -> Iterator[TreeRow]:
        for entry in self._entries(self._tree.roots):
            yield from self._rows(entry, depth=0, guide="", guide_below="")
        if self._tree.roots:
            yield self.row(RowKind.OUTSIDE, "(outside any scope)", total_ns=self._tree.outside_ns)

    def below(self, nodes: tuple[TreeNode, ...], *, depth: int, guide: str = "") -> Iterator[TreeRow]:
        for entry, own, below in with_guides(self._entries(nodes), guide):
            yield from self._rows(entry, depth=depth, guide=own, guide_below=below)

    def _entries(self, siblings: tuple[TreeNode, ...]) -> list[TreeNode | list[TreeNode]]:
        """The siblings to show, then those to fold, those on threads of their own apart."""
        entries: list[TreeNode | list[TreeNode]] = []
        entries += (node for node in siblings if id(node) in self._chosen)
        for starts_strand in (False, True):
            alike = [node for node in siblings if node.starts_strand is starts_strand]
            entries += folded_together(alike, self._chosen)
        return entries

    def _rows(
        self, entry: TreeNode | list[TreeNode], *, depth: int, guide: str, guide_below: str
    ) -> Iterator[TreeRow]:
        if isinstance(entry, list):
            yield self._folded(entry, depth=depth, guide=guide)
            return
        yield TreeRow(
            kind=RowKind.SCOPE,
            depth=depth,
            guide=guide,
            name=entry.name,
            parallel=entry.parallel,
            starts_strand=entry.starts_strand,
            calls=entry.calls,
            total_ns=entry.total_ns,
            self_ns=entry.self_ns,
            share=tree_share(entry, self._tree.profiled_ns),
        )
        yield from self.below(entry.children, depth=depth + 1, guide=guide_below)

    def _folded(self, nodes: list[TreeNode], *, depth: int, guide: str) -> TreeRow:
        return self.row(
            RowKind.FOLDED,
            f"… {sum(1 for node in nodes for _ in node.walk()):,} more",
            total_ns=sum(node.total_ns for node in nodes),
            depth=depth,
            guide=guide,
            parallel=nodes[0].parallel,
            starts_strand=nodes[0].starts_strand,
        )

    def row(
        self,
        kind: RowKind,
        name: str,
        *,
        total_ns: int,
        depth: int = 0,
        guide: str = "",
        parallel: bool = False,
        starts_strand: bool = False,
    ) -> TreeRow:
        profiled_ns = self._tree.profiled_ns
        return TreeRow(
            kind=kind,
            depth=depth,
            guide=guide,
            name=name,
            parallel=parallel,
            starts_strand=starts_strand,
            calls=None,
            total_ns=total_ns,
            self_ns=None,
            # The wall time of several parallel scopes together was not measured.
            share=None if parallel or not profiled_ns else total_ns / profiled_ns,
        )
