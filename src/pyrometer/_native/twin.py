"""The scope recorder in Python: the specification of the C core, and its stand-in.

``core.c`` does the same with the same names, and every test of the recorder runs on both.
What each unusual case means is written down once, in ``docs/recorder.md``.

Words used here: a *strand* is the call tree of one thread under the scope that started
the thread. A *frame* is one open call of a scope. A frame's *owner* is the generator or
coroutine that entered it: when the owner is suspended its frames leave the strand, and
return, under whatever scope is then open, when it is resumed.
"""

import functools
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, Self, TypeVar

from pyrometer._native import suspension
from pyrometer._native.threads import describe_current_thread
from pyrometer._native.twin_tree import (
    OTHER,
    CallLog,
    Frame,
    LoggedCall,
    Node,
    Position,
    Shared,
    Strand,
    Survey,
    ThreadEnd,
    close_top,
    foldable,
    is_other,
    same_place,
)

P = ParamSpec("P")
R = TypeVar("R")

KIND = "python"
MAX_NAME_LENGTH = 1_000
STRANDS_KEPT = 64
MAX_STRANDS = 4_096


def _locked(method: Callable[P, R]) -> Callable[P, R]:
    """The method, one thread at a time: what C does in one go, Python may be interrupted in."""

    @functools.wraps(method)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with args[0]._lock:  # type: ignore[attr-defined]
            return method(*args, **kwargs)

    return locked


class Scope:
    """A named stretch of code; ``with`` it as often and as deeply nested as you like."""

    __slots__ = ("_recorder", "name")

    def __init__(self, recorder: "Recorder", name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a scope's name must be a str, not {type(name).__name__}: {name!r}")
        self._recorder = recorder
        self.name = name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"

    def __enter__(self) -> Self:
        if self._recorder.enabled:
            self._recorder._enter(self.name, sys._getframe(1))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._recorder.enabled:
            self._recorder._exit(self.name, sys._getframe(1), self._recorder._clock())

    def __repr__(self) -> str:
        return f"scope({self.name!r})"


class Recorder:
    """Keeps a call tree per thread, aggregated as it happens.

    For every node the children's totals never exceed its own. Off until ``start()``.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] | None = None,
        max_nodes: int = 20_000,
        max_depth: int = 1_000,
        suspends: bool = True,
    ) -> None:
        self._clock = clock if clock is not None else time.perf_counter_ns
        self._max_nodes = max_nodes
        self._max_depth = max_depth
        self._suspends = suspends
        self._starts = 0
        self.enabled = False
        self._profiled_ns = 0
        self._started_ns = 0
        self._home_thread_id: int | None = None
        self._log: CallLog | None = None
        self._run = 0  # changes whenever what is open is left: a call open since before is not left again
        self._clear()

    def _clear(self) -> None:
        # Anew each time: in a forked child a thread that no longer exists may hold the old one.
        self._lock = threading.RLock()
        self._ground = Shared()
        self._strands: list[Strand] = []
        self._local = threading.local()
        self._suspended: dict[FrameType, list[Frame]] = {}
        self._node_count = 0
        self._entries = 0
        self._places_lost = 0
        self._depth_lost = 0
        self._out_of_order = 0
        self._unmatched_exits = 0
        self._unseen_suspensions = 0
        self._strands_lost = 0

    # Switching on and off.

    def start(self) -> None:
        """Switch on. Starts nest: it takes as many stops to switch off."""
        self._starts += 1
        if self._starts == 1:
            if self._suspends:
                suspension.recorders.append(self)
            if self._home_thread_id is None:
                self._home_thread_id = threading.get_ident()
            self._started_ns = self._clock()
            self._run += 1
            self.enabled = True

    def stop(self) -> None:
        """Switch off; scopes still open are kept, as open, with their time so far."""
        if self._starts == 0:
            return
        self._starts -= 1
        if self._starts:
            return
        now_ns = self._clock()
        self.enabled = False
        self._run += 1
        if self._suspends:
            suspension.recorders.remove(self)
            if not suspension.recorders:
                suspension.release()
        self._profiled_ns += now_ns - self._started_ns
        with self._lock:
            self._close_all(now_ns)

    def _close_all(self, now_ns: int) -> None:
        for strand in self._strands:
            end_ns = now_ns if strand.ended_ns is None else strand.ended_ns
            while len(strand.frames) > 1:
                close_top(strand, end_ns, completed=False)
            strand.frames[0].absorbed = 0
        for frames in self._suspended.values():
            for frame in frames:
                frame.node.suspended_ns += now_ns - frame.suspended_at_ns
                frame.node.open_calls += 1
                frame.node.references -= 1
        self._suspended.clear()

    def reset(self) -> None:
        """Forget everything recorded; scopes open now are not seen again."""
        self._run += 1
        self._clear()
        self._profiled_ns = 0
        self._started_ns = self._clock()

    # Making scopes.

    def scope(self, name: str) -> Scope:
        """A scope of this recorder."""
        return Scope(self, name)

    def profiled(self, function: Callable[P, R], name: str) -> Callable[P, R]:
        """The function, each call of it a scope."""
        scope = Scope(self, name)

        @functools.wraps(function)
        def profiled_function(*args: P.args, **kwargs: P.kwargs) -> R:
            with scope:
                return function(*args, **kwargs)

        return profiled_function

    # Threads.

    @_locked
    def position(self) -> Position | None:
        """Where the calling thread is now, for a thread it starts; None outside any scope."""
        strand: Strand | None = getattr(self._local, "strand", None)
        if not self.enabled or strand is None:
            return None
        node = strand.frames[-1].node
        return strand.parent if node is strand.root else Position(strand, node)

    @_locked
    def enter_position(self, position: Position | None) -> bool:
        """From now on the calling thread works for the scope at ``position``; False if it cannot."""
        strand = self._make_strand(position)
        if strand is None:
            return False
        strand.outer = getattr(self._local, "strand", None)
        self._local.strand = strand
        return True

    @_locked
    def leave_position(self) -> None:
        """Undo the last ``enter_position`` of the calling thread."""
        strand: Strand | None = getattr(self._local, "strand", None)
        if strand is None:
            return
        now_ns = self._clock()
        while len(strand.frames) > 1:
            close_top(strand, now_ns, completed=False)
        strand.frames[0].absorbed = 0
        strand.ended_ns = now_ns
        self._local.strand = strand.outer

    def _current_strand(self) -> Strand | None:
        strand: Strand | None = getattr(self._local, "strand", None)
        if strand is None:
            strand = self._make_strand(None)
            self._local.strand = strand
        return strand

    def _make_strand(self, position: Position | None) -> Strand | None:
        thread_id, thread_name, started_at = describe_current_thread()
        if position is None and started_at is not None:
            position = started_at
        # Only a position of this record: reset() and fork leave old ones behind.
        if position is not None and position.strand not in self._strands:
            position = None
        for strand in self._strands:
            if (
                strand.ended_ns is not None
                and strand.thread_id == thread_id
                and strand.thread_name == thread_name
                and same_place(strand.parent, position)
            ):
                strand.ended_ns = None
                self._note_thread_end(strand)
                return strand
        if len(self._strands) >= STRANDS_KEPT:
            self._fold_finished_strands()
        if len(self._strands) >= MAX_STRANDS:
            self._strands_lost += 1
            return None
        # Threads that hang nowhere share the ground, but for the one that switched the recorder on.
        ground = None if thread_id == self._home_thread_id else self._ground
        strand = Strand(thread_id, thread_name, position, ground)
        strand.log = self._log
        self._strands.append(strand)
        self._note_thread_end(strand)
        return strand

    def _note_thread_end(self, strand: Strand) -> None:
        end: ThreadEnd | None = getattr(self._local, "end", None)
        if end is None:
            end = self._local.end = ThreadEnd([], self._clock)
        end.strands.append(strand)

    def _fold_finished_strands(self) -> None:
        kept: list[Strand] = []
        for strand in self._strands:
            target = next((other for other in kept if foldable(other, strand)), None)
            if target is None or strand.root.is_referenced():
                kept.append(strand)
            else:
                target.threads += strand.threads
                self._node_count -= target.root.absorb(strand.root) - 1
        self._strands = kept

    # Entering and leaving.

    @_locked
    def _enter(self, name: str, caller: FrameType) -> None:
        strand = self._current_strand()
        if strand is None:
            return
        self._entries += 1
        owner = suspension.owner_of(caller)
        self._settle(strand, owner, caller)
        top = strand.frames[-1]
        node = None if top.ghost else self._place(strand, top.node, name)
        if node is None:
            top.absorbed += 1
            return
        if owner is not None and not suspension.watch(owner):
            self._unseen_suspensions += 1
        frame = Frame(node, owner, 0)
        strand.frames.append(frame)
        frame.begin_slice(self._clock())

    @_locked
    def _exit(self, name: str, caller: FrameType, now_ns: int) -> None:
        strand: Strand | None = getattr(self._local, "strand", None)
        if strand is None:
            self._unmatched_exits += 1
            return
        self._settle(strand, suspension.owner_of(caller), caller)
        frames = strand.frames
        if frames[-1].absorbed:
            frames[-1].absorbed -= 1
            return
        if is_other(frames[-1].node):
            close_top(strand, now_ns, completed=True)
            return
        for index in range(len(frames) - 1, 0, -1):
            if frames[index].node.name == name:
                break
        else:
            self._unmatched_exits += 1
            return
        while len(frames) - 1 > index:
            self._out_of_order += 1
            close_top(strand, now_ns, completed=True)
        close_top(strand, now_ns, completed=True)

    def _place(self, strand: Strand, parent: Node, name: str) -> Node | None:
        """The node for a scope of this name, made if there is room; else "(other)", else None."""
        node = parent.children.get(name)
        if node is not None:
            return node
        too_deep = len(strand.frames) > self._max_depth
        inside_other = is_other(parent)
        # One node in twenty is kept back for the "(other)" of places that overflow.
        if not (too_deep or inside_other) and self._node_count < self._max_nodes - self._max_nodes // 20:
            self._node_count += 1
            shared = None if parent.shared is None else parent.shared.child(name)
            node = parent.children[name] = Node(name, parent, shared)
            return node
        if too_deep:
            self._depth_lost += 1
        else:
            self._places_lost += 1
        if inside_other:
            return None
        if parent.other is None and self._node_count < self._max_nodes:
            self._node_count += 1
            shared = None if parent.shared is None else parent.shared.child(OTHER)
            parent.other = Node(OTHER, parent, shared)
        return parent.other

    # Suspension.

    @_locked
    def suspend(self, owner: FrameType) -> None:
        """The owner has just yielded: its frames, and all above them, leave the strand."""
        strand: Strand | None = getattr(self._local, "strand", None)
        if strand is None:
            return
        self._take_off_all_of(strand, owner)
        while (top := strand.frames[-1]).passed_for is owner:
            self._take_off_all_of(strand, top.owner)

    @_locked
    def resume(self, owner: FrameType) -> None:
        """The owner is about to run again: its frames return, under the scope now open."""
        for delegator in suspension.delegators_of(owner):
            self._put_back(delegator, passed_for=owner)
        self._put_back(owner, passed_for=None)

    def _put_back(self, owner: FrameType, *, passed_for: FrameType | None) -> None:
        frames = self._suspended.pop(owner, None)
        strand = self._current_strand() if frames is not None else None
        if frames is None or strand is None:
            return
        now_ns = self._clock()
        for frame in frames:
            frame.node.suspended_ns += now_ns - frame.suspended_at_ns
            frame.node.references -= 1
            self._place_again(strand, frame)
            frame.passed_for = passed_for
            frame.begin_slice(now_ns)
            strand.frames.append(frame)

    def _place_again(self, strand: Strand, frame: Frame) -> None:
        """Under the scope now open; where there is no room, its time stays with that scope."""
        top = strand.frames[-1]
        if not top.ghost and frame.node.parent is top.node:
            frame.ghost = False
            return
        place = None if top.ghost else self._place(strand, top.node, frame.node.name)
        frame.ghost = place is None
        if place is not None:
            frame.node = place

    def _take_off_all_of(self, strand: Strand, owner: FrameType | None) -> None:
        for index, frame in enumerate(strand.frames):
            if frame.owner is owner and index:
                self._take_off(strand, index, self._clock())
                break

    def _take_off(self, strand: Strand, index: int, now_ns: int) -> None:
        if self._log is not None:
            for depth in range(len(strand.frames) - 1, index - 1, -1):
                self._log.add(strand, depth, now_ns)
        frames = strand.frames[index:]
        del strand.frames[index:]
        for frame in reversed(frames):
            frame.end_slice(now_ns)
            frame.suspended_at_ns = now_ns
            frame.node.references += 1
        owner = frames[0].owner
        assert owner is not None
        self._suspended[owner] = frames

    def _settle(self, strand: Strand, owner: FrameType | None, caller: FrameType) -> None:
        """Put right what was not announced: an owner that stopped or came back unseen."""
        for index in range(len(strand.frames) - 1, 0, -1):
            on_strand = strand.frames[index].owner
            if on_strand is None or on_strand is owner:
                continue
            if not suspension.is_running(on_strand, caller):
                self._unseen_suspensions += 1
                self._take_off(strand, index, self._clock())
        if owner is not None and owner in self._suspended:
            self.resume(owner)

    # Single calls.

    def now(self) -> int:
        """What its clock says, in nanoseconds."""
        return self._clock()

    @_locked
    def leave_out(self, duration_ns: int) -> None:
        """The calling thread was at work of the profiler's for so long: no time of what it has open.

        All open calls begin so much later, so each still has room for what was called inside it.
        """
        if not self.enabled:
            return
        strand: Strand | None = getattr(self._local, "strand", None)
        for frame in () if strand is None else strand.frames[1:]:
            frame.slice_start_ns += duration_ns
        if self._home_thread_id == threading.get_ident():
            self._started_ns += duration_ns

    @_locked
    def start_log(self, limit: int) -> None:
        """Keep single calls from now on, ``limit`` at most; what was kept is forgotten."""
        self._log = CallLog(limit)
        for strand in self._strands:
            strand.log = self._log

    @_locked
    def take_log(self) -> tuple[list[LoggedCall], int]:
        """(calls, how many found no room); those still open end now, and no more are kept.

        A call is (name, thread, depth, start, end); one that was suspended in between is several.
        They stand in the order they ended.
        """
        log, self._log = self._log, None
        if log is None:
            return [], 0
        now_ns = self._clock()
        for strand in self._strands:
            strand.log = None
            for depth in range(len(strand.frames) - 1, 0, -1):
                log.add(strand, depth, now_ns)
        return log.calls, log.lost

    # Reading.

    @_locked
    def snapshot(self) -> dict[str, Any]:
        """Everything recorded so far, open scopes included, as plain values.

        Recording goes on. Keys: ``profiled_ns``, ``entries``, ``strands`` (see ``RawStrand``)
        and ``losses``, a count for each kind.
        """
        now_ns = self._clock()
        strands = Survey(self._strands, self._suspended.values(), now_ns).strands
        return {
            "profiled_ns": self._profiled_ns + (now_ns - self._started_ns if self.enabled else 0),
            "entries": self._entries,
            "strands": strands,
            "losses": {
                "places": self._places_lost,
                "depth": self._depth_lost,
                "threads": self._strands_lost,
                "out_of_order": self._out_of_order,
                "unmatched_exits": self._unmatched_exits,
                "unseen_suspensions": self._unseen_suspensions,
            },
        }
