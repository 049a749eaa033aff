"""The sentences of a report. What is unknown is called unknown, never 0."""

from collections.abc import Iterable, Iterator

from pyrometer.analysis.call_tree import CallTree
from pyrometer.analysis.results import ThreadResult
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.record.run import GitState, Loss, Machine, Outcome, OwnCost, Run, Software
from pyrometer.report.safe_text import visible
from pyrometer.units import format_bytes, format_count, format_duration, format_share

UNKNOWN = "unknown"

HOW_TO_READ = (
    "Highest share first: self says where the time goes, total what it leads to.",
    "A max far above p95 is an outlier or the start-up: look at the first call.",
    "Many calls with a small avg want batching: the same work in fewer calls.",
)

NO_SCOPES = "No scope was entered while the profiler was on. Mark the parts that matter, and run again:"
HOW_TO_MARK = (
    'with pyrometer.scope("load_batch"):   # a stretch of code',
    "@pyrometer.profiled                   # a function, each call of it",
)

_FIRST_PACKAGES = ("torch", "numpy", "jax", "tensorflow", "transformers", "lightning", "pandas", "scipy")
_PACKAGES_NAMED = 6


def describe_ending(outcome: Outcome) -> str:
    """How the program ended, as the end of a sentence that begins with its name."""
    # Not "finished": the exit code is not known inside the program.
    if outcome.status == "finished":
        return "ended"
    if outcome.status == "running":
        return "still running"
    if outcome.status in ("exception", "signal"):
        return f"ended by {outcome.detail or f'an {UNKNOWN} {outcome.status}'}"
    return outcome.status if outcome.detail is None else f"{outcome.status} ({outcome.detail})"


def describe_facts(run: Run) -> tuple[tuple[str, str], ...]:
    """The machine and the software, as (label, value) pairs."""
    machine, software, program = run.machine, run.software, run.program
    return (
        ("program", " ".join(program.argv) or program.name),
        ("folder", program.working_directory),
        ("source", _describe_git(program.git)),
        ("started", run.started_at.replace("T", " ", 1)),
        ("system", f"{machine.system}, {machine.architecture}"),
        ("processor", f"{machine.cpu_model or f'model {UNKNOWN}'}, {_describe_cores(machine)}"),
        ("memory", UNKNOWN if machine.memory_bytes is None else format_bytes(machine.memory_bytes)),
        ("Python", f"{software.python_version} ({software.python_implementation})"),
        ("garbage collector", software.garbage_collector),
        *_describe_torch(run),
        ("packages", _describe_packages(software)),
    )


def describe_cost(run: Run) -> tuple[str, ...]:
    """What the profiler itself cost this run, and which recorder measured it."""
    cost = run.cost
    share = f", {format_share(cost.scopes_ns / run.profiled_ns)} of the run" if run.profiled_ns else ""
    entered = f"{format_count(cost.scope_entries, 'scope')} entered × {_precise_ns(cost.scope_ns)} each"
    scopes = f"{entered} = {format_duration(cost.scopes_ns)}{share}."
    return (
        *([scopes] if cost.scope_entries or cost.hook_ns is None else []),
        *_describe_hooks(run),
        *_describe_sampler(run),
        _describe_once(cost),
        _describe_recorder(run),
    )


def describe_loss(loss: Loss) -> str:
    """A loss in a sentence."""
    times = "" if loss.count == 1 else f" ({loss.count:,} times)"
    return f"{loss.collector}: {loss.reason.rstrip('.')}{times}."


def describe_marks(
    scopes: tuple[ScopeSummary, ...], apart: tuple[ScopeSummary, ...], tree: CallTree
) -> tuple[str, ...]:
    """What the marks in the tables and the tree mean; nothing about a mark that does not occur."""
    notes = []
    walls_ns = [node.wall_ns for _, node in tree.walk() if node.parallel]
    if walls_ns:
        unmeasured = ", or of thread time where that was not measured" if None in walls_ns else ""
        notes.append(f"∥ on threads: total and self are summed over threads, % is of wall time{unmeasured}.")
    if any(scope.wall_is_upper_bound for scope in (*scopes, *apart)):
        notes.append("≤ is at most: times at several places, on threads, that may have overlapped.")
    if any(scope.recursive for scope in scopes):
        notes.append(
            "Entered inside itself, a scope's total is of outermost calls; calls, avg to max are of all."
        )
    if any(None in (scope.average_ns, scope.min_ns) for scope in scopes):
        notes.append("– is unknown: no call has finished, or, for avg, one is still open.")
    return tuple(notes)


def describe_thread(thread: ThreadResult) -> str:
    """A thread by its name, how many more are folded into it, and the scope that started it."""
    text = visible(thread.thread_name)
    if thread.threads > 1:
        text += f" and {thread.threads - 1:,} more"
    return text if thread.parent is None else f"{text}, started in {visible(thread.parent.name)}"


def describe_threads(threads: Iterable[ThreadResult]) -> tuple[str, ...]:
    """What the figures of threads mean, where that is not plain."""
    if all(thread.threads == 1 for thread in threads):
        return ()
    return ("Threads folded together (… and N more) have their figures summed, % too.",)


def describe_apart(scopes: tuple[ScopeSummary, ...]) -> tuple[str, ...]:
    """What the figures shown apart from the table mean."""
    notes = []
    if any(scope.open_calls for scope in scopes):
        notes.append(
            "Open calls had not ended when the record was taken: their time so far is in total and "
            "self, not in avg to max."
        )
    if any(scope.suspended_ns for scope in scopes):
        notes.append("Suspended time (awaiting, or between two yields) is in no other figure.")
    return tuple(notes)


def _describe_git(git: GitState | None) -> str:
    if git is None:
        return f"{UNKNOWN} (not in a git repository)"
    branch = "" if git.branch is None else f" on {git.branch}"
    return f"commit {git.commit[:12]}{branch}, {'with uncommitted changes' if git.dirty else 'clean'}"


def _describe_cores(machine: Machine) -> str:
    counts = (
        ("physical", machine.physical_cores),
        ("logical", machine.logical_cores),
        ("usable", machine.usable_cores),
    )
    if all(cores is None for _, cores in counts):
        return f"cores {UNKNOWN}"
    return "cores: " + ", ".join(f"{UNKNOWN if cores is None else cores} {kind}" for kind, cores in counts)


def _describe_torch(run: Run) -> Iterator[tuple[str, str]]:
    if run.torch is not None:
        threads = run.torch.intra_op_threads
        threads_text = f"threads {UNKNOWN}" if threads is None else format_count(threads, "thread")
        gpu = "no GPU" if run.torch.gpu is None else run.torch.gpu.name
        yield "PyTorch", f"{run.torch.torch_version}, {threads_text}, {gpu}"


def _describe_packages(software: Software) -> str:
    if not software.packages:
        return "none that state a version"
    ordered = [name for name in _FIRST_PACKAGES if name in software.packages]
    ordered += [name for name in software.packages if name not in _FIRST_PACKAGES]
    named = ", ".join(f"{name} {software.packages[name]}" for name in ordered[:_PACKAGES_NAMED])
    left_out = len(ordered) - _PACKAGES_NAMED
    return f"{named} and {left_out} more" if left_out > 0 else named


def _describe_hooks(run: Run) -> Iterator[str]:
    hook_ns = run.cost.hook_ns
    if hook_ns is not None:
        share = f", {format_share(hook_ns / run.profiled_ns)} of the run" if run.profiled_ns else ""
        yield f"Around the program's PyTorch calls, timed there: {format_duration(hook_ns)}{share}."
    if run.cost.window_ns:
        waited = format_duration(run.cost.window_ns)
        yield f"Opening and closing windows of operators: {waited} that the program waited, in no figure."


def _describe_sampler(run: Run) -> Iterator[str]:
    if run.samples is not None:
        cpu_ns = run.samples.sampler_cpu_ns
        share = f", {format_share(cpu_ns / run.profiled_ns)} of the run" if run.profiled_ns else ""
        text = f"Looking at stacks, on a thread of its own: {format_duration(cpu_ns)} CPU time{share}"
        looks = format_count(run.samples.dropped, "look")
        yield f"{text}; {looks} without a stack." if run.samples.dropped else f"{text}."


def _describe_once(cost: OwnCost) -> str:
    startup = UNKNOWN if cost.startup_ns is None else format_duration(cost.startup_ns)
    checkpoints = format_duration(cost.checkpoint_ns) if cost.checkpoint_ns else "none written"
    return (
        f"Start-up before the program's first line: {startup}. "
        f"Checkpoints, on a thread of their own: {checkpoints}."
    )


def _describe_recorder(run: Run) -> str:
    version = f"pyrometer {run.pyrometer_version}"
    if run.recorder == "native":
        return f"Measured by the native recorder of {version}."
    if run.recorder == "python":
        return (
            f"Measured by the Python recorder of {version}: the C core is not available here, so each "
            "scope costs more. Install a C compiler (gcc or clang) and reinstall pyrometer."
        )
    return f"Measured by the recorder {run.recorder!r} of {version}."


def _precise_ns(duration_ns: float) -> str:
    # A scope costs tens of nanoseconds: rounded to whole ones, the product would not come out.
    return f"{duration_ns:.1f} ns" if duration_ns < 100 else format_duration(duration_ns)
