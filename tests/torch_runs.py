"""Runs of PyTorch programs made by hand, whose every figure can be worked out from this file."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Shapes, Use
from pyrometer.record.run import Loss, Memory, Run
from pyrometer.record.torch_run import (
    FORWARD_WITHOUT_GRADIENTS,
    MAX_FIRST_STEPS,
    MAX_SAMPLED_STEPS,
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
from tests.report.sample_runs import HOSTILE_NAMES, main_strand, run_of
from tests.report.sample_runs import node as scope

US = 1_000
MS = 1_000_000
S = 1_000_000_000
KB = 1_000
MB = 1_000_000

# A steady step of 10 ms.
TRAINING_STEP_NS = {
    "data": MS,
    "copies": 400 * US,
    "forward": 3 * MS,
    "loss": 400 * US,
    "backward": 3_500 * US,
    "clipping": 100 * US,
    "optimizer": 1_300 * US,
    "clearing": 200 * US,
    "other": 100 * US,
}


def group_of(
    kind: str,
    label: str,
    steps: Sequence[Mapping[str, int]],
    *,
    samples: int | None = None,
    tokens: int | None = None,
    phase_bytes: Mapping[str, int] | None = None,
    worker_ns: int | None = None,
    batches: int = 1,
    forward_calls: int = 1,
    grad_forward_calls: int = 1,
    backward_passes: int = 1,
    began_ns: int = 0,
) -> StepGroup:
    """A group of these steps (ns by phase, the same phases in each); all other figures are per step.

    Of the steps that are not among the first, the first ones are kept.
    """
    phases = tuple(steps[0])
    kept = []
    started_ns = began_ns
    allocated = None if phase_bytes is None else sum(phase_bytes.values())
    for index, step in enumerate(steps):
        duration_ns = sum(step.values())
        kept.append(
            Step(index, started_ns, duration_ns, tuple(step.values()), samples, tokens, allocated, worker_ns)
        )
        started_ns += duration_ns
    durations_ns = [step.duration_ns for step in kept]
    count = len(steps)
    return StepGroup(
        kind=kind,
        label=label,
        phases=phases,
        steps=count,
        total_ns=sum(durations_ns),
        phase_ns=tuple(sum(step[phase] for step in steps) for phase in phases),
        phase_bytes=None
        if phase_bytes is None
        else tuple(count * phase_bytes.get(phase, 0) for phase in phases),
        phase_allocations=None
        if phase_bytes is None
        else tuple(10 * count * (phase in phase_bytes) for phase in phases),
        min_ns=min(durations_ns),
        max_ns=max(durations_ns),
        buckets=merge_buckets((bucket_of(duration_ns), 1) for duration_ns in durations_ns),
        batches=batches * count,
        forward_calls=forward_calls * count,
        grad_forward_calls=grad_forward_calls * count,
        backward_passes=backward_passes * count,
        samples=None if samples is None else samples * count,
        tokens=None if tokens is None else tokens * count,
        worker_ns=None if worker_ns is None else worker_ns * count,
        first=tuple(kept[:MAX_FIRST_STEPS]),
        sampled=tuple(kept[MAX_FIRST_STEPS:][:MAX_SAMPLED_STEPS]),
    )


def warming_up(step: Mapping[str, int], count: int) -> list[Mapping[str, int]]:
    """So many steps, of which the first takes 20 ms more in forward and 10 ms more in the last phase
    but one, the second 2 ms and the third 1 ms more in forward."""
    last = list(step)[-2]
    first = {**step, "forward": step["forward"] + 20 * MS}
    first[last] += 10 * MS
    second = {**step, "forward": step["forward"] + 2 * MS}
    third = {**step, "forward": step["forward"] + MS}
    return [first, second, third, *[step] * (count - 3)]


def call(
    name: str, parent: int | None, calls: int, total_ns: int, allocated_bytes: int | None = None
) -> ScopeNode:
    """A node of the calls, all of which took as long, and an allocation for each kB."""
    each_ns = total_ns // calls
    return ScopeNode(
        name=name,
        parent=parent,
        calls=calls,
        total_ns=total_ns,
        min_ns=each_ns,
        max_ns=each_ns,
        allocated_bytes=allocated_bytes,
        allocations=None if allocated_bytes is None else allocated_bytes // KB,
        buckets=((bucket_of(each_ns), calls),),
    )


def torch_run(torch: TorchRun, *, memory: Memory | None = None, losses: tuple[Loss, ...] = ()) -> Run:
    """The run of a program without scopes, as long as its steps took, and 0.5 s more."""
    steps_ns = sum(group.total_ns for group in torch.groups)
    run = run_of(profiled_ns=steps_ns + 500 * MS, losses=losses)
    cost = msgspec.structs.replace(run.cost, hook_ns=3 * MS)
    return msgspec.structs.replace(run, torch=torch, memory=memory, cost=cost)


def net_modules() -> tuple[Module, ...]:
    """784 → 256 → 10, its ReLU without a formula, each called with 32 samples in 4 measured calls."""
    return (
        Module(
            name="model",
            kind="Net",
            parameters=203_530,
            parameter_bytes=814_120,
            measured_calls=4,
            output_bytes=4 * 32 * 10 * 4,
        ),
        Module(
            name="model.fc1",
            kind="Linear",
            parameters=200_960,
            parameter_bytes=803_840,
            measured_calls=4,
            output_bytes=4 * 32 * 256 * 4,
            flops=4 * 2 * 32 * 784 * 256,
        ),
        Module(name="model.act", kind="ReLU", measured_calls=4, output_bytes=4 * 32 * 256 * 4, flops=0),
        Module(
            name="model.fc2",
            kind="Linear",
            parameters=2_570,
            parameter_bytes=10_280,
            measured_calls=4,
            output_bytes=4 * 32 * 10 * 4,
            flops=4 * 2 * 32 * 256 * 10,
        ),
        Module(name="criterion", kind="CrossEntropyLoss", measured_calls=4, output_bytes=4 * 4),
    )


def net_calls() -> Strand:
    """100 training steps: 323 ms forward, 40 ms loss, and 350 ms backward, of which 70 ms are timed."""
    return main_strand(
        call("forward", None, 100, 323 * MS, 100 * 400 * KB),
        call("model", 0, 100, 323 * MS, 100 * 400 * KB),
        call("model.fc1", 1, 100, 200 * MS, 100 * 300 * KB),
        call("model.act", 1, 100, 20 * MS, 100 * 50 * KB),
        call("model.fc2", 1, 100, 100 * MS, 100 * 40 * KB),
        call("loss", None, 100, 40 * MS, 100 * 4 * KB),
        call("criterion", 5, 100, 40 * MS, 100 * 4 * KB),
        call("backward", None, 100, 350 * MS, 100 * 600 * KB),
        call("criterion", 7, 20, 4 * MS, 20 * 10 * KB),
        call("model", 7, 20, 64 * MS, 20 * 500 * KB),
        call("model.fc2", 9, 20, 24 * MS, 20 * 100 * KB),
        call("model.act", 9, 20, 2 * MS, 20 * 50 * KB),
        call("model.fc1", 9, 20, 36 * MS, 20 * 350 * KB),
        call("optimizer", None, 100, 140 * MS, 0),
    )


def training_group(*, steps: int = 100, began_ns: int = 0) -> StepGroup:
    """Steps of 10 ms with 32 samples, after 40, 12 and 11 ms of warm-up."""
    return group_of(
        "training",
        "Adam",
        warming_up(TRAINING_STEP_NS, steps),
        samples=32,
        phase_bytes={"forward": 400 * KB, "loss": 4 * KB, "backward": 600 * KB},
        began_ns=began_ns,
    )


def growing_memory() -> Memory:
    """400 MB at first, then 500 MB and 1 MB more every 100 ms, up to 509 MB; 520 MB at most."""
    return Memory(
        peak_bytes=520 * MB,
        series=((0, 400 * MB), *((index * 100 * MS, (499 + index) * MB) for index in range(1, 11))),
    )


def in_process_loader(batches: int, *, wait_ns: int) -> Loader:
    """A loader without workers, which works all the time it is waited for."""
    return Loader(
        name="DataLoader(TensorDataset)",
        workers=0,
        iterators=1,
        start_ns=50 * US,
        batches=batches,
        wait_ns=wait_ns,
        timed_batches=batches,
        work_ns=wait_ns,
        collate_ns=wait_ns * 2 // 5,
    )


def training_run() -> Run:
    """100 training steps of a small net on the CPU; its loader takes exactly a tenth of a step."""
    return torch_run(
        TorchRun(
            torch_version="2.13.0+cpu",
            intra_op_threads=2,
            groups=(training_group(),),
            calls=(net_calls(),),
            modules=net_modules(),
            backward_passes=100,
            timed_backward_passes=20,
            timed_backward_ns=70 * MS,
            loaders=(in_process_loader(100, wait_ns=100 * MS),),
        ),
        memory=growing_memory(),
    )


def accumulation_run() -> Run:
    """25 optimizer steps, each over 4 batches of 8."""
    step = {"data": 4 * MS, "forward": 16 * MS, "backward": 16 * MS, "optimizer": 3 * MS, "other": MS}
    group = group_of(
        "training",
        "AdamW",
        warming_up(step, 25),
        samples=32,
        batches=4,
        forward_calls=4,
        grad_forward_calls=4,
        backward_passes=4,
    )
    return torch_run(TorchRun(torch_version="2.13.0", groups=(group,), backward_passes=100))


def closure_run() -> Run:
    """20 steps of L-BFGS, whose closure runs forward and backward 5 times on each batch."""
    step = {"data": MS, "forward": 10 * MS, "backward": 15 * MS, "optimizer": 3 * MS, "other": MS}
    group = group_of(
        "training",
        "LBFGS",
        warming_up(step, 20),
        samples=64,
        forward_calls=5,
        grad_forward_calls=5,
        backward_passes=5,
    )
    return torch_run(TorchRun(torch_version="2.13.0", groups=(group,), backward_passes=100))


def gan_run() -> Run:
    """40 steps of the discriminator alone (10 ms), and 10 in which both optimizers step (30 ms)."""
    alone = {"data": MS, "forward": 3 * MS, "backward": 4 * MS, "optimizer": MS, "other": MS}
    both = {"data": MS, "forward": 10 * MS, "backward": 14 * MS, "optimizer": 3 * MS, "other": 2 * MS}
    groups = (
        group_of("training", "RMSprop", [alone] * 40, samples=64, forward_calls=2, grad_forward_calls=2),
        group_of(
            "training",
            "RMSprop + RMSprop (2)",
            [both] * 10,
            samples=64,
            forward_calls=4,
            grad_forward_calls=4,
            backward_passes=3,
        ),
    )
    calls = main_strand(
        call("forward", None, 120, 220 * MS),
        call("generator", 0, 60, 90 * MS),
        call("discriminator", 0, 60, 130 * MS),
        call("backward", None, 70, 300 * MS),
    )
    modules = (
        Module(name="generator", kind="Generator", parameters=1_000, parameter_bytes=4_000),
        Module(name="discriminator", kind="Discriminator", parameters=500, parameter_bytes=2_000),
    )
    return torch_run(
        TorchRun(torch_version="2.13.0", groups=groups, calls=(calls,), modules=modules, backward_passes=70)
    )


def evaluation_run() -> Run:
    """100 training steps of 10 ms, then 20 of evaluation of 4 ms, each with a loader of its own."""
    training = training_run()
    assert training.torch is not None
    evaluation = group_of(
        "forward",
        "model",
        [{"data": MS, "copies": 200 * US, "forward": 2_500 * US, "loss": 200 * US, "other": 100 * US}] * 20,
        samples=64,
        grad_forward_calls=0,
        backward_passes=0,
        began_ns=1_033 * MS,
    )
    calls = main_strand(
        *net_calls().nodes,
        call(FORWARD_WITHOUT_GRADIENTS, None, 20, 50 * MS, 20 * 400 * KB),
        call("model", 14, 20, 50 * MS, 20 * 400 * KB),
        call("model.fc1", 15, 20, 30 * MS, 20 * 300 * KB),
        call("model.fc2", 15, 20, 15 * MS, 20 * 40 * KB),
    )
    torch = msgspec.structs.replace(
        training.torch,
        groups=(*training.torch.groups, evaluation),
        calls=(calls,),
        loaders=(*training.torch.loaders, in_process_loader(20, wait_ns=20 * MS)),
    )
    return torch_run(torch, memory=training.memory)


def inference_run() -> Run:
    """60 forward passes of 5 ms on 16 sequences of 128 tokens, which record gradients for nothing."""
    group = group_of(
        "forward",
        "encoder",
        [{"forward": 4_500 * US, "other": 500 * US}] * 60,
        samples=16,
        tokens=16 * 128,
        phase_bytes={"forward": 8 * MB},
        batches=0,
        backward_passes=0,
    )
    calls = main_strand(
        call("forward", None, 60, 270 * MS, 60 * 8 * MB),
        call("encoder", 0, 60, 270 * MS, 60 * 8 * MB),
        call("encoder.layers.0", 1, 60, 120 * MS, 60 * 4 * MB),
        call("encoder.norm", 2, 60, 30 * MS, 60 * MB),
        call("encoder.layers.1", 1, 60, 120 * MS, 60 * 3 * MB),
        call("encoder.norm", 4, 60, 30 * MS, 60 * MB),
    )
    modules = (
        Module(name="encoder", kind="Encoder", parameters=2_000, parameter_bytes=8_000),
        Module(name="encoder.layers.0", kind="Block", parameters=1_000, parameter_bytes=4_000),
        Module(name="encoder.layers.1", kind="Block", parameters=1_000, parameter_bytes=4_000),
        Module(name="encoder.norm", kind="LayerNorm", parameters=64, parameter_bytes=256),
    )
    return torch_run(
        TorchRun(torch_version="2.13.0", groups=(group,), calls=(calls,), modules=modules),
        memory=Memory(peak_bytes=300 * MB, series=((0, 290 * MB), (200 * MS, 290 * MB))),
    )


def generation_run(*, cached: bool) -> Run:
    """4 sequences of 40 tokens after a prompt of 16, whose first token takes 8 ms.

    With a cache each later token takes 2 ms and 1 MB; without one 100 µs and 50 kB more for each
    token before it: 2.1 ms for the second, 5.9 ms for the last.
    """
    more = [0 if cached else index for index in range(40)]
    token_ns = [8 * MS, *(2 * MS + index * 100 * US for index in more[1:])]
    token_bytes = [10 * MB, *(MB + index * 50 * KB for index in more[1:])]
    steps = [{"forward": each_ns - 100 * US, "other": 100 * US} for each_ns in token_ns] * 4
    group = group_of(
        "generation",
        "gpt",
        steps,
        samples=1,
        tokens=1,
        batches=0,
        grad_forward_calls=0,
        backward_passes=0,
    )
    generation = Generation(
        label="gpt",
        sequences=4,
        passes=160,
        tokens=160,
        total_ns=4 * sum(token_ns),
        prompt_tokens=4 * 16,
        first_token_ns=4 * 8 * MS,
        cached_passes=156 if cached else 0,
        allocated_bytes=4 * sum(token_bytes),
        positions=tuple(
            PositionBin(
                low,
                high,
                4 * (high - low + 1),
                4 * sum(token_ns[low - 16 : high - 15]),
                4 * sum(token_bytes[low - 16 : high - 15]),
            )
            for low, high in ((16, 19), (20, 23), (24, 27), (28, 31), (32, 39), (40, 47), (48, 55))
        ),
    )
    return torch_run(
        TorchRun(torch_version="2.13.0", groups=(group,), generations=(generation,)),
        memory=Memory(peak_bytes=200 * MB),
    )


def workers_run(*, slow: bool) -> Run:
    """100 steps with batches from 2 workers, 40 ms of work each (slow) or 4 ms (not).

    Slow: a step waits 12 ms of 20, few batches are ready. Not: it waits 0.1 ms of 8.1, and all
    batches but the first two lie ready, three at a time.
    """
    wait_ns = 12 * MS if slow else 100 * US
    work_ns = 40 * MS if slow else 4 * MS
    step = {"data": wait_ns, "forward": 3 * MS, "backward": 4 * MS, "optimizer": 900 * US, "other": 100 * US}
    group = group_of("training", "SGD", [step] * 100, samples=32, worker_ns=work_ns)
    loader = Loader(
        name="DataLoader(ImageFolder)",
        workers=2,
        iterators=2,
        start_ns=2 * 30 * MS,
        batches=100,
        wait_ns=100 * wait_ns,
        timed_batches=100,
        work_ns=100 * work_ns,
        collate_ns=100 * work_ns // 8,
        transform_ns=100 * work_ns // 2,
        ready_batches=10 if slow else 98,
        queued_batches=10 if slow else 300,
        first_batch_ns=2 * 90 * MS,
    )
    return torch_run(
        TorchRun(torch_version="2.13.0", groups=(group,), loaders=(loader,), backward_passes=100),
        memory=Memory(peak_bytes=800 * MB, series=((0, 700 * MB), (S, 750 * MB))),
    )


def no_steps_run() -> Run:
    """A program that imported torch and made tensors, but called no module."""
    return torch_run(TorchRun(torch_version="2.13.0", intra_op_threads=2), memory=Memory(peak_bytes=150 * MB))


def compiled_run() -> Run:
    """30 training steps of a compiled model with a scripted head; compiling took most of the first."""
    step = {"forward": 4 * MS, "backward": 5 * MS, "optimizer": MS, "other": MS}
    group = group_of("training", "SGD", warming_up(step, 30), samples=16, batches=0)
    calls = main_strand(
        call("forward", None, 30, 143 * MS),
        call("model", 0, 30, 140 * MS),
        call("model.body", 1, 30, 90 * MS),
        call("model.head", 1, 30, 45 * MS),
        call("backward", None, 30, 150 * MS),
    )
    modules = (
        Module(name="model", kind="Classifier", parameters=5_000, parameter_bytes=20_000),
        Module(
            name="model.body",
            kind="OptimizedModule",
            parameters=4_000,
            parameter_bytes=16_000,
            hidden="compiled",
        ),
        Module(
            name="model.head",
            kind="RecursiveScriptModule",
            parameters=1_000,
            parameter_bytes=4_000,
            hidden="scripted",
        ),
    )
    compilation = Compilation(
        graphs=2,
        graph_breaks=1,
        recompilations=1,
        compile_ns=18 * MS,
        break_reasons=(("call to print()", 1),),
    )
    return torch_run(
        TorchRun(
            torch_version="2.13.0",
            groups=(group,),
            calls=(calls,),
            modules=modules,
            backward_passes=30,
            compilation=compilation,
        )
    )


def gpu_run() -> Run:
    """The 100 training steps of ``training_run``, with a GPU at work."""
    run = training_run()
    assert run.torch is not None
    gpu = Gpu(
        name="Example GPU 80GB",
        current_bytes=2 << 30,
        peak_bytes=3 << 30,
        reserved_bytes=4 << 30,
        utilisation_percent=73.5,
        phase_device_ns={"forward": 250 * MS, "backward": 330 * MS},
        phase_peak_bytes={"forward": 2 << 30, "backward": 3 << 30},
    )
    return msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, gpu=gpu))


def marked_run() -> Run:
    """20 steps marked by the program, with a phase of its own, steps 10 to 29 of a chosen window."""
    step = {"forward": 4 * MS, "backward": 4 * MS, "augment": MS, "other": MS}
    group = group_of("marked", "my step", [step] * 20, samples=8, batches=0)
    return torch_run(
        TorchRun(torch_version="2.13.0", groups=(group,), warmup=5, window=(10, 30), backward_passes=20)
    )


def long_run() -> Run:
    """1,000 training steps, more than are kept: the first of 40 ms is the longest."""
    return torch_run(TorchRun(torch_version="2.13.0", groups=(training_group(steps=1_000),)))


def hostile_torch_run() -> Run:
    """Names of modules, phases, groups and loaders that would like to be more than text."""
    phases = dict.fromkeys(HOSTILE_NAMES[:6], MS)
    group = group_of("marked", HOSTILE_NAMES[0], [{"forward": MS, **phases, "other": MS}] * 20)
    calls = main_strand(
        call("forward", None, 20, 20 * MS), *(call(name, 0, 20, MS) for name in HOSTILE_NAMES[6:])
    )
    modules = tuple(
        Module(name=name, kind=HOSTILE_NAMES[1], hidden=HOSTILE_NAMES[2]) for name in HOSTILE_NAMES[6:]
    )
    return torch_run(
        TorchRun(
            torch_version=HOSTILE_NAMES[0],
            groups=(group,),
            calls=(calls,),
            modules=modules,
            backward_passes=20,
            loaders=(msgspec.structs.replace(in_process_loader(20, wait_ns=MS), name=HOSTILE_NAMES[3]),),
            gpu=Gpu(name=HOSTILE_NAMES[1]),
            compilation=Compilation(
                graphs=1,
                graph_breaks=1,
                recompilations=0,
                compile_ns=MS,
                break_reasons=((HOSTILE_NAMES[3], 1),),
            ),
        )
    )


ENGINE = "autograd::engine::evaluate_function: "


def net_operators() -> Operators:
    """Two steps of 12 ms, 8 ms of the 24 in operators: products for 7, the rest small."""
    origins = (
        Origin("call", "forward", "model.layers.0", None),
        Origin("call", "forward", "model.layers.2", "train"),
        Origin("backward", "backward", "model.layers.2", "train"),
        Origin("accumulation", "backward", None, None),
        Origin("call", "optimizer", None, None),
        Origin("call", None, None, None),
    )
    shapes = (Shapes("[256] [32, 64] [64, 256]", 1), Shapes("[10] [32, 256] [256, 10]", 1))
    operators = (
        Operator(
            name="aten::addmm",
            calls=4,
            total_ns=4_100 * US,
            self_ns=4_000 * US,
            shaped_calls=2,
            flops=1_212_416,
            input_bytes=150_568,
            shapes=shapes,
        ),
        Operator(
            name="aten::mm", calls=6, total_ns=3_000 * US, self_ns=3_000 * US, shaped_calls=3, flops=98_304
        ),
        Operator(name="aten::add_", calls=8, total_ns=800 * US, self_ns=800 * US),
        Operator(name=f"{ENGINE}AddmmBackward0", calls=4, total_ns=3_150 * US, self_ns=150 * US),
        Operator(
            name="aten::item", calls=1, total_ns=50 * US, self_ns=50 * US, shaped_calls=1, input_bytes=4
        ),
    )
    uses = (
        Use(0, 0, 2, 2_500 * US),
        Use(0, 1, 2, 1_500 * US),
        Use(1, 2, 6, 3_000 * US),
        Use(2, 4, 6, 700 * US),
        Use(2, 3, 2, 100 * US),
        Use(3, 2, 4, 150 * US),
        Use(4, 5, 1, 50 * US),
    )
    window = OperatorWindow(
        kind="training",
        label="Adam",
        first_step=12,
        steps=2,
        total_ns=24 * MS,
        covered_ns=8 * MS,
        thread_covered_ns=8 * MS,
        events=23,
        operators=operators,
        origins=origins,
        uses=uses,
    )
    return Operators(asked_steps=5, left_out_steps=5, windows=(window,))


def operators_run(operators: Operators) -> Run:
    """``training_run``, asked for operators."""
    run = training_run()
    assert run.torch is not None
    return msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, operators=operators))


def no_operators() -> Operators:
    """Asked for, and not to be had."""
    return Operators(
        asked_steps=5, reason="the program uses torch.profiler itself, which there can be only one of"
    )


def with_scopes(run: Run) -> Run:
    """The same run of a program that also marks a scope of its own."""
    return msgspec.structs.replace(
        run, strands=(main_strand(scope("epoch", None, [run.profiled_ns - 100 * MS])),)
    )


TORCH_RUNS: dict[str, Callable[[], Run]] = {
    "training": training_run,
    "accumulation": accumulation_run,
    "closure": closure_run,
    "gan": gan_run,
    "evaluation": evaluation_run,
    "inference": inference_run,
    "generation-cached": lambda: generation_run(cached=True),
    "generation-uncached": lambda: generation_run(cached=False),
    "workers-slow": lambda: workers_run(slow=True),
    "workers-idle": lambda: workers_run(slow=False),
    "no-steps": no_steps_run,
    "compiled": compiled_run,
    "gpu": gpu_run,
    "marked": marked_run,
    "long": long_run,
    "hostile-torch": hostile_torch_run,
    "operators": lambda: operators_run(net_operators()),
    "operators-none": lambda: operators_run(no_operators()),
    "training-with-scopes": lambda: with_scopes(training_run()),
}
