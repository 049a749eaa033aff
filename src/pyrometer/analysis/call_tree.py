"""The call tree of a run: all its strands as one tree, or one strand by itself.

A strand is the call tree of one thread. It stands under the scope that started the thread,
and there it runs beside that scope, not inside its time: such nodes are *parallel*.

Nothing here recurses: a tree is as deep as the program's scopes, threads within threads
included, and that can be far deeper than Python's stack.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyrometer.record.run import Run
from pyrometer.record.values import ScopeNode, Strand
from pyrometer.stats.buckets import Buckets, merge_buckets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where a scope stands: its name and the place it stands under.

    Linked instead of spelled out, because the spelled-out paths of a deep tree would take
    memory with the square of its depth.
    """

    name: str
    outer: "Place | None"

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top of the tree down to this place."""
        names = []
        place: Place | None = self
        while place is not None:
            names.append(place.name)
            place = place.outer
        return tuple(reversed(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """All calls of one scope at one place, over every thread that went there.

    ``self_ns`` plus the ``total_ns`` of the children with ``starts_strand`` False is exactly
    ``total_ns``. ``children`` are ordered by ``total_ns``, largest first, then by name.
    ``calls``, ``min_ns``, ``max_ns`` and ``buckets`` describe finished calls only.
    """

    name: str
    parallel: bool
    """Runs on a thread that a scope above it, or the program outside any scope, has started."""
    starts_strand: bool
    """Hangs here because its thread was started here: its time is not part of its parent's."""
    calls: int
    open_calls: int
    total_ns: int
    """Summed over threads; for parallel nodes this can exceed the time that went by."""
    self_ns: int
    min_ns: int | None
    max_ns: int | None
    suspended_ns: int
    wall_ns: int | None
    """Of parallel nodes, how long at least one thread was inside; None where not measured."""
    allocated_bytes: int | None
    """Bytes of torch's CPU tensors allocated inside; None where not counted."""
    self_allocated_bytes: int | None
    """Those of them outside the children; the same sum holds as for ``self_ns``."""
    allocations: int | None
    buckets: Buckets
    children: "tuple[TreeNode, ...]"
    place: Place = field(repr=False, compare=False)

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top of the tree down to this node."""
        return self.place.path

    def walk(self) -> "Iterator[tuple[int, TreeNode]]":
        """This node and all below it with their depth, each parent before its children."""
        return _walk((self,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTree:
    """The scopes of a run, from the top.

    ``outside_ns`` is the part of ``profiled_ns`` that the main thread spent in no scope at all.
    """

    roots: tuple[TreeNode, ...]
    profiled_ns: int
    outside_ns: int

    def walk(self) -> Iterator[tuple[int, TreeNode]]:
        """Every node with its depth, each parent before its children, in their order."""
        return _walk(self.roots)


def build_call_tree(run: Run) -> CallTree:
    """All strands of a run as one tree, merged where their paths are the same."""
    return merge_strands(run).tree


def tree_of_strands(strands: Sequence[Strand], profiled_ns: int) -> CallTree:
    """Strands that are not the run's own as one tree, by the same rules."""
    return _merge(strands, profiled_ns).tree


def strand_tree(run: Run, index: int) -> CallTree:
    """One strand by itself, as if it were the whole run: nothing in it is parallel.

    No node has a ``wall_ns``, which is that of all threads at its place. ``outside_ns`` is the
    profiled time in which this thread was in none of its scopes.
    """
    merge = _Merge()
    merge.add(run.strands[index], under=None, parallel=False, starts_strand=False)
    return merge.tree(run.profiled_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedStrands:
    """The merged tree, and for each strand the place it hangs at (None at the top)."""

    tree: CallTree
    parents: tuple[Place | None, ...]


def merge_strands(run: Run) -> MergedStrands:
    """The call tree of a run together with where in it each strand hangs."""
    return _merge(run.strands, run.profiled_ns)


def _merge(strands: Sequence[Strand], profiled_ns: int) -> MergedStrands:
    main = _main_strand(strands)
    merge = _Merge()
    parents: list[Place | None] = []
    for index, strand in enumerate(strands):
        under = None
        if strand.parent is not None:
            under = merge.strands[strand.parent.strand][strand.parent.node]
        merge.add(strand, under=under, parallel=index != main, starts_strand=index != main)
        parents.append(None if under is None else under.place)
    return MergedStrands(tree=merge.tree(profiled_ns), parents=tuple(parents))


class _Branch:
    """A node of the tree while strands are being merged into it."""

    __slots__ = (
        "allocated_bytes", "allocations", "buckets", "calls", "children", "further_buckets", "max_ns",
        "min_ns", "open_calls", "parallel", "place", "starts_strand", "suspended_ns", "total_ns", "wall_ns",
    )  # fmt: skip

    def __init__(self, place: Place, *, parallel: bool, starts_strand: bool) -> None:
        self.place = place
        self.parallel = parallel
        self.starts_strand = starts_strand
        self.calls = 0
        self.open_calls = 0
        self.total_ns = 0
        self.min_ns: int | None = None
        self.max_ns: int | None = None
        self.suspended_ns = 0
        self.wall_ns: int | None = None
        self.allocated_bytes: int | None = 0
        self.allocations: int | None = 0
        self.buckets: Buckets | None = None
        # Most places have one thread: no list for each of them.
        self.further_buckets: list[Buckets] | None = None
        self.children: dict[tuple[str, bool], _Branch] = {}

    def add(self, node: ScopeNode) -> None:
        self.calls += node.calls
        self.open_calls += node.open_calls
        self.total_ns += node.total_ns
        self.suspended_ns += node.suspended_ns
        self.min_ns = least(self.min_ns, node.min_ns)
        self.max_ns = greatest(self.max_ns, node.max_ns)
        if self.parallel:
            # Strands at the same place share one wall clock, so each of them carries the whole of it.
            self.wall_ns = greatest(self.wall_ns, node.wall_ns)
        self.allocated_bytes = sum_of(self.allocated_bytes, node.allocated_bytes)
        self.allocations = sum_of(self.allocations, node.allocations)
        if self.buckets is None:
            self.buckets = node.buckets
        elif self.further_buckets is None:
            self.further_buckets = [node.buckets]
        else:
            self.further_buckets.append(node.buckets)

    def freeze(self, children: tuple[TreeNode, ...]) -> TreeNode:
        self_ns, self_bytes = self.total_ns, self.allocated_bytes
        for child in children:
            if not child.starts_strand:
                self_ns -= child.total_ns
                self_bytes = difference(self_bytes, child.allocated_bytes)
        return TreeNode(
            name=self.place.name,
            parallel=self.parallel,
            starts_strand=self.starts_strand,
            calls=self.calls,
            open_calls=self.open_calls,
            total_ns=self.total_ns,
            self_ns=self_ns,
            min_ns=self.min_ns,
            max_ns=self.max_ns,
            suspended_ns=self.suspended_ns,
            wall_ns=self.wall_ns,
            allocated_bytes=self.allocated_bytes,
            self_allocated_bytes=self_bytes,
            allocations=self.allocations,
            buckets=merge_histograms([self.buckets or (), *(self.further_buckets or ())]),
            children=children,
            place=self.place,
        )


class _Merge:
    """Strands on their way into one tree; ``strands`` has each one's branches by node index."""

    def __init__(self) -> None:
        self.strands: list[list[_Branch]] = []
        self._tops: dict[tuple[str, bool], _Branch] = {}
        self._made: list[_Branch] = []

    def add(self, strand: Strand, *, under: _Branch | None, parallel: bool, starts_strand: bool) -> None:
        branches: list[_Branch] = []
        for node in strand.nodes:
            above = under if node.parent is None else branches[node.parent]
            starts_here = starts_strand and node.parent is None
            siblings = self._tops if above is None else above.children
            branch = siblings.get((node.name, starts_here))
            if branch is None:
                place = Place(name=node.name, outer=None if above is None else above.place)
                branch = _Branch(place, parallel=parallel, starts_strand=starts_here)
                siblings[node.name, starts_here] = branch
                self._made.append(branch)
            branch.add(node)
            branches.append(branch)
        self.strands.append(branches)

    def tree(self, profiled_ns: int) -> CallTree:
        frozen: dict[_Branch, TreeNode] = {}
        # A branch is made after the one above it, so backwards each finds its children frozen.
        for branch in reversed(self._made):
            children = [frozen.pop(child) for child in branch.children.values()]
            frozen[branch] = branch.freeze(_ordered(children) if children else ())
        roots = _ordered(frozen.values())
        inside_ns = sum(root.total_ns for root in roots if not root.starts_strand)
        return CallTree(roots=roots, profiled_ns=profiled_ns, outside_ns=max(profiled_ns - inside_ns, 0))


def _main_strand(strands: Sequence[Strand]) -> int | None:
    """The strand of the thread that switched the profiler on; None if that was in no scope.

    Of the strands that no scope started, its nodes alone have no wall time: it runs beside nothing.
    """
    return next((index for index, strand in enumerate(strands) if _may_be_main(strand)), None)


def _may_be_main(strand: Strand) -> bool:
    # A strand without nodes says nothing of its thread, and as the main one would displace it.
    hangs_nowhere = strand.parent is None and strand.nodes != ()
    return hangs_nowhere and all(node.wall_ns is None for node in strand.nodes)


def _ordered(nodes: Iterable[TreeNode]) -> tuple[TreeNode, ...]:
    return tuple(sorted(nodes, key=lambda node: (-node.total_ns, node.name, node.starts_strand)))


def _walk(roots: tuple[TreeNode, ...]) -> Iterator[tuple[int, TreeNode]]:
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting.extend((depth + 1, child) for child in reversed(node.children))


def merge_histograms(histograms: Sequence[Buckets]) -> Buckets:
    """The histogram of all calls; most places have one thread and most names one place, so one as it is."""
    return histograms[0] if len(histograms) == 1 else merge_buckets(*histograms)


def least(one: int | None, other: int | None) -> int | None:
    """The smaller of two measurements, of which either may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def sum_known(counts: Sequence[int | None]) -> int | None:
    """The sum of measurements; None if one is missing, since it would be too little."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def sum_of(one: int | None, other: int | None) -> int | None:
    """The sum of two measurements; None if either is missing."""
    return None if one is None or other is None else one + other


def difference(whole: int | None, part: int | None) -> int | None:
    """What is left of a whole without its part, of which either may be missing."""
    return None if whole is None or part is None else whole - part


def greatest(one: int | None, other: int | None) -> int | None:
    """The larger of two measurements, of which either may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
