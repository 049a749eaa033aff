"""What the twin's call tree is made of: nodes, the strands they stand in, frames open on them."""

from collections.abc import Callable, Iterable, Iterator
from types import FrameType

OTHER = "(other)"

# A node as snapshot() gives it: parent index (-1 at the top), name, calls, open calls, total,
# min, max, suspended, wall (-1 where not parallel), ((bucket, calls), ...), then what was allocated:
# bytes and calls of torch's tensors, bytes and calls of the rest of the heap, bytes freed, bytes kept,
# bytes and calls of small Python objects, the most one call held (-1 where not counted, as always by
# the twin; kept: 0).
RawNode = tuple[
    int, str, int, int, int, int, int, int, int, tuple[tuple[int, int], ...],
    int, int, int, int, int, int, int, int, int,
]  # fmt: skip
# A strand: thread id, thread name, (strand, node) of the parent or None, threads folded, nodes.
RawStrand = tuple[int, str, tuple[int, int] | None, int, list[RawNode]]

_UNCOUNTED = (-1, -1, -1, -1, -1, 0, -1, -1, -1)


def bucket_of(duration_ns: int) -> int:
    """The histogram bucket of a duration: 32 to each power of two, exact below 64 ns."""
    if duration_ns < 32:
        return duration_ns
    exponent = duration_ns.bit_length() - 1
    return (exponent - 4) * 32 + ((duration_ns >> (exponent - 5)) & 31)


class Shared:
    """How long at least one thread was inside a parallel scope, whichever thread it was."""

    __slots__ = ("active", "children", "since_ns", "wall_ns")

    def __init__(self) -> None:
        self.active = 0
        self.since_ns = 0
        self.wall_ns = 0
        self.children: dict[str, Shared] = {}

    def child(self, name: str) -> "Shared":
        return self.children.setdefault(name, Shared())

    def enter(self, now_ns: int) -> None:
        if self.active == 0:
            self.since_ns = now_ns
        self.active += 1

    def leave(self, now_ns: int) -> None:
        self.active -= 1
        if self.active == 0:
            self.wall_ns += now_ns - self.since_ns

    def wall_at(self, now_ns: int) -> int:
        return self.wall_ns + (now_ns - self.since_ns if self.active else 0)


class Node:
    """All calls of one scope at one place of one strand."""

    __slots__ = (
        "buckets", "calls", "children", "max_ns", "min_ns", "name", "open_calls", "other",
        "parallel_children", "parent", "references", "shared", "suspended_ns", "total_ns",
    )  # fmt: skip

    def __init__(self, name: str, parent: "Node | None", shared: Shared | None) -> None:
        self.name = name
        self.parent = parent
        self.children: dict[str, Node] = {}
        self.other: Node | None = None
        self.shared = shared
        self.parallel_children: Shared | None = None
        self.references = 0  # positions and strands that stand on this node
        self.calls = 0
        self.open_calls = 0
        self.total_ns = 0
        self.min_ns = -1
        self.max_ns = -1
        self.suspended_ns = 0
        self.buckets: dict[int, int] = {}

    def shared_for_strands(self) -> Shared:
        """Where the threads started in this scope share their wall time."""
        if self.shared is not None:
            return self.shared
        if self.parallel_children is None:
            self.parallel_children = Shared()
        return self.parallel_children

    def record_call(self, duration_ns: int) -> None:
        if self.calls == 0 or duration_ns < self.min_ns:
            self.min_ns = duration_ns
        self.max_ns = max(self.max_ns, duration_ns)
        self.calls += 1
        bucket = bucket_of(duration_ns)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def all_children(self) -> Iterator["Node"]:
        yield from self.children.values()
        if self.other is not None:
            yield self.other

    def absorb(self, twin: "Node") -> int:
        """Add a finished strand's tree to this one; returns how many nodes that freed."""
        freed = 0
        pairs = [(self, twin)]
        while pairs:
            node, same = pairs.pop()
            node.add(same)
            freed += 1
            for name, child in same.children.items():
                if name in node.children:
                    pairs.append((node.children[name], child))
                else:
                    child.parent = node
                    node.children[name] = child
            if same.other is not None and node.other is not None:
                pairs.append((node.other, same.other))
            elif same.other is not None:
                same.other.parent = node
                node.other = same.other
        return freed

    def add(self, same: "Node") -> None:
        """Count another thread's calls of the same scope here."""
        if same.calls:
            self.min_ns = min(self.min_ns, same.min_ns) if self.calls else same.min_ns
            self.max_ns = max(self.max_ns, same.max_ns)
        self.calls += same.calls
        self.open_calls += same.open_calls
        self.total_ns += same.total_ns
        self.suspended_ns += same.suspended_ns
        for bucket, calls in same.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + calls

    def is_referenced(self) -> bool:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if node.references > 0:
                return True
            waiting += node.all_children()
        return False


class Frame:
    """One open call. ``absorbed`` counts scopes opened inside it that found no place."""

    __slots__ = (
        "absorbed", "active_ns", "ghost", "node", "owner", "passed_for", "slice_start_ns", "suspended_at_ns",
    )  # fmt: skip

    def __init__(self, node: Node, owner: FrameType | None, now_ns: int) -> None:
        self.node = node
        self.owner = owner
        self.slice_start_ns = now_ns
        self.active_ns = 0
        self.suspended_at_ns = 0
        self.absorbed = 0
        self.ghost = False  # found no place when it was resumed: open, but its time is not counted
        # The delegate that throw() went straight to: resumed only for it, and suspended with it.
        self.passed_for: FrameType | None = None

    def begin_slice(self, now_ns: int) -> None:
        self.slice_start_ns = now_ns
        if self.node.shared is not None and not self.ghost:
            self.node.shared.enter(now_ns)

    def end_slice(self, now_ns: int) -> None:
        if self.ghost:
            return
        slice_ns = max(now_ns - self.slice_start_ns, 0)
        self.active_ns += slice_ns
        self.node.total_ns += slice_ns
        if self.node.shared is not None:
            self.node.shared.leave(now_ns)


LoggedCall = tuple[str, int, int, int, int]
"""Name, thread, depth, start and end of one call, or of one stretch between two suspensions."""


class CallLog:
    """Single calls, as they end; ``lost`` counts those that found no room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.calls: list[LoggedCall] = []
        self.lost = 0

    def add(self, strand: "Strand", depth: int, now_ns: int) -> None:
        """Keep the frame at that depth, from where its slice began until now."""
        frame = strand.frames[depth]
        if frame.ghost:
            return
        if len(self.calls) >= self._limit:
            self.lost += 1
            return
        start_ns = frame.slice_start_ns
        self.calls.append((frame.node.name, strand.thread_id, depth, start_ns, max(now_ns, start_ns)))


class Strand:
    """One thread's call tree and the frames open on it; ``frames[0]`` is the ground."""

    __slots__ = (
        "ended_ns", "frames", "log", "outer", "parent", "root", "thread_id", "thread_name", "threads",
    )  # fmt: skip

    def __init__(
        self, thread_id: int, thread_name: str, parent: "Position | None", ground: Shared | None
    ) -> None:
        self.thread_id = thread_id
        self.thread_name = thread_name
        self.parent = parent
        self.threads = 1
        self.outer: Strand | None = None
        shared = ground if parent is None else parent.node.shared_for_strands()
        self.root = Node("", None, shared)
        self.frames = [Frame(self.root, None, 0)]
        self.log: CallLog | None = None
        self.ended_ns: int | None = None


class Position:
    """A place in the call tree that a new thread can hang under."""

    __slots__ = ("__weakref__", "node", "strand")

    def __init__(self, strand: Strand, node: Node) -> None:
        self.strand = strand
        self.node = node
        node.references += 1

    def __del__(self) -> None:
        self.node.references -= 1


class ThreadEnd:
    """Lives in a thread's local storage, and notes the time when the thread ends."""

    def __init__(self, strands: list[Strand], clock: Callable[[], int]) -> None:
        self.strands = strands
        self.clock = clock

    def __del__(self) -> None:
        for strand in self.strands:
            if strand.ended_ns is None:
                strand.ended_ns = self.clock()
                while len(strand.frames) > 1:
                    close_top(strand, strand.ended_ns, completed=False)
                strand.frames[0].absorbed = 0


class Survey:
    """Reads all strands at one instant, what is open then included."""

    def __init__(self, strands: list[Strand], suspended: Iterable[list[Frame]], now_ns: int) -> None:
        self._now_ns = now_ns
        self._places: dict[Node, tuple[int, int]] = {}
        self._open: dict[Node, list[int]] = {}  # calls, total and suspended time of what is open now
        for strand in strands:
            end_ns = now_ns if strand.ended_ns is None else strand.ended_ns
            for frame in strand.frames[1:]:
                slice_ns = 0 if frame.ghost else max(end_ns - frame.slice_start_ns, 0)
                self._note_open(frame.node, total_ns=slice_ns)
        for frames in suspended:
            for frame in frames:
                self._note_open(frame.node, suspended_ns=now_ns - frame.suspended_at_ns)
        self.strands: list[RawStrand] = []
        for strand in strands:
            nodes = self._flatten(strand)
            if nodes:
                parent = None if strand.parent is None else self._places.get(strand.parent.node)
                self.strands.append((strand.thread_id, strand.thread_name, parent, strand.threads, nodes))

    def _note_open(self, node: Node, *, total_ns: int = 0, suspended_ns: int = 0) -> None:
        figures = self._open.setdefault(node, [0, 0, 0])
        figures[0] += 1
        figures[1] += total_ns
        figures[2] += suspended_ns

    def _flatten(self, strand: Strand) -> list[RawNode]:
        """The strand's nodes in pre-order. Without recursion: a tree may be deeper than the stack."""
        nodes: list[RawNode] = []
        waiting = [(-1, child) for child in reversed(list(strand.root.all_children()))]
        while waiting:
            parent, node = waiting.pop()
            index = len(nodes)
            self._places[node] = (len(self.strands), index)
            nodes.append(self._raw(node, parent))
            waiting += [(index, child) for child in reversed(list(node.all_children()))]
        return nodes

    def _raw(self, node: Node, parent: int) -> RawNode:
        open_calls, total_ns, suspended_ns = self._open.get(node, (0, 0, 0))
        return (
            parent,
            node.name,
            node.calls,
            node.open_calls + open_calls,
            node.total_ns + total_ns,
            node.min_ns,
            node.max_ns,
            node.suspended_ns + suspended_ns,
            -1 if node.shared is None else node.shared.wall_at(self._now_ns),
            tuple(sorted(node.buckets.items())),
            *_UNCOUNTED,
        )


def close_top(strand: Strand, now_ns: int, *, completed: bool) -> None:
    """End the innermost open call: counted, or as one that was left open."""
    if strand.log is not None:
        strand.log.add(strand, len(strand.frames) - 1, now_ns)
    frame = strand.frames.pop()
    frame.end_slice(now_ns)
    if completed:
        frame.node.record_call(frame.active_ns)
    else:
        frame.node.open_calls += 1


def is_other(node: Node) -> bool:
    return node.parent is not None and node.parent.other is node


def same_place(one: Position | None, other: Position | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.node is other.node


def foldable(target: Strand, strand: Strand) -> bool:
    """Both threads have ended, and both worked for the same scope."""
    return (
        target.ended_ns is not None
        and strand.ended_ns is not None
        and same_place(target.parent, strand.parent)
    )
