"""The sampled stacks for the flame graph: frames, their tree, and who was met where.

The page draws all of it, or below threads, phases or modules; for that each place in the tree has its
samples by thread, phase and module, which add up to the place's own.
"""

from collections.abc import Hashable, Sequence

from pyrometer.analysis.frame_tree import (
    IMPORT,
    TOP,
    WAITING,
    Frame,
    FrameKind,
    FrameTree,
    Parts,
    Stacks,
    native_frame,
    read_stacks,
)
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import OUTSIDE_MODULES, OUTSIDE_PHASES, find_phases
from pyrometer.record.run import Run
from pyrometer.record.samples import Observation
from pyrometer.report.page_views.blocks import Block, missing, name_of, plain, view
from pyrometer.report.page_views.samples import NOT_SAMPLED, SAMPLE_COMMAND
from pyrometer.report.safe_text import shorten_middle
from pyrometer.report.sample_wording import NO_SAMPLES, frame_name
from pyrometer.units import format_count, format_duration

KINDS = tuple(FrameKind)
_LONGEST_NAME = 300


def build_flame_view(observed: Observed) -> Block:
    """The flame graph, or why there is none."""
    results, run = observed.samples, observed.run
    title = "Flame graph"
    if results is None or run.samples is None:
        return view("flamegraph", title, [missing(NOT_SAMPLED, command=SAMPLE_COMMAND)])
    if not results.overall.parts.samples:
        return view("flamegraph", title, [missing(NO_SAMPLES, command=SAMPLE_COMMAND)])
    tree = results.tree
    meetings = _Meetings(run, read_stacks(run.program, run.samples), tree)
    parts = results.overall.parts
    samples = format_count(results.samples, "sample")
    block: Block = {
        "type": "flame",
        "frames": [_frame_row(frame) for frame in tree.frames],
        "kinds": [kind.value for kind in KINDS],
        "parents": list(tree.parents),
        "frameOf": list(tree.frame_of),
        "met": meetings.flat(),
        "groups": meetings.groups(),
        "measures": {
            "cpu": f"{format_duration(parts.cpu_ns)} CPU time of all threads, {samples}",
            "wall": f"{format_duration(parts.wall_ns)} of all threads, "
            f"{format_duration(parts.waiting_ns)} of it waiting, {samples}",
        },
    }
    return view("flamegraph", title, [block])


def _frame_row(frame: Frame) -> list[str | int]:
    place = frame.module
    if frame.first_line is not None:
        place = f"{frame.module}, {frame.file.rpartition('/')[2]}:{frame.first_line}"
    return [
        shorten_middle(name_of(frame_name(frame)), _LONGEST_NAME),
        shorten_middle(plain(place), _LONGEST_NAME),
        KINDS.index(frame.kind),
    ]


class _Names:
    """Names in the order they are met, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.names: list[str] = []

    def number(self, key: Hashable, name: str) -> int:
        at = self._numbers.setdefault(key, len(self.names))
        if at == len(self.names):
            self.names.append(name_of(name))
        return at


class _Meetings:
    """What was met at each node of the tree, by thread, phase and module."""

    def __init__(self, run: Run, stacks: Stacks, tree: FrameTree) -> None:
        self._run = run
        self._samples = stacks.samples
        self._frames = {frame: index for index, frame in enumerate(tree.frames)}
        self._node_of = {
            (parent, frame): node
            for node, (parent, frame) in enumerate(zip(tree.parents, tree.frame_of, strict=True))
        }
        self._tree = tree
        self._phases = find_phases(run, stacks.samples)
        self._names = {"thread": _Names(), "phase": _Names(), "module": _Names()}
        self._met: dict[tuple[int, int, int, int], list[int]] = {}
        places = self._places(stacks)
        for seen, parts in zip(self._samples.observations, stacks.seen, strict=True):
            self._add(places[seen.stack], seen, parts)

    def flat(self) -> list[int]:
        """Seven numbers each: node, thread, phase, module, samples, CPU time, wall time."""
        return [number for key, figures in self._met.items() for number in (*key, *figures)]

    def groups(self) -> dict[str, list[str]]:
        """The names that the numbers stand for; of phases and modules only where there are some."""
        found = {kind: names.names for kind, names in self._names.items()}
        return {
            kind: names
            for kind, names in found.items()
            if kind == "thread" or names not in ([OUTSIDE_PHASES], [OUTSIDE_MODULES])
        }

    def _places(self, stacks: Stacks) -> list[int]:
        """Where each node of the record stands in the tree."""
        functions = [self._frames[frame] for frame in stacks.functions]
        imports = self._frames[IMPORT]
        places: list[int] = []
        for node, parent in zip(self._samples.nodes, stacks.parents, strict=True):
            above, frame = TOP if parent == TOP else places[parent], functions[node.function]
            # All of the import system is one frame, as in the tree.
            inside = frame == imports and above != TOP and self._tree.frame_of[above] == imports
            places.append(above if inside else self._node_of[above, frame])
        return places

    def _add(self, node: int, seen: Observation, parts: Parts) -> None:
        who = self._who(seen)
        self._count(node, who, parts.running - parts.native, parts.python_ns, parts.python_ns)
        if parts.native or parts.native_ns:
            frame = self._frames[native_frame(self._samples, seen.leaf)]
            self._count(self._node_of[node, frame], who, parts.native, parts.native_ns, parts.native_ns)
        if parts.waiting or parts.waiting_ns:
            waiting = self._node_of[node, self._frames[WAITING]]
            self._count(waiting, who, parts.waiting, 0, parts.waiting_ns)

    def _who(self, seen: Observation) -> tuple[int, int, int]:
        phase = OUTSIDE_PHASES if seen.call is None else self._phases[seen.call]
        return (
            self._names["thread"].number(seen.thread, self._samples.threads[seen.thread]),
            self._names["phase"].number(phase, phase),
            self._names["module"].number(*[self._module(seen)] * 2),
        )

    def _module(self, seen: Observation) -> str:
        calls = () if self._run.torch is None else self._run.torch.calls
        if seen.call is None:
            return OUTSIDE_MODULES
        node = calls[seen.call[0]].nodes[seen.call[1]]
        return OUTSIDE_MODULES if node.parent is None else node.name

    def _count(self, node: int, who: Sequence[int], samples: int, cpu_ns: int, wall_ns: int) -> None:
        if not samples and not wall_ns:
            return
        thread, phase, module = who
        figures = self._met.setdefault((node, thread, phase, module), [0, 0, 0])
        figures[0] += samples
        figures[1] += cpu_ns
        figures[2] += wall_ns
