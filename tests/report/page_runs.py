"""Runs for the page: one in which every view has something to show, and one with a great many nodes."""

import msgspec

from pyrometer.record.run import Run
from pyrometer.record.samples import Function, Observation, StackNode, StackSamples
from pyrometer.record.values import ScopeNode
from tests.limits import make_limits
from tests.record.example_runs import make_allocations, make_counters, make_garbage
from tests.report.sample_runs import MS, main_strand, node, simple_run
from tests.report.torch_samples import large_torch_run
from tests.sampled_runs import STACKS, THREADS, Seen, stack_samples
from tests.torch_runs import evaluation_run, generation_run, net_operators


def full_run() -> Run:
    """Training, evaluation and generation, with operators, limits, scopes, samples, allocations, garbage."""
    run = evaluation_run()
    generated = generation_run(cached=False)
    assert run.torch is not None
    assert generated.torch is not None
    inside = [
        Seen(stack=seen.stack, native=seen.native, python=seen.python, leaf=seen.leaf, call=(0, 1))
        if "forward" in seen.stack
        else seen
        for seen in STACKS
    ]
    return msgspec.structs.replace(
        run,
        strands=simple_run().strands,
        limits=make_limits(),
        torch=msgspec.structs.replace(
            run.torch,
            intra_op_threads=2,
            operators=net_operators(),
            generations=generated.torch.generations,
        ),
        samples=stack_samples(*inside, threads=THREADS),
        allocations=make_allocations(),
        counters=make_counters(),
        garbage=make_garbage(),
    )


def run_of_many_nodes(nodes: int = 20_000) -> Run:
    """As many modules, as many scopes and as many frames as asked for."""
    run = large_torch_run(blocks=nodes // 3)
    scopes: list[ScopeNode] = [node("program", None, [MS * nodes])]
    scopes += [node(f"scope_{index}", (index - 1) // 5, [1_000]) for index in range(1, nodes)]
    return msgspec.structs.replace(run, strands=(main_strand(*scopes),), samples=_many_stacks(nodes))


def _many_stacks(frames: int) -> StackSamples:
    return StackSamples(
        samples_per_s=100,
        samples=frames,
        dropped=0,
        sampler_cpu_ns=0,
        threads=("MainThread",),
        functions=tuple(
            Function(f"function_{index}", f"/x/{index % 100}.py", index) for index in range(5_000)
        ),
        nodes=tuple(
            StackNode(None if index == 0 else (index - 1) // 4, index % 5_000, 1) for index in range(frames)
        ),
        observations=tuple(
            Observation(index, 0, None, None, None, 1, 0, 0, 10_000_000, 10_000_000)
            for index in range(frames)
        ),
    )
