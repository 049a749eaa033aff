"""Makes a program wait at the ends of steps for its turn, and tells what each turn took.

Two programs that take turns of a few milliseconds meet the same neighbours, the same heat and the
same clock: what differs between them then is theirs.
"""

import gc
import os
import resource
import sys
import sysconfig
import threading
import time
from collections.abc import Callable

import msgspec

from pyrometer._native import Recorder
from pyrometer.capture import allocations, recording
from pyrometer.capture.losses import failures
from pyrometer.capture.memory import peak_resident_bytes
from pyrometer.capture.own_work import OwnWork
from pyrometer.capture.turn_instructions import TurnInstructions
from pyrometer.record.format import encode_value
from pyrometer.record.turns import Farewell, Order, Turn, TurnNode, Word

_Path = tuple[str, ...]
_Tree = dict[_Path, tuple[int, int]]
"""Calls and self time so far, by path."""

_MAX_TOLD_LOSSES = 64


class Pacer:
    """Waits for orders at the ends of steps, on the thread that makes the first one.

    With ``whole`` it never waits: all of the program is one turn, and a step.

    While it waits, and while it counts, the time is in no scope. The collector of garbage does not
    run in a turn, but between two: when it would, is chance.
    """

    def __init__(
        self,
        fd: int,
        *,
        whole: bool = False,
        counts_live_bytes: bool = False,
        instructions: TurnInstructions | None = None,
    ) -> None:
        self._fd = fd
        self._whole = whole
        self._counts_live_bytes = counts_live_bytes
        self._instructions = instructions
        self._buffer = b""
        self._process_id = os.getpid()
        self._thread_id: int | None = None
        self._order = Order(steps=1)
        self._steps = 0
        self._samples: int | None = 0
        self._leading = False
        self._began_ns = time.perf_counter_ns()
        self._preemptions = _preemptions()
        self._tree: _Tree = {}
        self._collects = not counts_live_bytes and not whole
        self._has_rested = False
        self.note: str | None = None
        """A word to whoever measures, with the next turn."""
        self.prefetched_batches = 0
        self.has_gpu = False
        self.before_reading_the_clock: Callable[[], None] | None = None
        """Waits for what a GPU has queued."""
        if whole and instructions is not None:
            instructions.begin()

    @property
    def steps_left(self) -> int:
        """After how many more steps it wants to be told."""
        if self._whole:
            return sys.maxsize
        return max((self._order.lead if self._leading else self._order.steps) - self._steps, 0)

    def steps_ended(self, count: int = 1, samples: int | None = None) -> None:
        """So many steps have ended, of ``samples`` all together; waits here when the turn is over.

        Raises ``SystemExit`` when the program is to end.
        """
        if self._whole or os.getpid() != self._process_id:
            return  # a forked child has no turns
        if self._thread_id is None:
            self._thread_id = threading.get_ident()
        if self._thread_id != threading.get_ident():
            return
        self._steps += count
        self._samples = None if samples is None or self._samples is None else self._samples + samples
        if self.steps_left == 0:
            self._reach(self._now_ns())

    def _now_ns(self) -> int:
        if self.before_reading_the_clock is not None:
            self.before_reading_the_clock()
        return time.perf_counter_ns()

    def _reach(self, now_ns: int) -> None:
        preemptions = _preemptions() - self._preemptions
        counted = None if self._instructions is None or self._leading else self._instructions.end()
        with OwnWork(*self._recorders()):
            if self._leading:
                self._leading = False
            else:
                self._tell(now_ns, counted, preemptions)
                self._rest()
                self._order = self._next_order()
                self._leading = self._order.lead > 0
            if self._order.ends:
                raise SystemExit(0)
            self._steps, self._samples = 0, 0
        # Apart: before the wait above is taken off the scopes that are open, it would be in the tree.
        with OwnWork(*self._recorders()):
            self._tree = _tree(self._recorders())
        self._preemptions = _preemptions()
        self._began_ns = self._now_ns()
        if self._instructions is not None and not self._leading:
            self._instructions.begin()

    def _tell(self, now_ns: int, instructions: int | None, preemptions: int) -> None:
        turn = Turn(
            steps=self._steps,
            duration_ns=now_ns - self._began_ns,
            samples=self._samples,
            preemptions=preemptions,
            nodes=_changes(self._tree, _tree(self._recorders())),
            instructions=instructions,
            peak_bytes=peak_resident_bytes(),
            peak_live_bytes=allocations.peak_live_bytes() if self._counts_live_bytes else None,
            helpers=_helpers(),
            prefetched_batches=self.prefetched_batches,
            has_gpu=self.has_gpu,
            note=self.note,
        )
        self._send(Word(turn=turn))

    def _rest(self) -> None:
        """Collect garbage now, and not in a turn; what there is after the first one stays, most likely."""
        if not self._collects or not (gc.isenabled() or self._has_rested):
            return
        gc.disable()
        gc.collect()
        if not self._has_rested:
            self._has_rested = True
            gc.freeze()

    def finish(self) -> None:
        """The program is at its end: say what is left to be said."""
        if os.getpid() != self._process_id:
            return
        if self._whole:
            now_ns = self._now_ns()
            self._steps, self._samples = 1, None
            counted = None if self._instructions is None else self._instructions.end()
            self._tell(now_ns, counted, _preemptions() - self._preemptions)
        losses = [f"{collector}: {reason}" for collector, reason in failures]
        self._send(Word(farewell=Farewell(imported=_imported(), losses=tuple(losses[:_MAX_TOLD_LOSSES]))))

    def _recorders(self) -> tuple[Recorder, ...]:
        watch = recording.torch_watch()
        return (recording.recorder,) if watch is None else (recording.recorder, watch.calls)

    # The line to whoever measures.

    def _send(self, word: Word) -> None:
        data = encode_value(word) + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            raise SystemExit(1) from None  # nobody measures any more

    def _next_order(self) -> Order:
        while b"\n" not in self._buffer:
            try:
                received = os.read(self._fd, 65_536)
            except OSError:
                received = b""
            if not received:
                raise SystemExit(1)  # likewise
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=Order)


def _preemptions() -> int:
    """How often the calling thread has lost its core to others; the process, where only that is told."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


def _helpers() -> int:
    processes = sys.modules.get("multiprocessing.process")
    children = 0 if processes is None else len(processes.active_children())
    return threading.active_count() - 1 + children


def _tree(recorders: tuple[Recorder, ...]) -> _Tree:
    tree: _Tree = {}
    for kind, recorder in zip(("scope", "module"), recorders, strict=False):
        for *_, nodes in recorder.snapshot()["strands"]:
            paths: list[_Path] = []
            self_ns = [node[4] for node in nodes]
            for node in nodes:
                parent = node[0]
                paths.append((kind, node[1]) if parent < 0 else (*paths[parent], node[1]))
                if parent >= 0:
                    self_ns[parent] -= node[4]
            for path, node, spent_ns in zip(paths, nodes, self_ns, strict=True):
                calls, before_ns = tree.get(path, (0, 0))
                tree[path] = calls + node[2], before_ns + spent_ns
    return tree


def _changes(before: _Tree, after: _Tree) -> tuple[TurnNode, ...]:
    changes = (
        (path, calls - before.get(path, (0, 0))[0], self_ns - before.get(path, (0, 0))[1])
        for path, (calls, self_ns) in after.items()
    )
    return tuple(TurnNode(path, calls, self_ns) for path, calls, self_ns in changes if calls or self_ns)


def _imported() -> dict[str, str]:
    """The file of each module, but for Python's own and ours; under ``-m`` the program by its own name."""
    own = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
    packages = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib"))
    imported: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        attributes = getattr(module, "__dict__", {})
        file = attributes.get("__file__")
        if not isinstance(file, str) or name.partition(".")[0] == "pyrometer":
            continue
        file = os.path.realpath(file)
        # The packages' folder may be in that of Python itself.
        if not file.startswith(own) or file.startswith(packages):
            spec = attributes.get("__spec__")
            named = getattr(spec, "name", None) if name == "__main__" else name
            imported[named if isinstance(named, str) else name] = file
    return imported


active: Pacer | None = None
