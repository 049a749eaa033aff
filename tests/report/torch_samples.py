"""Runs of PyTorch programs that try a report's limits: hostile names, and as much as a record holds."""

import msgspec

from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Shapes, Use
from pyrometer.record.run import Memory, Run
from pyrometer.record.torch_run import (
    Compilation,
    Generation,
    Gpu,
    Loader,
    Module,
    PositionBin,
    Step,
    StepGroup,
    TorchRun,
)
from pyrometer.record.values import ScopeNode, Strand
from pyrometer.stats.buckets import bucket_of, merge_buckets
from tests.report.sample_runs import MS, S, node, run_of


def group_of(
    label: str, durations_ns: list[int], *, kind: str = "training", phases: tuple[str, ...], most: int = 256
) -> StepGroup:
    """Steps whose time is spread evenly over the phases, the rest in the last."""
    steps = [_step(index, duration_ns, len(phases)) for index, duration_ns in enumerate(durations_ns)]
    return StepGroup(
        kind=kind,
        label=label,
        phases=phases,
        steps=len(steps),
        total_ns=sum(durations_ns),
        phase_ns=tuple(sum(step.phase_ns[index] for step in steps) for index in range(len(phases))),
        phase_bytes=tuple(1_000 * (index + 1) * len(steps) for index in range(len(phases))),
        phase_allocations=tuple((index + 1) * len(steps) for index in range(len(phases))),
        min_ns=min(durations_ns),
        max_ns=max(durations_ns),
        buckets=merge_buckets((bucket_of(duration_ns), 1) for duration_ns in durations_ns),
        batches=len(steps),
        forward_calls=len(steps),
        grad_forward_calls=len(steps),
        backward_passes=len(steps) if kind == "training" else 0,
        samples=32 * len(steps),
        first=tuple(steps[:most]),
        sampled=tuple(steps[most : 3 * most]),
    )


def _step(index: int, duration_ns: int, phases: int) -> Step:
    each = duration_ns // phases
    return Step(
        index=index,
        started_ns=index * duration_ns,
        duration_ns=duration_ns,
        phase_ns=(*[each] * (phases - 1), duration_ns - each * (phases - 1)),
        samples=32,
    )


def phases_named(name: str) -> tuple[str, ...]:
    """The phases of a run that has one of this name: phases of one name are one phase."""
    return tuple(dict.fromkeys(("forward", name, "other")))


def torch_run_named(name: str, *, phases: tuple[str, ...] = ()) -> Run:
    """A run in which everything that can have a name has this one, except such phases as are given."""
    phases = phases or phases_named(name)
    calls = (
        node("forward", None, [8 * MS] * 10),
        node(name, 0, [6 * MS] * 10),
        node(f"{name}.{name}", 1, [2 * MS] * 10),
    )
    torch = TorchRun(
        torch_version=name,
        gpu=Gpu(name=name, peak_bytes=5 << 30, phase_device_ns={name: MS}),
        groups=(
            group_of(name, [30 * MS] * 10, phases=phases),
            group_of(name, [30 * MS] * 3, kind="forward", phases=phases),
            group_of(name, [1_000], kind="marked", phases=phases),
        ),
        calls=(Strand(thread_id=1, thread_name=name, nodes=calls),),
        modules=(Module(name=name, kind=name, hidden=name), Module(name=f"{name}.{name}", kind=name)),
        backward_passes=10,
        loaders=(Loader(name=name, workers=2, iterators=1, start_ns=MS, batches=10, wait_ns=MS),),
        generations=(
            Generation(
                label=name,
                sequences=1,
                passes=10,
                tokens=10,
                total_ns=S,
                prompt_tokens=3,
                first_token_ns=MS,
                cached_passes=9,
                positions=(PositionBin(1, 10, 10, S),),
            ),
        ),
        compilation=Compilation(
            graphs=1, graph_breaks=2, recompilations=0, compile_ns=S, break_reasons=((name, 2),)
        ),
        operators=Operators(
            asked_steps=1,
            windows=(
                OperatorWindow(
                    kind="training",
                    label=name,
                    first_step=1,
                    steps=1,
                    total_ns=MS,
                    covered_ns=MS,
                    thread_covered_ns=MS,
                    events=1,
                    operators=(
                        Operator(
                            name=name,
                            calls=1,
                            total_ns=MS,
                            self_ns=MS,
                            shaped_calls=1,
                            shapes=(Shapes(name, 1),),
                        ),
                    ),
                    origins=(Origin("backward", name, name, name),),
                    uses=(Use(0, 0, 1, MS),),
                ),
            ),
        ),
    )
    return msgspec.structs.replace(
        run_of(profiled_ns=S, program=name),
        torch=torch,
        memory=Memory(peak_bytes=630 << 20, series=((0, 500 << 20), (S, 630 << 20))),
    )


def large_torch_run(*, blocks: int = 1_000, steps: int = 768) -> Run:
    """A model of three modules a block, and as many steps as a group keeps one by one."""
    nodes: list[ScopeNode] = []
    for phase in ("forward", "backward"):
        top = len(nodes)
        each = [MS * blocks] * 2
        nodes += [node(phase, None, each), node("model", top, each)]
        for block in range(blocks):
            at = len(nodes)
            nodes.append(node(f"model.blocks.{block}", top + 1, [MS] * 2))
            nodes += [
                node(f"model.blocks.{block}.{part}", at, [MS // 3 + block] * 2) for part in ("attn", "mlp")
            ]
    modules = [
        Module(name=name, kind="Block", parameters=9, parameter_bytes=36)
        for name in {node.name for node in nodes if node.name.startswith("model")}
    ]
    phases = ("data", "forward", "backward", "optimizer", "other")
    torch = TorchRun(
        torch_version="2.13.0",
        groups=(group_of("Adam", [2 * MS * blocks] * steps, phases=phases),),
        calls=(Strand(thread_id=1, thread_name="MainThread", nodes=tuple(nodes)),),
        modules=tuple(modules),
        backward_passes=2,
        timed_backward_passes=2,
        timed_backward_ns=2 * MS * blocks,
    )
    return msgspec.structs.replace(run_of(profiled_ns=2 * steps * MS * blocks), torch=torch)
