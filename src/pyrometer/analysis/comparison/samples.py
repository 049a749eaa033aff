"""The sampled stacks of both sides: shares of functions, and one tree of frames with both shares."""

from collections.abc import Sequence

from pyrometer.analysis.comparison.model import (
    Change,
    Doubt,
    FrameDiff,
    FunctionChange,
    FunctionTable,
    Presence,
    Quantity,
    Verdict,
)
from pyrometer.analysis.frame_tree import TOP, Frame, FrameKind, FrameTree, with_children
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.stats.shares import share_interval

_Key = tuple[str, str]
_FrameKey = tuple[str, str, FrameKind]


def compare_functions(before: Sequence[SampleResults], after: Sequence[SampleResults]) -> FunctionTable:
    """Each function's share of the CPU time; of several runs, of that of all of them together."""
    shares = [_shares(side) for side in (before, after)]
    effective = [sum(results.effective_samples for results in side) for side in (before, after)]
    rows = []
    for key in dict.fromkeys((*shares[0], *shares[1])):
        known = [side.get(key) for side in shares]
        margins = [
            None if share is None else share_interval(share, samples).margin
            for share, samples in zip(known, effective, strict=True)
        ]
        rows.append(
            FunctionChange(
                name=key[0],
                module=key[1],
                presence=_presence(*known),
                change=Change(
                    quantity=Quantity.SHARE,
                    before=known[0],
                    after=known[1],
                    verdict=Verdict.CANNOT_TELL,
                    doubt=Doubt.SAMPLED,
                ),
                before_margin=margins[0],
                after_margin=margins[1],
            )
        )
    return FunctionTable(
        rows=tuple(sorted(rows, key=lambda row: -abs(row.change.grown))),
        samples=(sum(results.samples for results in before), sum(results.samples for results in after)),
    )


def _presence(before: float | None, after: float | None) -> Presence:
    if before is not None and after is not None:
        return Presence.BOTH
    return Presence.NEW if before is None else Presence.VANISHED


def _shares(side: Sequence[SampleResults]) -> dict[_Key, float]:
    """By name and module: lines move when code is edited, and files lie elsewhere."""
    whole_ns = sum(results.overall.parts.cpu_ns for results in side)
    own_ns: dict[_Key, int] = {}
    for results in side:
        for function in results.functions:
            key = (function.name, function.module)
            own_ns[key] = own_ns.get(key, 0) + function.own.cpu_ns
    return {key: ns / whole_ns for key, ns in own_ns.items() if ns} if whole_ns else {}


def merge_frames(before: Sequence[SampleResults], after: Sequence[SampleResults]) -> FrameDiff:
    """The stacks of all runs as one tree; of each frame what it took on both sides."""
    merging = _Merging()
    for results in after:
        merging.add(results.tree, is_after=True)
    for results in before:
        merging.add(results.tree, is_after=False)
    return FrameDiff(
        after=merging.tree(),
        before_cpu_ns=merging.before_cpu_ns,
        samples=(sum(results.samples for results in before), sum(results.samples for results in after)),
        effective_samples=sum(results.effective_samples for results in after),
    )


def frame_shares(diff: FrameDiff) -> list[tuple[float, float]]:
    """Of each frame, with all below it, the share of the CPU time before and after."""
    parents = diff.after.parents
    totals = [with_children(parents, diff.before_cpu_ns), with_children(parents, diff.after.cpu_ns)]
    wholes = [sum(diff.before_cpu_ns), sum(diff.after.cpu_ns)]
    shares = [
        [total / whole if whole else 0.0 for total in side]
        for side, whole in zip(totals, wholes, strict=True)
    ]
    return list(zip(*shares, strict=True))


class _Merging:
    """Trees of frames on their way into one."""

    def __init__(self) -> None:
        self.before_cpu_ns: list[int] = []
        self._frames: dict[Frame, int] = {}
        self._parents: list[int] = []
        self._frame_of: list[int] = []
        self._figures: list[list[int]] = []
        self._nodes: dict[tuple[int, _FrameKey], int] = {}

    def add(self, tree: FrameTree, *, is_after: bool) -> None:
        places: list[int] = []
        for parent, frame in zip(tree.parents, tree.frame_of, strict=True):
            places.append(self._node(TOP if parent == TOP else places[parent], tree.frames[frame]))
        figures = zip(places, tree.samples, tree.cpu_ns, tree.wall_ns, strict=True)
        for node, samples, cpu_ns, wall_ns in figures:
            if not is_after:
                self.before_cpu_ns[node] += cpu_ns
                continue
            for at, figure in enumerate((samples, cpu_ns, wall_ns)):
                self._figures[node][at] += figure

    def tree(self) -> FrameTree:
        samples, cpu_ns, wall_ns = zip(*self._figures, strict=True) if self._figures else ((), (), ())
        return FrameTree(
            frames=tuple(self._frames),
            parents=self._parents,
            frame_of=self._frame_of,
            samples=samples,
            cpu_ns=cpu_ns,
            wall_ns=wall_ns,
        )

    def _node(self, parent: int, frame: Frame) -> int:
        key = (parent, (frame.name, frame.module, frame.kind))
        index = self._nodes.setdefault(key, len(self._parents))
        if index == len(self._parents):
            self._parents.append(parent)
            # The first side's file and line stand for both: code that is edited moves.
            self._frame_of.append(self._frames.setdefault(frame, len(self._frames)))
            self._figures.append([0, 0, 0])
            self.before_cpu_ns.append(0)
        return index
