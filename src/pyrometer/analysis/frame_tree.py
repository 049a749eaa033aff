"""The sampled stacks as trees of frames, and how shares are summed over them.

Nothing here recurses: a stack is as deep as the program made it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from pyrometer.analysis.code_origin import CodePlaces, Origin
from pyrometer.record.run import Program
from pyrometer.record.samples import Observation, StackNode, StackSamples

TOP = -1
"""The parent of an outermost frame."""


class FrameKind(Enum):
    """What a frame is, which is also how it is coloured."""

    OWN = Origin.OWN.value
    TORCH = Origin.TORCH.value
    LIBRARY = Origin.LIBRARY.value
    STDLIB = Origin.STDLIB.value
    PROFILER = Origin.PROFILER.value
    NATIVE = "native code"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A function; or what a thread did inside its innermost one, in native code or waiting."""

    name: str
    kind: FrameKind
    module: str
    """Of native code its library."""
    file: str = ""
    first_line: int | None = None


SOME_NATIVE = Frame(name=FrameKind.NATIVE.value, kind=FrameKind.NATIVE, module="")
"""Native code of which no more is known."""
WAITING = Frame(name="waiting", kind=FrameKind.WAITING, module="")
IMPORT = Frame(name="import", kind=FrameKind.STDLIB, module="importlib")
"""All of Python's import system, which has five frames for each import; tracebacks leave them out too."""
IMPORT_FILES = frozenset({"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"})


class Parts(msgspec.Struct, frozen=True, gc=False):
    """What the samples of one place stand for; ``python_ns + native_ns + waiting_ns`` is ``wall_ns``."""

    samples: int = 0
    waiting: int = 0
    native: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    native_ns: int = 0

    @property
    def running(self) -> int:
        """The samples in which the thread ran."""
        return self.samples - self.waiting

    @property
    def waiting_ns(self) -> int:
        """What a thread did not run: it slept, or waited for data, a lock, the GIL or a processor."""
        return self.wall_ns - self.cpu_ns

    @property
    def python_ns(self) -> int:
        """What it ran Python's own code."""
        return self.cpu_ns - self.native_ns

    def __add__(self, other: "Parts") -> "Parts":
        # By place: a record may have 200,000 of them to add.
        return Parts(
            self.samples + other.samples,
            self.waiting + other.waiting,
            self.native + other.native,
            self.wall_ns + other.wall_ns,
            self.cpu_ns + other.cpu_ns,
            self.native_ns + other.native_ns,
        )


NOTHING = Parts()


def parts_of(observation: Observation) -> Parts:
    """An observation's time; what ran is native by the share of the samples that were."""
    running = observation.samples - observation.waiting
    return Parts(
        observation.samples,
        observation.waiting,
        observation.native,
        observation.wall_ns,
        observation.cpu_ns,
        observation.cpu_ns * observation.native // running if running else 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTree:
    """Stacks merged by function: ``parents`` come before their children, at the top is ``TOP``.

    Native code and waiting are frames of their own, below the function that led there.
    """

    frames: tuple[Frame, ...]
    parents: Sequence[int]
    frame_of: Sequence[int]
    """The index in ``frames`` of each node."""
    samples: Sequence[int]
    """Of the node itself, as are both times."""
    cpu_ns: Sequence[int]
    wall_ns: Sequence[int]


def merge_by(parents: Sequence[int], keys: Sequence[Hashable], *, fold: bool = False) -> list[int]:
    """For each node the first one that stands for it: with the same keys all the way up.

    With ``fold`` a node directly below one of the same key is part of it: recursion takes one frame.
    """
    known: dict[tuple[int, Hashable], int] = {}
    stands_for: list[int] = []
    for index, (parent, key) in enumerate(zip(parents, keys, strict=True)):
        above = TOP if parent == TOP else stands_for[parent]
        if fold and above != TOP and keys[above] == key:
            stands_for.append(above)
        else:
            stands_for.append(known.setdefault((above, key), index))
    return stands_for


def with_children(parents: Sequence[int], own: Sequence[int]) -> list[int]:
    """Of each node its own amount and that of all below it."""
    totals = list(own)
    for index in range(len(totals) - 1, -1, -1):
        if parents[index] != TOP:
            totals[parents[index]] += totals[index]
    return totals


def are_outermost(parents: Sequence[int], keys: Sequence[Hashable]) -> list[bool]:
    """Whether no node above has the same key: only those count, or recursion would be counted twice."""
    first, following = [TOP] * len(parents), [TOP] * len(parents)
    tops = TOP
    for index in range(len(parents) - 1, -1, -1):
        parent = parents[index]
        if parent == TOP:
            following[index], tops = tops, index
        else:
            following[index], first[parent] = first[parent], index
    result = [True] * len(parents)
    open_keys: dict[Hashable, int] = {}
    above: list[int] = []
    index = tops
    while index != TOP or above:
        if index == TOP:
            index = above.pop()
            open_keys[keys[index]] -= 1
            index = following[index]
            continue
        count = open_keys.get(keys[index], 0)
        result[index] = not count
        open_keys[keys[index]] = count + 1
        above.append(index)
        index = first[index]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The samples of a run, with what all views of them need.

    Without those in which the profiler's own code was the innermost: they are not the program's.
    """

    samples: StackSamples
    parents: Sequence[int]
    """Of each node of the record."""
    own: Sequence[Parts]
    """Of each node of the record what was met there, over threads and all else."""
    seen: Sequence[Parts]
    """Of each observation."""
    functions: Sequence[Frame]
    """Of the record; those of the import system are one."""
    profiler: Parts
    """What was left out."""


def read_stacks(program: Program, samples: StackSamples) -> Stacks:
    """The samples of a run of this program."""
    functions = _function_frames(program, samples)
    samples, profiler = _without_profiler(samples, functions)
    seen = [parts_of(observation) for observation in samples.observations]
    own = [NOTHING] * len(samples.nodes)
    for observation, parts in zip(samples.observations, seen, strict=True):
        known = own[observation.stack]
        own[observation.stack] = parts if known is NOTHING else known + parts
    return Stacks(
        samples=samples,
        parents=[TOP if node.parent is None else node.parent for node in samples.nodes],
        own=own,
        seen=seen,
        functions=functions,
        profiler=profiler,
    )


def _without_profiler(samples: StackSamples, functions: Sequence[Frame]) -> tuple[StackSamples, Parts]:
    ours = [functions[node.function].kind is FrameKind.PROFILER for node in samples.nodes]
    left_out = [observation for observation in samples.observations if ours[observation.stack]]
    if not left_out:
        return samples, NOTHING
    kept = [observation for observation in samples.observations if not ours[observation.stack]]
    profiler = sum(map(parts_of, left_out), NOTHING)
    nodes, places = _leading_to(samples.nodes, {observation.stack for observation in kept})
    program = msgspec.structs.replace(
        samples,
        samples=samples.samples - profiler.samples,
        nodes=nodes,
        observations=tuple(
            msgspec.structs.replace(observation, stack=places[observation.stack]) for observation in kept
        ),
    )
    return program, profiler


def _leading_to(
    nodes: Sequence[StackNode], innermost: set[int]
) -> tuple[tuple[StackNode, ...], dict[int, int]]:
    """The nodes that lead to those, and where each of them now stands."""
    needed = set(innermost)
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if index in needed and parent is not None:
            needed.add(parent)
    places = {index: place for place, index in enumerate(sorted(needed))}
    kept = tuple(
        node if node.parent is None else msgspec.structs.replace(node, parent=places[node.parent])
        for node in (nodes[index] for index in places)
    )
    return kept, places


def _function_frames(program: Program, samples: StackSamples) -> tuple[Frame, ...]:
    places = CodePlaces(program)
    return tuple(
        IMPORT
        if function.file in IMPORT_FILES
        else Frame(
            name=function.name,
            kind=FrameKind(places.origin(function.file).value),
            module=places.module(function.file),
            file=function.file,
            first_line=function.first_line,
        )
        for function in samples.functions
    )


def native_frame(samples: StackSamples, leaf: int | None) -> Frame:
    """A native function as a frame; without a name where it is not known."""
    if leaf is None:
        return SOME_NATIVE
    function = samples.native_functions[leaf]
    library = function.library.rpartition("/")[2]
    name = function.name if function.name is not None else f"{FrameKind.NATIVE.value} of {library}"
    return Frame(name=name, kind=FrameKind.NATIVE, module=library, file=function.library)


def build_frame_tree(stacks: Stacks) -> FrameTree:
    """The stacks of a run, merged by function."""
    return _Builder(stacks).build()


class _Builder:
    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._samples = stacks.samples
        self._frames: dict[Frame, int] = {}
        self._parents: list[int] = []
        self._frame_of: list[int] = []
        self._figures: list[list[int]] = []
        self._nodes: dict[tuple[int, int], int] = {}
        self._natives: dict[int | None, int] = {}
        self._import = self._frame(IMPORT)
        self._waiting = self._frame(WAITING)

    def build(self) -> FrameTree:
        functions = [self._frame(frame) for frame in self._stacks.functions]
        merged: list[int] = []
        for node, parent in zip(self._samples.nodes, self._stacks.parents, strict=True):
            merged.append(self._node(TOP if parent == TOP else merged[parent], functions[node.function]))
        for observation, parts in zip(self._samples.observations, self._stacks.seen, strict=True):
            self._add(parts, merged[observation.stack], observation.leaf)
        return FrameTree(
            frames=tuple(self._frames),
            parents=self._parents,
            frame_of=self._frame_of,
            samples=[figures[0] for figures in self._figures],
            cpu_ns=[figures[1] for figures in self._figures],
            wall_ns=[figures[2] for figures in self._figures],
        )

    def _add(self, parts: Parts, node: int, leaf: int | None) -> None:
        python = parts.running - parts.native
        self._count(node, python, parts.python_ns, parts.python_ns)
        if parts.native or parts.native_ns:
            native = self._node(node, self._native(leaf))
            self._count(native, parts.native, parts.native_ns, parts.native_ns)
        if parts.waiting or parts.waiting_ns:
            waiting = self._node(node, self._waiting)
            self._count(waiting, parts.waiting, 0, parts.waiting_ns)

    def _native(self, leaf: int | None) -> int:
        if leaf not in self._natives:
            self._natives[leaf] = self._frame(native_frame(self._samples, leaf))
        return self._natives[leaf]

    def _count(self, node: int, samples: int, cpu_ns: int, wall_ns: int) -> None:
        figures = self._figures[node]
        figures[0] += samples
        figures[1] += cpu_ns
        figures[2] += wall_ns

    def _node(self, parent: int, frame: int) -> int:
        if frame == self._import and parent != TOP and self._frame_of[parent] == frame:
            return parent
        index = self._nodes.setdefault((parent, frame), len(self._parents))
        if index == len(self._parents):
            self._parents.append(parent)
            self._frame_of.append(frame)
            self._figures.append([0, 0, 0])
        return index

    def _frame(self, frame: Frame) -> int:
        return self._frames.setdefault(frame, len(self._frames))
