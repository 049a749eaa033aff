"""Runs made by hand, whose every figure can be worked out from this file."""

from collections.abc import Sequence

from msgspec.structs import replace

from pyrometer.record.allocations import ProcessAllocations
from pyrometer.record.counters import CounterRecord
from pyrometer.record.run import GitState, Loss, Machine, Outcome, OwnCost, Program, Run, Software
from pyrometer.record.values import ScopeNode, Strand, StrandParent
from pyrometer.stats.buckets import bucket_of, merge_buckets
from tests.record.example_runs import make_allocations, make_counters

MS = 1_000_000
S = 1_000_000_000


def node(
    name: str,
    parent: int | None,
    durations_ns: Sequence[int],
    *,
    open_ns: int | None = None,
    suspended_ns: int = 0,
    wall_ns: int | None = None,
) -> ScopeNode:
    """A scope with one finished call for each duration, and one open for ``open_ns``."""
    return ScopeNode(
        name=name,
        parent=parent,
        calls=len(durations_ns),
        open_calls=0 if open_ns is None else 1,
        total_ns=sum(durations_ns) + (open_ns or 0),
        min_ns=min(durations_ns, default=None),
        max_ns=max(durations_ns, default=None),
        suspended_ns=suspended_ns,
        wall_ns=wall_ns,
        buckets=merge_buckets((bucket_of(duration_ns), 1) for duration_ns in durations_ns),
    )


def run_of(
    *strands: Strand,
    profiled_ns: int,
    program: str = "train.py",
    recorder: str = "native",
    outcome: Outcome | None = None,
    losses: tuple[Loss, ...] = (),
    startup_ns: int | None = 41 * MS,
    checkpoint_ns: int = 0,
    machine: Machine | None = None,
    git: GitState | None = None,
    counters: CounterRecord | None = None,
    allocations: ProcessAllocations | None = None,
) -> Run:
    """A run of these strands on a machine that never changes."""
    return Run(
        pyrometer_version="0.1.0",
        recorder=recorder,
        started_at="2026-01-02T03:04:05+00:00",
        profiled_ns=profiled_ns,
        program=Program(
            name=program, argv=(program, "--epochs", "3"), working_directory="/home/ada", git=git
        ),
        machine=machine
        or Machine(
            system="Linux 6.8.0, Debian GNU/Linux 12",
            architecture="x86_64",
            cpu_model="Example CPU 3.00GHz",
            physical_cores=4,
            logical_cores=8,
            usable_cores=2,
            memory_bytes=16 << 30,
        ),
        software=Software(
            python_version="3.11.9",
            python_implementation="CPython",
            garbage_collector="on (700, 10, 10)",
            packages={"attrs": "25.1.0", "numpy": "2.2.0", "torch": "2.6.0"},
        ),
        outcome=outcome or Outcome(status="finished"),
        strands=strands,
        counters=counters,
        allocations=allocations,
        losses=losses,
        cost=OwnCost(
            scope_ns=61.5,
            scope_entries=sum(node.calls + node.open_calls for strand in strands for node in strand.nodes),
            startup_ns=startup_ns,
            checkpoint_ns=checkpoint_ns,
        ),
    )


def main_strand(*nodes: ScopeNode) -> Strand:
    """The main thread."""
    return Strand(thread_id=1, thread_name="MainThread", nodes=nodes)


def simple_run() -> Run:
    """One thread: an epoch of 100 batches in 2 s, 0.1 s of it outside any scope."""
    slow_first = [40 * MS, *[8 * MS] * 99]
    return run_of(
        main_strand(
            node("train_epoch", None, [1_900 * MS]),
            node("load_batch", 0, [3 * MS] * 100),
            node("Forward_Pass", 0, slow_first),
            node("Attention", 2, [5 * MS] * 100),
            node("MLP", 2, [2 * MS] * 100),
            node("Loss_Computation", 0, [MS // 2] * 100),
            node("Backward_Pass", 0, [6 * MS] * 100),
            node("log_metrics", 0, [200_000] * 3),
            node("save_checkpoint", 0, [700_000]),
            node("count_tokens", 0, [450] * 900),
        ),
        profiled_ns=2 * S,
        git=GitState(commit="0123456789abcdef0123456789abcdef01234567", branch="main", dirty=True),
    )


def counted_run() -> Run:
    """The counters of tests/record/example_runs.py: 2 instructions a cycle, 9 % of data not in D1."""
    return run_of(main_strand(node("train", None, [MS])), profiled_ns=2 * MS, counters=make_counters())


def allocating_run() -> Run:
    """The allocations of tests/record/example_runs.py: 90 MB in a scope, 40 MB of it in one inside."""
    outer, inner = node("epoch", None, [MS] * 10), node("batch", 0, [MS // 2] * 10)
    memory = {"heap_allocations": 1_000, "freed_bytes": 80_000_000, "kept_bytes": 10_000_000}
    return run_of(
        main_strand(
            replace(outer, allocated_bytes=50_000_000, allocations=600, heap_bytes=40_000_000, **memory),
            replace(
                inner,
                allocated_bytes=40_000_000,
                allocations=500,
                heap_bytes=0,
                peak_bytes=5_000_000,
                **memory,
            ),
        ),
        profiled_ns=20 * MS,
        allocations=make_allocations(),
    )


def threaded_run() -> Run:
    """Two workers under one scope, a thread of its own, suspension, open calls and losses; killed."""
    workers = [
        Strand(
            thread_id=2 + index,
            thread_name=f"worker-{index}",
            parent=StrandParent(strand=0, node=1),
            nodes=(
                node("train_step", None, [400 * MS] * 2, wall_ns=900 * MS),
                node("Forward_Pass", 0, [250 * MS] * 2, wall_ns=650 * MS),
                node("Loss_Computation", 0, [50 * MS] * 2, wall_ns=200 * MS),
            ),
        )
        for index in range(2)
    ]
    heartbeat = Strand(
        thread_id=9, thread_name="heartbeat", nodes=(node("ping", None, [2 * MS] * 5, wall_ns=10 * MS),)
    )
    return run_of(
        main_strand(
            node("train_epoch", None, [], open_ns=1_500 * MS),
            node("Parallel_Training", 0, [S]),
            node("fetch", 0, [30 * MS, 20 * MS], open_ns=10 * MS, suspended_ns=350 * MS),
        ),
        *workers,
        heartbeat,
        profiled_ns=1_600 * MS,
        recorder="python",
        outcome=Outcome(status="signal", detail="SIGTERM"),
        losses=(
            Loss(collector="scopes", reason="more than 20,000 places in the call tree", count=12_345),
            Loss(collector="processes", reason="child processes used 1.50 s of CPU time, not seen", count=1),
        ),
        startup_ns=None,
        checkpoint_ns=12 * MS,
        machine=Machine(system="Linux 6.8.0", architecture="aarch64"),
    )


def layered_run() -> Run:
    """Two layers side by side on threads of a pool, each with its Attention; and threads folded together."""
    layers = [
        Strand(
            thread_id=2 + index,
            thread_name=f"pool_{index}",
            parent=StrandParent(strand=0, node=1),
            nodes=(
                node(f"Layer_{index}", None, [(40 + index) * MS] * 10, wall_ns=(400 + 10 * index) * MS),
                node("Attention", 0, [30 * MS] * 10, wall_ns=300 * MS),
                node("Softmax", 1, [12_000] * 10_000, wall_ns=120 * MS),
                node("log", 0, [2_000] * 10, wall_ns=20_000),
            ),
        )
        for index in range(2)
    ]
    loaders = Strand(
        thread_id=7,
        thread_name="loader",
        parent=StrandParent(strand=0, node=0),
        threads=3,
        nodes=(
            node("load", None, [180 * MS] * 3, wall_ns=230 * MS),
            node("decode", 0, [70 * MS] * 3, wall_ns=90 * MS),
        ),
    )
    return run_of(
        main_strand(node("step", None, [480 * MS]), node("forward", 0, [420 * MS]), node("log", 0, [MS])),
        *layers,
        loaders,
        profiled_ns=500 * MS,
    )


def empty_run() -> Run:
    """A program that entered no scope."""
    return run_of(profiled_ns=250 * MS)


HOSTILE_NAMES = (
    "[bold red]markup[/bold red]",
    "\x1b[2J\x1b]0;owned\x07",
    "<script>alert(1)</script>",
    "a|b`c`\n| x |",
    "main.<locals>.__init__",
    "```\n# heading",
    "\u202egnp.exe",
    "中文名字" * 12,
    "\x9b31m",
    "![x](http://example.invalid/x.png)",
    "&lt;b&gt; \\| *star* _under_ ~~gone~~",
    "encoder.layers.11.self_attention.output_projection.weight",
    "",
    " ",
)


def hostile_run() -> Run:
    """Names, a program and an ending that would like to be more than text."""
    return run_of(
        main_strand(*(node(name, None, [10 * MS]) for name in HOSTILE_NAMES)),
        profiled_ns=200 * MS,
        program="\x1b[31m<b>[red]evil|.py",
        outcome=Outcome(status="exception", detail="Bad\x1b[0mError\n# <script>"),
        losses=(Loss(collector="<i>scopes", reason="\x1b[2J[bold]| lost\n", count=1),),
    )


def wide_run() -> Run:
    """The widest figures there are, 40 levels deep, with more scopes than a report shows."""
    longest_ns = 2**62
    deep = [node("model.encoder.block", None, [longest_ns])]
    deep += [node(f"model.encoder.block_{depth}.sublayer", depth - 1, [longest_ns]) for depth in range(1, 40)]
    frequent = ScopeNode(
        name="element",
        parent=39,
        calls=987_654_321_987,
        total_ns=longest_ns - 999,
        min_ns=999,
        max_ns=123_456 * S,
        buckets=((bucket_of(123_456), 987_654_321_987),),
    )
    small = [node(f"small_{index:02}", None, [99_950 + index, 9_995_000]) for index in range(30)]
    return run_of(main_strand(*deep, frequent, *small), profiled_ns=longest_ns + 400 * MS)
