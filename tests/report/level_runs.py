"""Runs that reports of each level are made of: one in which everything was recorded, and some with little."""

from collections.abc import Callable

import msgspec

from pyrometer.record.run import Run
from tests.limits import make_limits
from tests.record.example_runs import make_allocations, make_counters, make_garbage
from tests.report.sample_runs import empty_run, simple_run
from tests.sampled_runs import STACKS, THREADS, Seen, stack_samples, with_samples
from tests.torch_runs import (
    generation_run,
    inference_run,
    net_operators,
    operators_run,
    with_scopes,
)

# In tests.torch_runs.net_calls: the phase forward, and the module fc1 in it.
IN_MODULE = (0, 2)


def full_run() -> Run:
    """A training program of which everything was recorded."""
    stacks = [_in_module(seen) if "forward" in seen.stack else seen for seen in STACKS]
    run = with_scopes(operators_run(net_operators()))
    run = with_samples(run, stack_samples(*stacks, threads=THREADS))
    return msgspec.structs.replace(
        run,
        allocations=make_allocations(),
        counters=make_counters(),
        garbage=make_garbage(),
        limits=make_limits(),
    )


def _in_module(seen: Seen) -> Seen:
    return Seen(stack=seen.stack, python=seen.python, native=seen.native, leaf=seen.leaf, call=IN_MODULE)


LEVEL_RUNS: dict[str, Callable[[], Run]] = {
    "full": full_run,
    "generating": lambda: generation_run(cached=False),
    "inferring": inference_run,
    "scopes": simple_run,
    "nothing": empty_run,
}
