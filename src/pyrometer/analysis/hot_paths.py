"""The call stacks that take most, and what else a flame graph shows, in values."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrometer.analysis.frame_tree import (
    NOTHING,
    SOME_NATIVE,
    TOP,
    Frame,
    FrameKind,
    FrameTree,
    Parts,
    Stacks,
    merge_by,
    native_frame,
    with_children,
)
from pyrometer.analysis.sampled_functions import Measure, Share
from pyrometer.record.samples import StackSamples

MOST_PATHS = 20
MOST_WIDE_FRAMES = 5
_HANDED_ON = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFrame:
    """A frame of a stack."""

    frame: Frame
    line: int | None
    times: int
    """How many frames deep it called itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotPath:
    """A stack by functions, from the outermost to the one that ran.

    Stacks that differ only in lines, or in how deep a function called itself, are one; the lines and
    the depth are those of the most frequent.
    """

    frames: tuple[PathFrame, ...]
    samples: int
    """Those in which it ran."""
    cpu_ns: int
    native_ns: int
    """Of ``cpu_ns``, what was in native code that the innermost function called."""
    native: Frame | None
    """The most frequent one of the native functions that are known by name; None without any."""
    waiting_ns: int
    """Besides ``cpu_ns``: what a thread did not run there."""
    places: tuple[tuple[tuple[int, int] | None, int], ...]
    """Where in torch's calls it ran (strand and node in ``Run.torch.calls``, None outside) and for how
    much of ``cpu_ns``, most first."""
    share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HotPaths:
    """The stacks with most CPU time, and what is left for all others."""

    paths: tuple[HotPath, ...]
    others: int
    others_cpu_ns: int
    others_share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WideFrame:
    """A frame of the flame graph, at one place, that does not merely hand on to one other."""

    frame: Frame
    depth: int
    """1 at the top."""
    cpu_ns: int
    share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeShare:
    """Native code, over all functions that led there; without a name where that is not known."""

    frame: Frame
    samples: int
    cpu_ns: int
    share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How deep the stacks are, in Python frames."""

    deepest: int
    deepest_frame: Frame
    """The innermost of the deepest stack."""
    median: int
    """Half of the samples were at most so deep."""


def find_hot_paths(stacks: Stacks, measure: Measure, *, most: int = MOST_PATHS) -> HotPaths:
    """The ``most`` stacks with most CPU time of their own."""
    samples, functions, parts = stacks.samples, stacks.functions, stacks.own
    # Equal frames are one: a function that was made twice, and all of the import system.
    numbers = {frame: number for number, frame in enumerate(functions)}
    keys = [numbers[frame] for frame in functions]
    heads = merge_by(stacks.parents, [keys[node.function] for node in samples.nodes], fold=True)
    summed: dict[int, Parts] = {}
    for head, own in zip(heads, parts, strict=True):
        if own.cpu_ns:
            summed[head] = summed.get(head, NOTHING) + own
    chosen = heapq.nsmallest(most, summed, key=lambda head: (-summed[head].cpu_ns, head))
    shown = _most_frequent(heads, parts, set(chosen))
    natives = _natives(samples, heads, set(chosen))
    places = _places(stacks, heads, set(chosen))
    rest_ns = sum(own.cpu_ns for own in summed.values()) - sum(summed[head].cpu_ns for head in chosen)
    return HotPaths(
        paths=tuple(
            HotPath(
                frames=_frames(samples, functions, shown[head]),
                samples=summed[head].running,
                cpu_ns=summed[head].cpu_ns,
                native_ns=summed[head].native_ns,
                native=natives.get(head),
                waiting_ns=summed[head].waiting_ns,
                places=places[head],
                share=measure.share(summed[head].cpu_ns),
            )
            for head in chosen
        ),
        others=len(summed) - len(chosen),
        others_cpu_ns=rest_ns,
        others_share=measure.share(rest_ns),
    )


def find_wide_frames(tree: FrameTree, measure: Measure) -> tuple[WideFrame, ...]:
    """The widest frames, widest first; one that hands on 95 % to one callee says no more than that one."""
    total_ns = with_children(tree.parents, tree.cpu_ns)
    widest_child_ns = [0] * len(total_ns)
    depths: list[int] = []
    for index, parent in enumerate(tree.parents):
        depths.append(1 if parent == TOP else depths[parent] + 1)
        if parent != TOP:
            widest_child_ns[parent] = max(widest_child_ns[parent], total_ns[index])
    wide = (
        index
        for index, node_ns in enumerate(total_ns)
        if node_ns
        and widest_child_ns[index] < _HANDED_ON * node_ns
        # The functions are the frames to name; what is native in them is in their share.
        and tree.frames[tree.frame_of[index]].kind is not FrameKind.NATIVE
    )
    return tuple(
        WideFrame(
            frame=tree.frames[tree.frame_of[index]],
            depth=depths[index],
            cpu_ns=total_ns[index],
            share=measure.share(total_ns[index]),
        )
        for index in heapq.nsmallest(MOST_WIDE_FRAMES, wide, key=lambda index: (-total_ns[index], index))
    )


def find_natives(tree: FrameTree, measure: Measure) -> tuple[NativeShare, ...]:
    """Native code by function, most CPU time first; nothing where no function is known."""
    samples: dict[int, int] = {}
    cpu_ns: dict[int, int] = {}
    for node, frame in enumerate(tree.frame_of):
        if tree.frames[frame].kind is FrameKind.NATIVE:
            samples[frame] = samples.get(frame, 0) + tree.samples[node]
            cpu_ns[frame] = cpu_ns.get(frame, 0) + tree.cpu_ns[node]
    if all(tree.frames[frame] == SOME_NATIVE for frame in cpu_ns):
        return ()
    return tuple(
        NativeShare(
            frame=tree.frames[frame],
            samples=samples[frame],
            cpu_ns=cpu_ns[frame],
            share=measure.share(cpu_ns[frame]),
        )
        for frame in sorted(cpu_ns, key=lambda frame: (-cpu_ns[frame], frame))
    )


def find_depths(tree: FrameTree) -> Depths | None:
    """How deep the stacks were; None when there are none."""
    depths: list[int] = []
    counted: dict[int, int] = {}
    deepest = TOP
    for index, parent in enumerate(tree.parents):
        is_function = tree.frames[tree.frame_of[index]].kind not in (FrameKind.NATIVE, FrameKind.WAITING)
        depths.append((0 if parent == TOP else depths[parent]) + is_function)
        if tree.samples[index]:
            counted[depths[index]] = counted.get(depths[index], 0) + tree.samples[index]
        if is_function and (deepest == TOP or depths[index] > depths[deepest]):
            deepest = index
    if deepest == TOP or not counted:
        return None
    return Depths(
        deepest=depths[deepest],
        deepest_frame=tree.frames[tree.frame_of[deepest]],
        median=_median(counted),
    )


def _median(counted: dict[int, int]) -> int:
    half, seen = sum(counted.values()) / 2, 0
    for depth in sorted(counted):
        seen += counted[depth]
        if seen >= half:
            return depth
    return max(counted)


def _most_frequent(heads: Sequence[int], parts: Sequence[Parts], chosen: set[int]) -> dict[int, int]:
    """For each chosen head the node of it with the most CPU time: the stack to show, line by line."""
    best: dict[int, int] = {}
    for index, head in enumerate(heads):
        if head in chosen and (head not in best or parts[index].cpu_ns > parts[best[head]].cpu_ns):
            best[head] = index
    return best


def _natives(samples: StackSamples, heads: Sequence[int], chosen: set[int]) -> dict[int, Frame]:
    """For each chosen head that ran native code known by name, the most frequent function."""
    by_leaf: dict[tuple[int, int | None], int] = {}
    for seen in samples.observations:
        if heads[seen.stack] in chosen and seen.native and _has_name(samples, seen.leaf):
            key = heads[seen.stack], seen.leaf
            by_leaf[key] = by_leaf.get(key, 0) + seen.native
    ordered = sorted(by_leaf, key=lambda key: by_leaf[key])
    return {head: native_frame(samples, leaf) for head, leaf in ordered}


def _places(
    stacks: Stacks, heads: Sequence[int], chosen: set[int]
) -> dict[int, tuple[tuple[tuple[int, int] | None, int], ...]]:
    """For each chosen head the places in torch's calls it was met at."""
    found: dict[int, dict[tuple[int, int] | None, int]] = {head: {} for head in chosen}
    for seen in stacks.samples.observations:
        met = found.get(heads[seen.stack])
        if met is not None:
            met[seen.call] = met.get(seen.call, 0) + seen.cpu_ns
    return {
        head: tuple(sorted(met.items(), key=lambda entry: (-entry[1], entry[0] or (-1, -1))))
        for head, met in found.items()
    }


def _has_name(samples: StackSamples, leaf: int | None) -> bool:
    return leaf is not None and samples.native_functions[leaf].name is not None


def _frames(samples: StackSamples, functions: Sequence[Frame], node: int) -> tuple[PathFrame, ...]:
    return tuple(reversed(list(_frames_upwards(samples, functions, node))))


def _frames_upwards(samples: StackSamples, functions: Sequence[Frame], node: int) -> Iterator[PathFrame]:
    index: int | None = node
    while index is not None:
        innermost = samples.nodes[index]
        frame, parent, times = functions[innermost.function], innermost.parent, 1
        while parent is not None and functions[samples.nodes[parent].function] == frame:
            parent, times = samples.nodes[parent].parent, times + 1
        yield PathFrame(frame=frame, line=innermost.line, times=times)
        index = parent
