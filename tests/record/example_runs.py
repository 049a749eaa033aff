"""Runs for tests: written out by hand, or any valid run at all."""

from collections.abc import Sequence
from datetime import UTC

from hypothesis import strategies as st

from pyrometer.record.allocations import (
    AllocationSite,
    AllocationSites,
    PhaseAllocations,
    ProcessAllocations,
    SampledBytes,
)
from pyrometer.record.counters import (
    CacheCounts,
    CacheSimulation,
    CountedFunction,
    CounterRecord,
    HardwareCounter,
    HardwareCounters,
    SimulatedCache,
    ThreadCounters,
)
from pyrometer.record.garbage import GarbageCollections, GarbageGeneration, GarbagePause
from pyrometer.record.operators import Operator, Operators, OperatorWindow, Origin, Shapes, Use
from pyrometer.record.run import GitState, Loss, Machine, Memory, Outcome, OwnCost, Program, Run, Software
from pyrometer.record.samples import Function, StackNode, StackSamples
from pyrometer.record.torch_run import (
    Compilation,
    Generation,
    Gpu,
    Loader,
    Module,
    OptimizerFacts,
    PositionBin,
    Step,
    StepGroup,
    TorchRun,
)
from pyrometer.record.values import ScopeNode, Strand, StrandParent
from pyrometer.stats.buckets import bucket_of, merge_buckets
from tests.limits import make_limits
from tests.record.example_samples import any_samples

LARGEST = 2**63 - 1


def make_node(
    name: str,
    total_ns: int,
    *,
    parent: int | None = None,
    durations_ns: Sequence[int] | None = None,
    open_calls: int = 0,
    suspended_ns: int = 0,
    wall_ns: int | None = None,
    allocated: tuple[int, int] | None = None,
) -> ScopeNode:
    """A node with the given finished calls; without any given, one call that took all of its time.

    ``allocated`` are bytes and calls.
    """
    durations = [total_ns] if durations_ns is None else durations_ns
    return ScopeNode(
        name=name,
        parent=parent,
        calls=len(durations),
        open_calls=open_calls,
        total_ns=total_ns,
        min_ns=min(durations, default=None),
        max_ns=max(durations, default=None),
        suspended_ns=suspended_ns,
        wall_ns=wall_ns,
        allocated_bytes=None if allocated is None else allocated[0],
        allocations=None if allocated is None else allocated[1],
        buckets=merge_buckets((bucket_of(duration_ns), 1) for duration_ns in durations),
    )


def make_strand(
    *nodes: ScopeNode, parent: tuple[int, int] | None = None, thread_id: int = 1, threads: int = 1
) -> Strand:
    """A strand of these nodes, under node ``parent[1]`` of strand ``parent[0]``."""
    return Strand(
        thread_id=thread_id,
        thread_name=f"thread-{thread_id}",
        parent=None if parent is None else StrandParent(strand=parent[0], node=parent[1]),
        threads=threads,
        nodes=nodes,
    )


def make_run(
    *strands: Strand,
    profiled_ns: int = 1_000,
    losses: tuple[Loss, ...] = (),
    memory: Memory | None = None,
    torch: TorchRun | None = None,
    counters: CounterRecord | None = None,
    allocations: ProcessAllocations | None = None,
    samples: StackSamples | None = None,
    garbage: GarbageCollections | None = None,
) -> Run:
    """A finished run of these strands."""
    return Run(
        pyrometer_version="0.1.0",
        recorder="python",
        started_at="2025-03-01T12:30:00+01:00",
        profiled_ns=profiled_ns,
        program=Program(name="train.py", argv=("train.py", "--epochs", "2"), working_directory="/home/user"),
        machine=Machine(system="Linux 6.1", architecture="x86_64", logical_cores=2),
        software=Software(
            python_version="3.11.7", python_implementation="CPython", garbage_collector="on (700, 10, 10)"
        ),
        outcome=Outcome(status="finished"),
        strands=strands,
        memory=memory,
        torch=torch,
        counters=counters,
        allocations=allocations,
        samples=samples,
        garbage=garbage,
        losses=losses,
        cost=OwnCost(scope_ns=61.5, scope_entries=12),
    )


def make_step_group() -> StepGroup:
    """Three steps of 20, 30 and 40 ns, the first two kept as the first, the last as the sampled one."""
    return StepGroup(
        kind="training",
        label="Adam",
        phases=("data", "forward", "other"),
        steps=3,
        total_ns=90,
        phase_ns=(30, 54, 6),
        phase_bytes=(100, 200, 0),
        phase_allocations=(1, 4, 0),
        min_ns=20,
        max_ns=40,
        buckets=((20, 1), (30, 1), (40, 1)),
        batches=3,
        forward_calls=3,
        grad_forward_calls=2,
        backward_passes=3,
        samples=96,
        tokens=960,
        worker_ns=60,
        first=(
            Step(0, 0, 20, (5, 13, 2), 32, 320, 100, 20),
            Step(1, 20, 30, (10, 18, 2), 32, 320, 100, 20),
        ),
        sampled=(Step(2, 50, 40, (15, 23, 2), 32, 320, 100, 20),),
    )


def make_torch_run() -> TorchRun:
    """The PyTorch part of a run with something in every field."""
    return TorchRun(
        torch_version="2.13.0",
        intra_op_threads=2,
        gpu=Gpu(
            name="Example GPU",
            current_bytes=10,
            peak_bytes=30,
            reserved_bytes=40,
            utilisation_percent=75.5,
            phase_device_ns={"forward": 40},
            phase_peak_bytes={"forward": 30},
        ),
        groups=(make_step_group(),),
        warmup=1,
        window=(0, 3),
        calls=(
            make_strand(
                make_node("forward", 54, allocated=(200, 4)),
                make_node("model", 50, parent=0, durations_ns=[12, 17, 21], allocated=(200, 4)),
                make_node("model.head", 20, parent=1, allocated=(80, 1)),
            ),
        ),
        modules=(
            Module(
                name="model",
                kind="Net",
                parameters=30,
                parameter_bytes=120,
                dtype="mixed",
                measured_calls=1,
                input_dtype="float64",
                flops=60,
            ),
            Module(
                name="model.head",
                kind="Linear",
                parameters=10,
                parameter_bytes=40,
                dtype="float32",
                hidden="compiled",
            ),
        ),
        optimizers=(
            OptimizerFacts(
                name="Adam", kind="Adam", implementation="for-loop", tensors=4, parameters=30, steps=3
            ),
            OptimizerFacts(name="Lion (2)", kind="Lion", tensors=1, parameters=10, steps=3),
        ),
        backward_passes=3,
        timed_backward_passes=1,
        timed_backward_ns=15,
        loaders=(
            Loader(
                name="DataLoader(Images)",
                workers=2,
                iterators=1,
                start_ns=10,
                batches=3,
                wait_ns=30,
                timed_batches=3,
                work_ns=60,
                collate_ns=10,
                transform_ns=40,
                ready_batches=1,
                queued_batches=2,
                first_batch_ns=9,
            ),
        ),
        generations=(
            Generation(
                label="model",
                sequences=1,
                passes=5,
                tokens=10,
                total_ns=50,
                prompt_tokens=8,
                first_token_ns=12,
                cached_passes=4,
                allocated_bytes=500,
                positions=(PositionBin(4, 6, 6, 30, 300), PositionBin(7, 8, 4, 20, 200)),
            ),
        ),
        compilation=Compilation(
            graphs=2, graph_breaks=1, recompilations=1, compile_ns=25, break_reasons=(("print()", 1),)
        ),
        operators=make_operators(),
    )


def make_operators() -> Operators:
    """A window of two steps of 100 ns, with two operators that take 120 ns of them."""
    return Operators(
        asked_steps=5,
        left_out_steps=4,
        windows=(
            OperatorWindow(
                kind="training",
                label="Adam",
                first_step=3,
                steps=2,
                total_ns=200,
                covered_ns=120,
                thread_covered_ns=110,
                events=6,
                operators=(
                    Operator(
                        name="aten::addmm",
                        calls=4,
                        total_ns=100,
                        self_ns=90,
                        shaped_calls=2,
                        flops=800,
                        input_bytes=640,
                        shapes=(Shapes("[10] [2, 20] [20, 10]", 2),),
                        device_ns=70,
                    ),
                    Operator(name="aten::copy_", calls=2, total_ns=30, self_ns=30),
                ),
                origins=(
                    Origin("call", "forward", "model.head", "train"),
                    Origin("backward", "backward", "model.head", "train"),
                    Origin("accumulation", "backward", None, None),
                ),
                uses=(Use(0, 0, 3, 70), Use(0, 1, 1, 20), Use(1, 2, 2, 30)),
            ),
        ),
        reason=None,
    )


def make_allocations(name: str | None = None) -> ProcessAllocations:
    """100 MB of tensors and 60 MB of other heap in two phases, 20 MB kept; three lines allocated it."""
    program = "/home/ada/train.py" if name is None else name
    library = "/usr/lib/python3/site-packages/torch/nn.py" if name is None else name
    return ProcessAllocations(
        tensor_bytes=100_000_000,
        tensor_allocations=5_000,
        heap_bytes=60_000_000,
        heap_allocations=40_000,
        freed_bytes=141_000_000,
        frees=44_000,
        mapped_bytes=3_145_728,
        maps=3,
        mapped_shared_bytes=12_000_000,
        shared_maps=40,
        unmapped_bytes=11_000_000,
        unmaps=37,
        live_bytes=20_000_000,
        peak_bytes=36_000_000,
        python_bytes=7_000_000,
        python_allocations=100_000,
        phases=(
            PhaseAllocations(
                name="forward" if name is None else name,
                tensor_bytes=80_000_000,
                tensor_allocations=4_000,
                heap_bytes=10_000_000,
                heap_allocations=20_000,
                freed_bytes=30_000_000,
                kept_bytes=61_000_000,
                peak_bytes=36_000_000,
            ),
            PhaseAllocations(
                name="other",
                heap_bytes=50_000_000,
                heap_allocations=20_000,
                freed_bytes=111_000_000,
                kept_bytes=-61_000_000,
                peak_bytes=30_000_000,
            ),
        ),
        sites=AllocationSites(
            sampled_bytes=524_288,
            large_from_bytes=1_048_576,
            functions=(
                Function("train" if name is None else name, program, 10),
                Function("Linear.forward" if name is None else name, library, 100),
                Function("load" if name is None else name, program, 2),
            ),
            nodes=(StackNode(None, 0, 14), StackNode(0, 1, 125), StackNode(0, 2, None)),
            sites=(
                AllocationSite(1, 144, 0, 0),
                AllocationSite(0, 16, 0, 0),
                AllocationSite(2, 4, 64_000_000, 8),
            ),
            without_python=SampledBytes(9, 0, 0),
            missed=SampledBytes(0, 2_000_000, 1),
        ),
    )


def make_counters(name: str | None = None) -> CounterRecord:
    """Counters with something in every field: 2 instructions a cycle, one event that is not there.

    With ``name``, that is what everything is called.
    """
    counted = (
        HardwareCounter(name="instructions", count=4_000, counted_share=1.0),
        HardwareCounter(name="cycles", count=2_000, counted_share=0.5),
        HardwareCounter(name="cache misses", reason=name or "not given by this machine (ENOENT)"),
    )
    return CounterRecord(
        hardware=HardwareCounters(
            counters=counted,
            threads=(
                ThreadCounters(thread_name=name or "MainThread", counters=counted),
                ThreadCounters(thread_name="more threads", threads=7, counters=counted),
            ),
            with_forked_processes=True,
            advice=name or "Simulate it.",
        ),
        simulated=CacheSimulation(
            tool="callgrind-3.19.0",
            scope=name or "train",
            counts=CacheCounts(1_000, 400, 100, 10, 40, 5, 5, 20, 2),
            functions=(
                CountedFunction(
                    name or "exp", name or "/lib/libm.so", CacheCounts(600, 300, 50, 4, 30, 5, 2, 15, 2)
                ),
                CountedFunction("main", "/usr/bin/python", CacheCounts(300, 50, 20, 3, 5, 0, 1, 3, 0)),
            ),
            function_count=3,
            caches=(
                SimulatedCache(name="D1", size_bytes=32_768, ways=8, line_bytes=64, origin="machine"),
                SimulatedCache(name="LL", size_bytes=37_748_736, ways=18, line_bytes=64, origin="rounded"),
            ),
            slowdown=61.5,
            environment={name or "PYTHONHASHSEED": name or "0"},
            file="/home/user/run.callgrind.out.12",
        ),
    )


def make_garbage() -> GarbageCollections:
    """Four collections of 5 to 60 ns, one of which was not timed, in two intervals."""
    return GarbageCollections(
        generations=(
            GarbageGeneration(collections=3, collected=7, timed_collections=2, total_ns=15, max_ns=10),
            GarbageGeneration(),
            GarbageGeneration(
                collections=1, collected=1, uncollectable=2, timed_collections=1, total_ns=60, max_ns=60
            ),
        ),
        longest=(GarbagePause(100, 10, 0), GarbagePause(1_020, 60, 2)),
        interval_ns=1_000,
        interval_pause_ns=(15, 60),
    )


def make_memory() -> Memory:
    """Resident memory seen three times."""
    return Memory(peak_bytes=300, series=((0, 100), (500, 250), (900, 200)))


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_names = st.sampled_from(["step", "forward", "loss", "(other)", ""]) | _text
_times_ns = st.integers(0, 10**12)
_counts = st.integers(0, LARGEST)


@st.composite
def strands_under(draw: st.DrawFn, earlier: Sequence[Strand]) -> Strand:
    """A valid strand that may hang under any node of the earlier ones."""
    parent = None
    possible = [index for index, strand in enumerate(earlier) if strand.nodes]
    hangs_under_one = draw(st.booleans())
    if possible and hangs_under_one:
        strand = draw(st.sampled_from(possible))
        parent = StrandParent(strand=strand, node=draw(st.integers(0, len(earlier[strand].nodes) - 1)))
    size = draw(st.integers(0, 6))
    parents = [draw(st.none() | st.integers(0, index - 1)) if index else None for index in range(size)]
    totals_ns = [draw(_times_ns) for _ in range(size)]
    for index in reversed(range(size)):
        above = parents[index]
        if above is not None:
            totals_ns[above] += totals_ns[index]
    counted = draw(st.booleans())
    allocated = [(draw(_times_ns), draw(_times_ns)) for _ in range(size)]
    for index in reversed(range(size)):
        above = parents[index]
        if above is not None:
            allocated[above] = (
                allocated[above][0] + allocated[index][0],
                allocated[above][1] + allocated[index][1],
            )
    nodes = tuple(
        make_node(
            draw(_names),
            total_ns,
            parent=above,
            durations_ns=draw(st.lists(_times_ns, max_size=5)),
            open_calls=draw(st.integers(0, 3)),
            suspended_ns=draw(_times_ns),
            wall_ns=draw(st.none() | _times_ns),
            allocated=both if counted else None,
        )
        for above, total_ns, both in zip(parents, totals_ns, allocated, strict=True)
    )
    return Strand(
        thread_id=draw(_counts),
        thread_name=draw(_text),
        parent=parent,
        threads=draw(st.integers(1, 5)),
        nodes=nodes,
    )


@st.composite
def any_runs(draw: st.DrawFn) -> Run:
    """Any run that holds together."""
    strands: list[Strand] = []
    for _ in range(draw(st.integers(0, 4))):
        strands.append(draw(strands_under(strands)))
    torch = draw(st.none() | st.just(make_torch_run()))
    calls = () if torch is None else torch.calls
    commit = st.builds(GitState, commit=_text, branch=st.none() | _text, dirty=st.booleans())
    optional_count = st.none() | _counts
    return Run(
        pyrometer_version=draw(_text),
        recorder=draw(st.sampled_from(["native", "python"])),
        started_at=draw(st.datetimes(timezones=st.just(UTC))).isoformat(),
        profiled_ns=draw(_counts),
        program=Program(
            name=draw(_text),
            argv=tuple(draw(st.lists(_text, max_size=3))),
            working_directory=draw(_text),
            git=draw(st.none() | commit),
            rank=draw(st.none() | st.integers(min_value=0, max_value=100_000)),
        ),
        machine=Machine(
            system=draw(_text),
            architecture=draw(_text),
            cpu_model=draw(st.none() | _text),
            physical_cores=draw(optional_count),
            memory_bytes=draw(optional_count),
        ),
        software=Software(
            python_version=draw(_text),
            python_implementation=draw(_text),
            garbage_collector=draw(_text),
            packages=draw(st.dictionaries(_text, _text, max_size=3)),
        ),
        outcome=Outcome(status=draw(_text), detail=draw(st.none() | _text)),
        strands=tuple(strands),
        memory=draw(st.none() | st.just(make_memory())),
        torch=torch,
        samples=draw(st.none() | any_samples(strands, calls)),
        counters=draw(st.none() | st.just(make_counters())),
        allocations=draw(st.none() | st.just(make_allocations())),
        limits=draw(st.none() | st.just(make_limits())),
        garbage=draw(st.none() | st.just(make_garbage())),
        losses=tuple(
            draw(st.lists(st.builds(Loss, collector=_text, reason=_text, count=_counts), max_size=3))
        ),
        cost=OwnCost(
            scope_ns=draw(st.floats(0, 1e12)), scope_entries=draw(_counts), startup_ns=draw(optional_count)
        ),
    )
