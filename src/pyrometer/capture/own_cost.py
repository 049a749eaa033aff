"""What the profiler itself costs, measured here and now."""

import functools
import time

from pyrometer._native import Recorder

_ROUNDS = 5
_SCOPES_PER_ROUND = 500


@functools.cache
def scope_cost_ns() -> float:
    """One enabled scope, entered and left, on this machine in this process; measured once.

    The best of a few rounds, less the loop around it: what disturbs a round only adds.
    """
    recorder = Recorder()
    scope = recorder.scope("calibration")
    repeat = range(_SCOPES_PER_ROUND)
    with_scope_ns, loop_ns = [], []
    recorder.start()
    try:
        for _ in range(_ROUNDS):
            began_ns = time.perf_counter_ns()
            for _ in repeat:
                with scope:
                    pass
            between_ns = time.perf_counter_ns()
            for _ in repeat:
                pass
            loop_ns.append(time.perf_counter_ns() - between_ns)
            with_scope_ns.append(between_ns - began_ns)
    finally:
        recorder.stop()
    return max(min(with_scope_ns) - min(loop_ns), 0) / _SCOPES_PER_ROUND
