"""Findings about the program's own code: hot Python."""

from dataclasses import dataclass

from pyrometer.analysis.code_origin import Origin
from pyrometer.analysis.findings.between_steps import SAMPLED_BEYOND, between_ns
from pyrometer.analysis.findings.drafting import NO_SAMPLES, Answer, Missing, See, at_most, finding
from pyrometer.analysis.findings.model import (
    Evidence,
    Finding,
    FindingKind,
    GainOf,
    Place,
    Remedy,
    function_place,
)
from pyrometer.analysis.frame_tree import IMPORT_FILES, parts_of
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.sampled_functions import SampledFunction
from pyrometer.stats.shares import share_interval
from pyrometer.units import format_duration, format_share

PYTHON_SHARE = 0.10
SURE_SHARE = 0.05
"""The lower end of the interval of such a share must lie above this."""
MOST_HOT_FUNCTIONS = 3
FEWEST_SAMPLES = 50
_WHOLE = {GainOf.STEP: "the steps", GainOf.RUN: "the run"}


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


_ONE_OPERATION = Remedy(
    text="one operation of torch or numpy on all of it",
    snippet="scaled = (values - values.mean()) / values.std()  # instead of a loop over them",
)
_ONE_CALL = Remedy(
    text="one call into a library in C for all of it, instead of a loop in Python over its parts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """What shares of Python code are of: the steps, where there are any, else the run."""

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
            whole_ns=steps_ns or observed.run.profiled_ns,
            samples=samples.effective_samples * min((steps_ns or parts.wall_ns) / (parts.wall_ns or 1), 1.0),
            code=_python_code(samples),
            outside_ns=round(SAMPLED_BEYOND * between_ns(observed)) if steps_ns else parts.cpu_ns,
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
        f"the function {function.name} is hot Python",
        *evidence,
        place=Place(function=function_place(function.name, function.file, function.first_line)),
        share=share,
        duration_ns=loop.python_ns(function),
        gain=at_most(share, "if its own lines took no time", of=loop.of),
        remedies=(_ONE_OPERATION if loop.of is GainOf.STEP else _ONE_CALL,),
    )
