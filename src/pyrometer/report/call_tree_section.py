"""The sampled call tree: the frames with most CPU time where they were called, the rest folded.

As printed, a frame's own share and the totals of the rows just below it make its total, and the rows at the
top make 100.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyrometer.analysis.frame_tree import TOP, FrameKind, FrameTree, with_children
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.report.adding_up import written_to_sum
from pyrometer.report.blocks import Column, Emphasis, Row, Section, Table, notes
from pyrometer.report.sample_wording import frame_name, place
from pyrometer.report.scope_sections import as_drawn
from pyrometer.report.tree_guides import with_guides
from pyrometer.units import format_duration

CALL_TREE_TITLE = "Call tree, by CPU time"

_LEAST_SHARE = 0.005
_DEEPEST = 12
_DECIMALS = 1
_COLUMNS = (
    Column(heading="total"),
    Column(heading="self"),
    Column(heading="file:line", left=True, widest=30),
)


@dataclass(slots=True)
class _Branch:
    """A row: a frame that is shown, or all those of one place that are not."""

    name: str
    where: str
    own_ns: int
    folded: bool
    children: "list[_Branch]" = field(default_factory=list)
    own_tenths: int = 0
    total_tenths: int = 0


def build_call_tree_section(samples: SampleResults, *, most: int) -> Section | None:
    """The ``most`` frames with most CPU time and all above them; None where nothing ran."""
    cpu_ns = samples.overall.parts.cpu_ns
    if not cpu_ns:
        return None
    roots = _branches(samples.tree, cpu_ns, most)
    _write_shares(roots, cpu_ns)
    rows = tuple(row for root in roots for row in _rows(root, guide="", guide_below=""))
    note = f"% of {format_duration(cpu_ns)} CPU time; total is self and what is called, row by row."
    return Section(
        title=CALL_TREE_TITLE,
        blocks=(as_drawn(Table(names="function", columns=_COLUMNS, rows=rows)), *notes([note])),
    )


def _branches(tree: FrameTree, cpu_ns: int, most: int) -> list[_Branch]:
    calls = _Calls(tree)
    chosen = calls.largest(most, least_ns=_LEAST_SHARE * cpu_ns)
    top: list[_Branch] = []
    waiting = [(TOP, top)]
    while waiting:
        parent, entries = waiting.pop()
        siblings = calls.below.get(parent, [])
        folded = [index for index in siblings if index not in chosen]
        shown = [index for index in siblings if index in chosen]
        if len(folded) == 1 and not calls.below.get(folded[0]):
            # A fold of one leaf would take the line that the leaf itself takes.
            folded, shown = [], siblings
        for index in shown:
            chain = calls.chain(index)
            branch = _Branch(calls.name(chain), calls.place(chain[-1]), calls.own_ns[chain[-1]], folded=False)
            entries.append(branch)
            waiting.append((chain[-1], branch.children))
        if folded:
            rest_ns = sum(calls.total_ns[index] for index in folded)
            entries.append(_Branch(f"… {len(folded):,} more", "", rest_ns, folded=True))
    return top


class _Calls:
    """The tree with what its rows need. What a function calls in native code is its own."""

    def __init__(self, tree: FrameTree) -> None:
        self._tree = tree
        self.total_ns = with_children(tree.parents, tree.cpu_ns)
        self.own_ns = list(tree.cpu_ns)
        self.below: dict[int, list[int]] = {}
        for index, parent in enumerate(tree.parents):
            if parent != TOP and tree.frames[tree.frame_of[index]].kind is FrameKind.NATIVE:
                self.own_ns[parent] += self.total_ns[index]
            elif self.total_ns[index]:
                self.below.setdefault(parent, []).append(index)
        for siblings in self.below.values():
            siblings.sort(key=lambda index: (-self.total_ns[index], index))

    def chain(self, index: int) -> list[int]:
        """The node and those below it that it merely hands on to, one each: they share a row."""
        chain = [index]
        while not self.own_ns[chain[-1]] and len(self.below.get(chain[-1], ())) == 1:
            chain.append(self.below[chain[-1]][0])
        return chain

    def name(self, chain: Sequence[int]) -> str:
        """The functions of a chain, those between the first and the last counted."""
        frames = [self._tree.frames[self._tree.frame_of[index]] for index in chain]
        if len(chain) == 1:
            return frame_name(frames[0])
        between = f"… {len(chain) - 2} … → " if len(chain) > 2 else ""
        return f"{frame_name(frames[0])} → {between}{frame_name(frames[-1])}"

    def place(self, index: int) -> str:
        """Where the function is."""
        frame = self._tree.frames[self._tree.frame_of[index]]
        return place(frame.file, frame.first_line) if frame.file else ""

    def largest(self, most: int, *, least_ns: float) -> set[int]:
        """The nodes whose rows are shown: those with most time first, a parent before its children."""
        order = count()
        waiting = [(-self.total_ns[index], next(order), 1, index) for index in self.below.get(TOP, ())]
        heapq.heapify(waiting)
        chosen: set[int] = set()
        while waiting and len(chosen) < most:
            _, _, depth, index = heapq.heappop(waiting)
            if self.total_ns[index] < least_ns:
                break
            chosen.add(index)
            if depth < _DEEPEST:
                for child in self.below.get(self.chain(index)[-1], ()):
                    heapq.heappush(waiting, (-self.total_ns[child], next(order), depth + 1, child))
        return chosen


def _write_shares(roots: Sequence[_Branch], cpu_ns: int) -> None:
    """Shares that add up as printed: what is rows' own is rounded to make 100, totals are sums of it."""
    ordered = list(_walk(roots))
    written = written_to_sum([100 * branch.own_ns / cpu_ns for branch in ordered], 100, decimals=_DECIMALS)
    for branch, text in zip(ordered, written, strict=False):
        branch.own_tenths = round(float(text) * 10)
    for branch in reversed(ordered):
        branch.total_tenths = branch.own_tenths + sum(child.total_tenths for child in branch.children)


def _walk(roots: Sequence[_Branch]) -> Iterator[_Branch]:
    waiting = list(reversed(roots))
    while waiting:
        branch = waiting.pop()
        yield branch
        waiting += reversed(branch.children)


def _rows(branch: _Branch, *, guide: str, guide_below: str) -> Iterator[Row]:
    yield Row(
        name=branch.name,
        guide=guide,
        cells=(
            _tenths(branch.total_tenths),
            "" if branch.folded else _tenths(branch.own_tenths),
            branch.where,
        ),
        emphasis=Emphasis.FAINT if branch.folded else Emphasis.NONE,
    )
    for child, own, below in with_guides(branch.children, guide_below):
        yield from _rows(child, guide=own, guide_below=below)


def _tenths(tenths: int) -> str:
    return f"{tenths / 10:.1f}"
