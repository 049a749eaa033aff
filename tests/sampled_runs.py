"""Runs with stack samples, written as stacks: ``main;step;forward`` with its milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pyrometer.record.run import Run
from pyrometer.record.samples import Function, NativeFunction, Observation, StackNode, StackSamples

MS = 1_000_000
INTERVAL_MS = 10
"""One sample stands for so much."""

OWN = "/home/ada/train.py"
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"
NUMPY = "/opt/venv/lib/python3.11/site-packages/numpy/linalg/_linalg.py"
STDLIB = "/usr/lib/python3.11/threading.py"
OURS = "/opt/venv/lib/python3.11/site-packages/pyrometer/capture/torch_watch.py"

FUNCTIONS = {
    "<module>": Function("<module>", OWN, 1),
    "Linear.forward": Function("Linear.forward", TORCH, 120),
    "Module._call_impl": Function("Module._call_impl", TORCH, 1_770),
    "norm": Function("norm", NUMPY, 2_500),
    "Condition.wait": Function("Condition.wait", STDLIB, 288),
    "settle": Function("settle", OURS, 40),
}
NATIVE = (NativeFunction("cblas_sgemm", "/opt/libtorch_cpu.so"), NativeFunction(None, "/lib/libc.so.6"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A stack, and the milliseconds in Python, in native code and waiting; one sample for each 10."""

    stack: str
    """Names from the outermost, each with a line behind a colon if it is to have one."""
    python: int = 0
    native: int = 0
    waiting: int = 0
    thread: int = 0
    leaf: int | None = None
    call: tuple[int, int] | None = None
    scope: tuple[int, int] | None = None


class _Builder:
    def __init__(self) -> None:
        self.functions: dict[Function, int] = {}
        self.nodes: dict[StackNode, int] = {}

    def stack(self, text: str) -> int:
        parent: int | None = None
        for frame in text.split(";"):
            name, _, line = frame.partition(":")
            function = FUNCTIONS.get(name, Function(name, OWN, 10))
            index = self.functions.setdefault(function, len(self.functions))
            node = StackNode(parent, index, int(line) if line else None)
            parent = self.nodes.setdefault(node, len(self.nodes))
        assert parent is not None
        return parent


def stack_samples(
    *stacks: Seen, threads: Sequence[str] = ("MainThread",), samples_per_s: float = 100.0
) -> StackSamples:
    """The samples of these stacks."""
    builder = _Builder()
    observations = []
    for seen in stacks:
        whole = seen.python + seen.native + seen.waiting
        assert not any(part % INTERVAL_MS for part in (seen.python, seen.native, seen.waiting))
        observations.append(
            Observation(
                stack=builder.stack(seen.stack),
                thread=seen.thread,
                scope=seen.scope,
                call=seen.call,
                leaf=seen.leaf,
                samples=whole // INTERVAL_MS,
                waiting=seen.waiting // INTERVAL_MS,
                native=seen.native // INTERVAL_MS,
                wall_ns=whole * MS,
                cpu_ns=(seen.python + seen.native) * MS,
            )
        )
    return StackSamples(
        samples_per_s=samples_per_s,
        samples=sum(observation.samples for observation in observations),
        dropped=0,
        sampler_cpu_ns=2 * MS,
        threads=tuple(threads),
        functions=tuple(builder.functions),
        native_functions=NATIVE,
        nodes=tuple(builder.nodes),
        observations=tuple(observations),
    )


def with_samples(run: Run, samples: StackSamples) -> Run:
    """The run with these samples."""
    return msgspec.structs.replace(run, samples=samples)


STACKS = (
    Seen(stack="<module>:80;train:40;load_batch:12", python=940),
    Seen(
        stack="<module>:80;train:41;step:20;Module._call_impl:1780;Linear.forward:125", native=4_000, leaf=0
    ),
    Seen(stack="<module>:80;train:41;step:20;Module._call_impl:1780;Linear.forward:125", python=300),
    Seen(stack="<module>:80;train:41;step:21;norm:2600", python=200, native=700),
    Seen(stack="<module>:80;train:41;step:22", python=400),
    Seen(stack="<module>:80;train:43;fib:5;fib:6;fib:6;fib:6", python=600),
    Seen(stack="<module>:80;train:43;fib:5;fib:6", python=300),
    Seen(stack="<module>:80;train:44", python=100, waiting=1_500),
    Seen(stack="<module>:80;settle:44", python=50),
    Seen(stack="worker:70;Condition.wait:320", waiting=8_900, thread=1),
    Seen(stack="worker:71;decode:74", python=50, native=100, thread=1, leaf=1),
)
THREADS = ("MainThread", "loader")
