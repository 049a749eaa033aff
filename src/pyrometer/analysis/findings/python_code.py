"""Findings about the program's own code: hot Python, and what stops the loop to save or to log."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyrometer.analysis.code_origin import Origin
from pyrometer.analysis.findings.drafting import NO_SAMPLES, Answer, Missing, See, at_most, finding
from pyrometer.analysis.findings.model import Evidence, Finding, FindingKind, GainOf, Place
from pyrometer.analysis.frame_tree import IMPORT_FILES, NOTHING, Parts, parts_of
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.sampled_functions import SampledFunction
from pyrometer.record.samples import Function, StackNode
from pyrometer.record.torch_run import OTHER
from pyrometer.stats.shares import share_interval
from pyrometer.units import format_duration, format_share

PYTHON_SHARE = 0.10
SURE_SHARE = 0.05
"""The lower end of the interval of such a share must lie above this."""
MOST_HOT_FUNCTIONS = 3
FEWEST_SAMPLES = 50
SAMPLED_BEYOND = 1.2
"""Samples may say a fifth more than the clock does: a function is held to have run in the loop up to that."""
STALL_SHARE = 0.02
IN_THE_LOOP = 0.5
"""Of what is saved and logged, so much must lie between steps: a last save at the end is no stall."""

_STALLING = {
    "/torch/serialization.py": "torch.save",
    "/torch/utils/tensorboard/": "TensorBoard",
    "/tensorboard/": "TensorBoard",
    "/tensorboardX/": "TensorBoard",
    "/wandb/": "wandb",
    "/mlflow/": "mlflow",
    "/logging/__init__.py": "logging",
    "/logging/handlers.py": "logging",
    "/json/__init__.py": "json",
    "/json/encoder.py": "json",
    "/csv.py": "csv",
    "/safetensors/": "safetensors",
    "/tqdm/": "tqdm",
    "/rich/": "rich",
}
_WHOLE = {GainOf.STEP: "the steps", GainOf.RUN: "the CPU time"}
_NOT_SAVING = frozenset({"load", "_load", "_legacy_load", "loads"})


def find_hot_python(observed: Observed) -> Answer:
    """Functions that take much of the run in Python's own code."""
    samples = observed.samples
    if samples is None:
        return Missing(reason=NO_SAMPLES)
    if samples.effective_samples < FEWEST_SAMPLES:
        return Missing(reason=f"fewer than {FEWEST_SAMPLES} samples: too few to tell shares from")
    loop = _Loop.of_run(observed, samples)
    hot = [
        (share, function)
        for function in samples.functions
        if function.origin in (Origin.OWN, Origin.LIBRARY)
        and (share := loop.python_share(function)) >= PYTHON_SHARE
        and share_interval(share, loop.samples).low >= SURE_SHARE
    ]
    hot.sort(key=lambda pair: -pair[0])
    return tuple(_hot_python(function, share, loop, samples) for share, function in hot[:MOST_HOT_FUNCTIONS])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """What shares of Python code are of: the steps, where there are any, else all CPU time."""

    of: GainOf
    whole_ns: int
    samples: float
    """So many samples of equal weight fell on it."""
    code: dict[tuple[str, str], "_PythonCode"]
    """By file and name."""
    outside_ns: int
    """What steps have outside phases: a function with more than that there ran before the loop."""

    @classmethod
    def of_run(cls, observed: Observed, samples: SampleResults) -> "_Loop":
        """The loop of a run; without one, all of it."""
        groups = () if observed.torch is None else observed.torch.groups
        steps_ns = sum(group.total_ns for group in groups)
        parts = samples.overall.parts
        return cls(
            of=GainOf.STEP if steps_ns else GainOf.RUN,
            whole_ns=steps_ns or parts.cpu_ns,
            samples=samples.effective_samples * min((steps_ns or parts.wall_ns) / (parts.wall_ns or 1), 1.0),
            code=_python_code(samples),
            outside_ns=round(SAMPLED_BEYOND * _between_ns(observed)) if steps_ns else parts.cpu_ns,
        )

    def python_ns(self, function: SampledFunction) -> int:
        """Its Python code in the loop."""
        code = self.code.get((function.file, function.name), _PythonCode())
        return code.inside_ns + (code.outside_ns if code.outside_ns <= self.outside_ns else 0)

    def python_share(self, function: SampledFunction) -> float:
        """The same as a share."""
        return min(self.python_ns(function) / self.whole_ns, 1.0) if self.whole_ns else 0.0


@dataclass(slots=True)
class _PythonCode:
    """What a function ran of Python's own code, inside phases and outside them, but for imports."""

    inside_ns: int = 0
    outside_ns: int = 0


def _between_ns(observed: Observed) -> int:
    """What steps have in no phase, those of the warm-up too."""
    groups = () if observed.run.torch is None else observed.run.torch.groups
    return sum(group.phase_ns[group.phases.index(OTHER)] for group in groups if OTHER in group.phases)


def _python_code(samples: SampleResults) -> dict[tuple[str, str], _PythonCode]:
    recorded = samples.recorded
    importing: list[bool] = []
    for node in recorded.nodes:
        above = node.parent is not None and importing[node.parent]
        importing.append(above or recorded.functions[node.function].file in IMPORT_FILES)
    code: dict[tuple[str, str], _PythonCode] = {}
    for seen in recorded.observations:
        if importing[seen.stack]:
            continue
        function = recorded.functions[recorded.nodes[seen.stack].function]
        ran = code.setdefault((function.file, function.name), _PythonCode())
        if seen.call is None:
            ran.outside_ns += parts_of(seen).python_ns
        else:
            ran.inside_ns += parts_of(seen).python_ns
    return code


def _hot_python(function: SampledFunction, share: float, loop: _Loop, samples: SampleResults) -> Finding:
    interval = share_interval(share, loop.samples)
    lines = [line for line in samples.lines if line.file == function.file and line.function == function.name]
    hottest = max(lines, key=lambda line: line.own.python_ns, default=None)
    evidence = [
        Evidence(
            text=f"{function.name} runs Python's own code for {format_duration(loop.python_ns(function))}: "
            f"{format_share(share)} of {_WHOLE[loop.of]} ({format_share(interval.low)} to "
            f"{format_share(interval.high)})",
            see=See.FUNCTIONS,
        )
    ]
    if hottest is not None and hottest.line is not None:
        part = hottest.own.python_ns / function.own.python_ns if function.own.python_ns else 0.0
        evidence.append(
            Evidence(text=f"line {hottest.line:,} has {format_share(part)} of it", see=See.FUNCTIONS)
        )
    return finding(
        FindingKind.HOT_PYTHON,
        f"{function.name} is hot Python",
        *evidence,
        place=Place(function=f"{function.name} ({function.file}:{function.first_line})"),
        share=share,
        duration_ns=loop.python_ns(function),
        gain=at_most(share, "if its own lines took no time", of=loop.of),
    )


def find_stalls(observed: Observed) -> Answer:
    """Saving, logging and printing between steps."""
    samples = observed.samples
    if samples is None:
        return Missing(reason=NO_SAMPLES)
    groups = () if observed.torch is None else observed.torch.groups
    if not groups:
        return Missing(reason="the run has no steps of PyTorch that could be held up")
    run_ns = observed.run.profiled_ns
    between_ns = _between_ns(observed)
    found = []
    for name, (parts, caller) in _time_by_library(samples).items():
        lost_ns = min(parts.wall_ns, between_ns)
        if not run_ns or lost_ns < STALL_SHARE * run_ns or between_ns < IN_THE_LOOP * parts.wall_ns:
            continue
        found.append(
            finding(
                FindingKind.STALLS,
                f"{name} holds up the loop",
                Evidence(
                    text=f"{format_duration(parts.wall_ns)} in {name}, "
                    f"{format_duration(parts.waiting_ns)} of it not running; steps spend "
                    f"{format_duration(between_ns)} in no phase",
                    see=See.OUTSIDE,
                ),
                place=Place(phase=OTHER, function=caller),
                share=min(lost_ns / run_ns, 1.0),
                duration_ns=lost_ns,
                gain=at_most(lost_ns / run_ns, "if the loop never waited for it", of=GainOf.RUN),
            )
        )
    return found


def _time_by_library(samples: SampleResults) -> dict[str, tuple[Parts, str | None]]:
    """What is spent below the outermost call into each library that saves or logs, and who calls it most.

    Only on the thread with the most steps' samples: what another thread saves holds nobody up.
    """
    recorded = samples.recorded
    libraries = [_library(recorded.functions[node.function]) for node in recorded.nodes]
    summed: dict[str, Parts] = {}
    callers: dict[str, dict[str, int]] = {}
    for seen in recorded.observations:
        if recorded.threads[seen.thread] != "MainThread" or seen.call is not None:
            continue
        outermost = None
        for node in _upwards(recorded.nodes, seen.stack):
            if libraries[node] is not None:
                outermost = node
        if outermost is None:
            continue
        name = libraries[outermost] or ""
        parts = Parts(seen.samples, seen.waiting, seen.native, seen.wall_ns, seen.cpu_ns, 0)
        summed[name] = summed.get(name, NOTHING) + parts
        parent = recorded.nodes[outermost].parent
        if parent is not None:
            function = recorded.functions[recorded.nodes[parent].function]
            place = f"{function.name} ({function.file}:{recorded.nodes[parent].line or function.first_line})"
            counted = callers.setdefault(name, {})
            counted[place] = counted.get(place, 0) + seen.wall_ns
    return {
        name: (parts, max(callers[name], key=lambda place: callers[name][place]) if name in callers else None)
        for name, parts in summed.items()
    }


def _upwards(nodes: tuple[StackNode, ...], stack: int) -> Iterator[int]:
    node: int | None = stack
    while node is not None:
        yield node
        node = nodes[node].parent


def _library(function: Function) -> str | None:
    if function.name in _NOT_SAVING:
        return None
    return next((name for part, name in _STALLING.items() if part in function.file), None)
