"""Work of the profiler's on the program's threads, kept out of what is told of the program.

Only for what takes long: hooks that take microseconds are told as the profiler's cost.
"""

from pyrometer._native import Recorder, allocations
from pyrometer.capture import garbage


class OwnWork:
    """While it is entered, the calling thread's time, allocations and collections are the profiler's.

    The time is in no scope that the thread has open on the ``recorders``, and neither in what those
    profiled. Entered again before it was left, it changes nothing. For one thread at a time.
    """

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders
        self._began_ns: list[int] = []
        self._depth = 0
        self._is_outermost = False
        self.duration_ns = 0
        """Of all so far."""

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._is_outermost = allocations.begin_own_work()
            garbage.watch.begin_own_work()
            self._began_ns = [recorder.now() for recorder in self._recorders]

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        longest_ns = 0
        for recorder, began_ns in zip(self._recorders, self._began_ns, strict=True):
            duration_ns = recorder.now() - began_ns
            recorder.leave_out(duration_ns)
            longest_ns = max(longest_ns, duration_ns)
        self.duration_ns += longest_ns
        garbage.watch.end_own_work()
        if self._is_outermost:
            allocations.end_own_work()
