"""Windows as a trace in Chrome's format, for Perfetto and others: operators beside steps, modules and scopes.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes the format: times
are in microseconds, here since the first window began, with the nanoseconds behind the point.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from pyrometer.capture.operator_windows import FinishedWindow

_STEPS, _CALLS, _SCOPES = 1, 2, 3
"""Tracks of ours, beside those of the program's threads, which have the system's numbers."""
_CHUNK = 2_000


def trace_of(windows: Sequence[FinishedWindow], *, process_id: int) -> Iterator[str]:
    """The text of the file, piece by piece."""
    yield '{"displayTimeUnit":"ns","otherData":{"made_by":"pyrometer"},"traceEvents":[\n'
    origin_ns = min((window.session.line.first[1] for window in windows), default=0)
    first = True
    lines: list[str] = []
    for line in _events(windows, process_id, origin_ns):
        lines.append(line)
        if len(lines) >= _CHUNK:
            yield ("" if first else ",\n") + ",\n".join(lines)
            first = False
            lines.clear()
    if lines:
        yield ("" if first else ",\n") + ",\n".join(lines)
    yield "\n]}\n"


def _events(windows: Iterable[FinishedWindow], process_id: int, origin_ns: int) -> Iterator[str]:
    tracks = _Tracks(process_id, origin_ns)
    yield tracks.named(0, "process_name", "the program")
    for track, name in ((_STEPS, "steps"), (_CALLS, "phases and modules"), (_SCOPES, "scopes")):
        yield tracks.named(track, "thread_name", name)
        yield tracks.sorted(track, track)
    threads: set[int] = set()
    for window in windows:
        session = window.session
        for number, (start, end) in enumerate(session.steps_theirs, window.first_step):
            # A nanosecond short: readers add up in floating point, and one that ends where the next
            # begins may then seem to hold it.
            yield tracks.span(_STEPS, "step", f"step {number} ({window.kind})", (start, end - 1))
        # One thread a track: calls of others would overlap, and a track nests.
        for track, kind, calls in ((_CALLS, "module", window.calls), (_SCOPES, "scope", window.scopes)):
            for name, thread, _, start, end in calls:
                if thread == session.thread_id:
                    yield tracks.span(track, kind, name, (start, end))
        for event in session.events:
            thread = event.device_resource_id()
            if thread not in threads:
                threads.add(thread)
                yield tracks.named(thread, "thread_name", f"operators, thread {thread}")
                yield tracks.sorted(thread, _SCOPES + 1)
            start = event.start_ns()
            times = (start, start + event.duration_ns())
            yield tracks.span(thread, event.activity_type(), event.name(), times)


class _Tracks:
    """Writes one event of the file after the other."""

    def __init__(self, process_id: int, origin_ns: int) -> None:
        self._process_id = process_id
        self._origin_ns = origin_ns

    def span(self, track: int, kind: str, name: str, times: tuple[int, int]) -> str:
        """Something with a beginning and an end; what began before the window is drawn from there on."""
        start = max(times[0], self._origin_ns)
        return (
            f'{{"ph":"X","name":{json.dumps(name)},"cat":"{kind}","ts":{_us(start - self._origin_ns)},'
            f'"dur":{_us(max(times[1] - start, 0))},"pid":{self._process_id},"tid":{track}}}'
        )

    def named(self, track: int, what: str, name: str) -> str:
        """What a track, or the process, is called."""
        return self._about(track, what, f'"name":{json.dumps(name)}')

    def sorted(self, track: int, order: int) -> str:
        """Where a track stands."""
        return self._about(track, "thread_sort_index", f'"sort_index":{order}')

    def _about(self, track: int, what: str, fact: str) -> str:
        return f'{{"ph":"M","name":"{what}","pid":{self._process_id},"tid":{track},"args":{{{fact}}}}}'


def _us(duration_ns: int) -> str:
    return f"{duration_ns // 1000}.{duration_ns % 1000:03}"
