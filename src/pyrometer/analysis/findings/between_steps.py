"""Findings about what a program does between the phases of its steps, and how it loads by its own code."""

from collections import Counter

from pyrometer.analysis.code_origin import CodePlaces, Origin
from pyrometer.analysis.findings.drafting import (
    NO_SAMPLES,
    Answer,
    Missing,
    See,
    at_most,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, FindingKind, GainOf, Place, function_place
from pyrometer.analysis.frame_tree import NOTHING, FrameKind, Parts
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.outside_phases import OutsideCall
from pyrometer.analysis.sample_results import SampleResults, find_phases
from pyrometer.record.run import Program
from pyrometer.record.samples import Function, StackSamples
from pyrometer.record.torch_run import OTHER
from pyrometer.units import format_duration, format_share

OUTSIDE_SHARE = 0.10
MOST_CALLS = 3
SAMPLED_BEYOND = 1.2
"""Samples may say a fifth more than the clock does: a function is held to have run in the loop up to that."""
STALL_SHARE = 0.02
IN_THE_LOOP = 0.5
"""Of what is saved and logged, so much must lie between steps: a last save at the end is no stall."""

_STALLING = {
    "/torch/utils/tensorboard/": "TensorBoard",
    "/tensorboard/": "TensorBoard",
    "/tensorboardX/": "TensorBoard",
    "/wandb/": "wandb",
    "/mlflow/": "mlflow",
    "/logging/__init__.py": "logging",
    "/logging/handlers.py": "logging",
    "/tqdm/": "tqdm",
    "/rich/": "rich",
}
"""Libraries that show and log, by a part of their path."""
_SAVING = {
    ("/torch/serialization.py", "save"): "torch.save",
    ("/safetensors/torch.py", "save_file"): "safetensors",
    ("/json/__init__.py", "dump"): "json",
    ("/json/__init__.py", "dumps"): "json",
}
"""Functions that save, of libraries that load as well."""


def between_ns(observed: Observed) -> int:
    """What steps have in no phase, those of the warm-up too, and as much for each one looked at closely."""
    torch = observed.run.torch
    groups = () if torch is None else torch.groups
    between = sum(group.phase_ns[group.phases.index(OTHER)] for group in groups if OTHER in group.phases)
    steps = sum(group.steps for group in groups)
    closely = 0 if torch is None or torch.operators is None else torch.operators.left_out_steps
    return round(between * (steps + closely) / steps) if steps else between


def find_outside_phases(observed: Observed) -> Answer:
    """Steps that spend much of their time in no phase: in the program's own code."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    other = main.phase(OTHER)
    if other is None or other.share < OUTSIDE_SHARE:
        return ()
    calls = tuple(_calls_in_the_loop(observed))
    evidence = [
        Evidence(
            text=f"{format_duration(other.mean_ns)} of a step of {format_duration(main.steady.mean_ns)} are "
            f"in no phase: {format_share(other.share)}",
            see=See.PHASES,
        ),
        *(_where(call) for call in calls[:MOST_CALLS]),
    ]
    first = calls[0].frame if calls else None
    return (
        finding(
            FindingKind.OUTSIDE_PHASES,
            "the program's own code takes much of a step, outside all phases",
            *evidence,
            place=Place(
                group=main.label,
                phase=OTHER,
                function=None if first is None else function_place(first.name, first.file, first.first_line),
            ),
            share=other.share,
            duration_ns=other.mean_ns,
            gain=at_most(other.share, "if it took no time"),
        ),
    )


def _calls_in_the_loop(observed: Observed) -> list[OutsideCall]:
    """The program's own functions called there, most time first.

    One with more time than steps have there is from before the loop, and libraries are set up there too.
    """
    calls = () if observed.samples is None else observed.samples.outside_phases
    most_ns = SAMPLED_BEYOND * between_ns(observed)
    return [call for call in calls if call.frame.kind is FrameKind.OWN and call.parts.wall_ns <= most_ns]


def _where(call: OutsideCall) -> Evidence:
    frame, parts = call.frame, call.parts
    name = f"{frame.name}, its own lines" if call.is_loop else frame.name
    waited = parts.waiting_ns / parts.wall_ns if parts.wall_ns else 0.0
    place = f"{frame.file.rpartition('/')[2]}:{call.line or frame.first_line}"
    return Evidence(
        text=f"{name} ({place}): {format_duration(parts.wall_ns)} in all, {format_share(waited)} of it "
        "waiting",
        see=See.OUTSIDE,
    )


def slowest_of_loading(observed: Observed) -> Evidence | None:
    """The program's own function in which steps wait for data most; None where none is known."""
    samples = observed.samples
    if samples is None:
        return None
    recorded = samples.recorded
    phases = find_phases(observed.run, recorded)
    innermost = _innermost_own(recorded, CodePlaces(observed.run.program))
    spent: Counter[int] = Counter()
    whole_ns = 0
    for seen in recorded.observations:
        if seen.call is None or phases[seen.call] != "data":
            continue
        whole_ns += seen.wall_ns
        own = innermost[seen.stack]
        if own is not None:
            spent[own] += seen.wall_ns
    if not spent:
        return None
    node, most_ns = spent.most_common(1)[0]
    function, line = recorded.functions[recorded.nodes[node].function], recorded.nodes[node].line
    place = f"{function.file.rpartition('/')[2]}:{line or function.first_line}"
    return Evidence(
        text=f"{format_share(most_ns / whole_ns)} of that is in {function.name} ({place})", see=See.FUNCTIONS
    )


def _innermost_own(recorded: StackSamples, places: CodePlaces) -> list[int | None]:
    """For each node the innermost one at or above it of a function of the program's own, but its loop."""
    own = [
        places.origin(function.file) is Origin.OWN and function.name != "<module>"
        for function in recorded.functions
    ]
    innermost: list[int | None] = []
    for index, node in enumerate(recorded.nodes):
        above = None if node.parent is None else innermost[node.parent]
        innermost.append(index if own[node.function] else above)
    return innermost


def find_stalls(observed: Observed) -> Answer:
    """Saving, logging and printing between steps."""
    samples = observed.samples
    if samples is None:
        return Missing(reason=NO_SAMPLES)
    groups = () if observed.torch is None else observed.torch.groups
    if not groups:
        return Missing(reason="the run has no steps of PyTorch that could be held up")
    run_ns = observed.run.profiled_ns
    spent_between_ns = between_ns(observed)
    found = []
    for name, (parts, caller) in _time_by_library(samples, observed.run.program).items():
        lost_ns = min(parts.wall_ns, spent_between_ns)
        if not run_ns or lost_ns < STALL_SHARE * run_ns or spent_between_ns < IN_THE_LOOP * parts.wall_ns:
            continue
        found.append(
            finding(
                FindingKind.STALLS,
                f"{name} holds up the loop",
                Evidence(
                    text=f"{format_duration(parts.wall_ns)} in {name}, "
                    f"{format_duration(parts.waiting_ns)} of it not running; steps spend "
                    f"{format_duration(spent_between_ns)} in no phase",
                    see=See.OUTSIDE,
                ),
                place=Place(phase=OTHER, function=caller),
                share=min(lost_ns / run_ns, 1.0),
                duration_ns=lost_ns,
                gain=at_most(lost_ns / run_ns, "if the loop never waited for it", of=GainOf.RUN),
            )
        )
    return found


def _time_by_library(samples: SampleResults, program: Program) -> dict[str, tuple[Parts, str | None]]:
    """What is spent below the outermost call into each library that saves or logs, and who calls it most.

    Only on the thread that makes the steps: what another thread saves holds nobody up.
    """
    recorded = samples.recorded
    outermost = _outermost_calls(recorded, CodePlaces(program))
    stepping = _stepping_thread(recorded)
    summed: dict[str, Parts] = {}
    callers: dict[str, Counter[str]] = {}
    for seen in recorded.observations:
        called = outermost[seen.stack]
        if seen.thread != stepping or seen.call is not None or called is None:
            continue
        name, node = called
        parts = Parts(seen.samples, seen.waiting, seen.native, seen.wall_ns, seen.cpu_ns, 0)
        summed[name] = summed.get(name, NOTHING) + parts
        parent = recorded.nodes[node].parent
        if parent is not None:
            function, line = recorded.functions[recorded.nodes[parent].function], recorded.nodes[parent].line
            place = function_place(function.name, function.file, line or function.first_line)
            callers.setdefault(name, Counter())[place] += seen.wall_ns
    return {
        name: (parts, callers[name].most_common(1)[0][0] if name in callers else None)
        for name, parts in summed.items()
    }


def _stepping_thread(recorded: StackSamples) -> int | None:
    """The thread that was met in phases most; None where none was."""
    met: Counter[int] = Counter()
    for seen in recorded.observations:
        if seen.call is not None:
            met[seen.thread] += seen.samples
    return met.most_common(1)[0][0] if met else None


def _outermost_calls(recorded: StackSamples, places: CodePlaces) -> list[tuple[str, int] | None]:
    """For each node the library that saves or logs in which it is, and the outermost node of that."""
    libraries = [_library(function, places) for function in recorded.functions]
    outermost: list[tuple[str, int] | None] = []
    for index, node in enumerate(recorded.nodes):
        above = None if node.parent is None else outermost[node.parent]
        name = libraries[node.function]
        outermost.append(above or (None if name is None else (name, index)))
    return outermost


def _library(function: Function, places: CodePlaces) -> str | None:
    # A program of one's own may well live in a folder named like a library.
    if places.origin(function.file) is Origin.OWN:
        return None
    for (part, name), library in _SAVING.items():
        if function.name == name and function.file.endswith(part):
            return library
    return next((library for part, library in _STALLING.items() if part in function.file), None)
