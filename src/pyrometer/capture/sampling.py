"""Samples the stacks of the program's threads, from a thread that never takes the GIL."""

import dis
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrometer._native import Recorder, Sampler
from pyrometer.capture.losses import note_failure, note_loss
from pyrometer.capture.own_work import OwnWork
from pyrometer.record.run import Loss
from pyrometer.record.samples import Function, NativeFunction, Observation, StackNode, StackSamples
from pyrometer.record.values import Strand

DEFAULT_HZ = 100.0

samples_per_s = DEFAULT_HZ
"""How often each thread is looked at; 0: never."""
names_native = False
"""Whether the native functions that Python's are in are asked for, by a signal."""

_CALLS = ("CALL", "PRECALL", "CALL_FUNCTION_EX", "CALL_KW")
# Left as they were compiled, they have met something else than Python's own numbers and containers.
_GENERAL = (
    "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR",
    "COMPARE_OP", "CONTAINS_OP", "UNARY_NEGATIVE", "UNARY_INVERT", "IMPORT_NAME",
)  # fmt: skip

_LOSS_TEXTS = {
    "cut": "stacks or places that found no more room: they stand where there was some",
    "unanswered": "native functions not known: the thread did not answer in time",
    "unseen": "looks at more threads at a time than can be looked at",
}

_LEFT_OUT = Function("(calls in the middle of a deep stack)", "", 0)

_Snapshot = Mapping[str, Any]
_Path = tuple[str, ...]


class Sampling:
    """A sampler, and what it has seen as values of the record."""

    def __init__(self, scopes: Recorder, hz: float, *, native: bool = False) -> None:
        self._hz = hz
        self._sampler = Sampler(
            scopes=scopes,
            interval_ns=round(1e9 / hz),
            native_instructions=native_instructions(),
            native=native,
        )
        self._works: bool | None = None
        self._names: dict[int, str] = {}
        """Of threads, by number: of one that has ended, nobody knows it any more."""

    def start(self) -> None:
        """Begin to look; where that cannot be is a loss."""
        reason = self.why_not() if self._works is None else None
        if self._works is None:
            self._works = reason is None
        if self._works:
            reason = self._sampler.start()
        if reason is not None:
            note_loss("sampler", f"no stacks are sampled: {reason}")

    def stop(self) -> None:
        """Look no more."""
        self._sampler.stop()

    def reset(self) -> None:
        """Forget what was seen."""
        self._names.clear()
        self._sampler.reset()

    def see_calls(self, calls: Recorder) -> None:
        """Note from now on which of torch's calls the threads are in."""
        self._sampler.see_calls(calls)

    def leave_out(self) -> None:
        """The calling thread is ours: do not look at it."""
        self._sampler.leave_out()

    @property
    def running(self) -> bool:
        """Whether it looks."""
        return self._sampler.running

    def record(
        self, *, scopes: Sequence[Strand], calls: Sequence[Strand]
    ) -> tuple[StackSamples | None, tuple[Loss, ...]]:
        """What was seen so far, None where nothing could be; and what was not."""
        if not self._works:
            return None, ()
        snapshot = self._sampler.snapshot()
        losses = tuple(
            Loss(collector="sampler", reason=text, count=snapshot[kind])
            for kind, text in _LOSS_TEXTS.items()
            if snapshot[kind]
        )
        return self._samples(snapshot, scopes, calls), losses

    def _samples(
        self, snapshot: _Snapshot, scopes: Sequence[Strand], calls: Sequence[Strand]
    ) -> StackSamples:
        self._learn_names([thread_id for thread_id, _ in snapshot["threads"]])
        scales = _processor_shares(snapshot)
        find_scope = _PlaceFinder(snapshot, scopes)
        find_call = _PlaceFinder(snapshot, calls)
        left_out = len(snapshot["functions"])
        return StackSamples(
            samples_per_s=self._hz,
            samples=snapshot["samples"],
            dropped=snapshot["dropped"],
            sampler_cpu_ns=snapshot["cpu_ns"],
            threads=tuple(self._names[number] for number in range(len(snapshot["threads"]))),
            functions=(*(Function(*row) for row in snapshot["functions"]), _LEFT_OUT),
            native_functions=tuple(
                NativeFunction(name, os.path.realpath(library)) for name, library in snapshot["leaves"]
            ),
            nodes=tuple(
                StackNode(parent, left_out if function is None else function, line)
                for parent, function, line in snapshot["nodes"]
            ),
            observations=tuple(
                Observation(
                    stack,
                    thread,
                    find_scope(thread, scope),
                    find_call(thread, call),
                    leaf,
                    samples,
                    waiting,
                    native,
                    wall_ns,
                    round(running_ns * scales[thread]),
                )
                for (
                    stack,
                    thread,
                    scope,
                    call,
                    leaf,
                    samples,
                    waiting,
                    native,
                    wall_ns,
                    running_ns,
                ) in snapshot["observations"]
            ),
        )

    def _learn_names(self, thread_ids: Sequence[int]) -> None:
        # current_thread() and the like would register a dummy for a foreign thread.
        alive = dict(threading._active)  # type: ignore[attr-defined]  # noqa: SLF001
        for number, thread_id in enumerate(thread_ids):
            if number not in self._names or self._names[number].endswith(_ENDED):
                name = getattr(alive.get(thread_id), "_name", None)
                unknown = f"thread {thread_id}{_ENDED}" if thread_id else "other threads"
                self._names[number] = unknown if name is None else name

    def why_not(self) -> str | None:
        """Why no stack can be sampled here; None if what the sampler reads is what the interpreter says."""
        seen = self._sampler.own_stack()
        if seen is None:
            reason = self._sampler.start()
            self._sampler.stop()
            return reason or "the sampler cannot read its own stack"
        frame: Any = sys._getframe()
        # This function's own line has gone on since.
        if seen[0][0] != frame.f_code.co_qualname or seen[1:] != list(_stack_of(frame.f_back)):
            return "this interpreter's stacks are not read correctly"
        return None


_ENDED = " (ended)"


def _processor_shares(snapshot: _Snapshot) -> list[float]:
    """By thread: what it ran by its own clock, of the time in which it was met running or ready to."""
    met_ns = [0] * len(snapshot["threads"])
    for _, thread, *_, running_ns in snapshot["observations"]:
        met_ns[thread] += running_ns
    return [
        min(ran_ns / met, 1.0) if met else 0.0
        for met, (_, ran_ns) in zip(met_ns, snapshot["threads"], strict=True)
    ]


def native_instructions() -> bytes:
    """For each instruction of the interpreter, whether it runs code that is not Python's."""
    # With the ones that instructions turn into as they run; there is no public list of them.
    numbers: Mapping[str, int] = dis._all_opmap  # type: ignore[attr-defined]  # noqa: SLF001
    native = bytearray(256)
    for name, number in numbers.items():
        called = name in _CALLS or name.startswith(("CALL_", "PRECALL_"))
        if number < len(native) and (called or name.removesuffix("_ADAPTIVE") in _GENERAL):
            native[number] = 1
    return bytes(native)


def _stack_of(frame: Any) -> Iterator[tuple[str, str, int]]:
    while frame is not None:
        yield frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno or -1
        frame = frame.f_back


class _PlaceFinder:
    """From where the sampler saw a thread to the node of a call tree: by the names on the way there."""

    def __init__(self, snapshot: _Snapshot, strands: Sequence[Strand]) -> None:
        self._places: list[tuple[int | None, str]] = snapshot["places"]
        self._thread_ids: list[int] = [thread_id for thread_id, _ in snapshot["threads"]]
        self._nodes: dict[tuple[int, _Path], tuple[int, int]] = {}
        self._anywhere: dict[_Path, tuple[int, int]] = {}
        for number, strand in enumerate(strands):
            paths: list[_Path] = []
            for index, node in enumerate(strand.nodes):
                path = (*(() if node.parent is None else paths[node.parent]), node.name)
                paths.append(path)
                self._nodes.setdefault((strand.thread_id, path), (number, index))
                self._anywhere.setdefault(path, (number, index))
        self._found: dict[tuple[int, int], tuple[int, int] | None] = {}

    def __call__(self, thread: int, place: int | None) -> tuple[int, int] | None:
        if place is None:
            return None
        if (thread, place) not in self._found:
            path = self._path(place)
            here = (self._thread_ids[thread], path)
            # A thread that has ended may stand together with others of its kind.
            self._found[thread, place] = self._nodes.get(here, self._anywhere.get(path))
        return self._found[thread, place]

    def _path(self, place: int | None) -> _Path:
        names: list[str] = []
        while place is not None:
            place, name = self._places[place]
            names.append(name)
        return tuple(reversed(names))


active: Sampling | None = None
"""That of this process, once recording has begun."""


def configure(hz: float, *, native: bool) -> None:
    """Say how often to look, 0: never, and whether for native functions too; before recording begins."""
    global samples_per_s, names_native
    samples_per_s, names_native = hz, native


def begin(scopes: Recorder) -> None:
    """Start to sample, unless that was asked not to be."""
    global active
    if not samples_per_s:
        return
    try:
        with OwnWork():
            if active is None:
                active = Sampling(scopes, samples_per_s, native=names_native)
            active.start()
    except Exception as error:  # noqa: BLE001 - the program runs whatever happens to us
        note_failure("sampler", "no stacks are sampled", error)


def end() -> None:
    """Stop; what was seen stays."""
    if active is not None:
        active.stop()
