"""The recorded steps on a line of time, as Chrome's trace format: for Perfetto and chrome://tracing.

A run keeps of each phase how long it took in a step, and not when: within a step the phases are laid end
to end, in the order of their group. Steps stand where they were. ``ts`` and ``dur`` are in microseconds
with the nanoseconds behind the point, and the same stands in ``args`` as whole nanoseconds.

The size is bounded by the record: at most 768 steps of each of 16 kinds, 1,024 readings of memory and 64
pauses of the garbage collector.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyrometer._version import __version__
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.record.run import Run
from pyrometer.record.torch_run import Step
from pyrometer.report.safe_text import escape_controls, shorten_middle, visible
from pyrometer.report.torch_wording import name_group
from pyrometer.stats.rates import per_second

END_TO_END = "laid end to end: a run keeps how long each took in a step, not when"

_PROCESS = 1
# Not the process's number, by which viewers know a main thread.
_FIRST_STEPS_TRACK = 101
# Beyond the tracks of all groups there can be.
_GARBAGE_TRACK = 1_000
_LONGEST_NAME = 80

Event = dict[str, Any]
"""One event, its ``ts`` and ``dur`` still in nanoseconds."""


def render_timeline(observed: Observed) -> str:
    """The text of a trace file."""
    return "".join(timeline_parts(observed))


def timeline_parts(observed: Observed) -> Iterator[str]:
    """The same piece by piece, an event a line."""
    head = {
        "displayTimeUnit": "ms",
        "otherData": {
            "program": _named(observed.run.program.name),
            "started_at": _named(observed.run.started_at),
            "made_by": f"pyrometer {__version__}",
            "phases": END_TO_END,
        },
    }
    yield f'{json.dumps(head)[:-1]}, "traceEvents": [\n'
    for number, event in enumerate(_events(observed)):
        separator = ",\n" if number else ""
        yield f"{separator}{_line(event)}"
    yield "\n]}\n"


def _line(event: Event) -> str:
    """An event as text. Its times are written digit by digit: a float would round those of a long run."""
    times = "".join(
        f',"{key}":{event[key] // 1_000}.{event[key] % 1_000:03}' for key in ("ts", "dur") if key in event
    )
    rest = {key: value for key, value in event.items() if key not in {"ts", "dur"}}
    return f"{json.dumps(rest, separators=(',', ':'), allow_nan=False)[:-1]}{times}}}"


def _events(observed: Observed) -> Iterator[Event]:
    run, torch = observed.run, observed.torch
    groups = () if torch is None else torch.groups
    yield _metadata("process_name", 0, _named(run.program.name))
    for track, group in enumerate(groups, start=_FIRST_STEPS_TRACK):
        yield _metadata("thread_name", track, f"steps: {_named(name_group(group))}")
        yield {**_metadata("thread_sort_index", track, ""), "args": {"sort_index": track}}
    for track, group in enumerate(groups, start=_FIRST_STEPS_TRACK):
        yield from _steps(group, track)
        yield from _throughput(group)
    yield from _memory(observed)
    yield from _garbage(run)


def _steps(group: GroupResult, track: int) -> Iterator[Event]:
    names = [_named(phase.name) for phase in group.phases]
    for position, step in enumerate(group.series):
        is_warmup = position < group.warmup.steps
        mark = " (warm-up)" if is_warmup else ""
        yield _complete(
            name=f"step {step.index}{mark}",
            category="step,warm-up" if is_warmup else "step",
            track=track,
            started_ns=step.started_ns,
            duration_ns=step.duration_ns,
            args={**_step_facts(step), "warm_up": is_warmup, "phases": END_TO_END},
        )
        started_ns = step.started_ns
        for name, duration_ns in zip(names, step.phase_ns, strict=True):
            if duration_ns:
                yield _complete(
                    name=name,
                    category="phase",
                    track=track,
                    started_ns=started_ns,
                    duration_ns=duration_ns,
                    args={"share": duration_ns / step.duration_ns},
                )
            started_ns += duration_ns


def _step_facts(step: Step) -> Event:
    """What is known of it; what is not is left out."""
    facts = {
        "step": step.index,
        "samples": step.samples,
        "tokens": step.tokens,
        "allocated_bytes": step.allocated_bytes,
        "worker_ns": step.worker_ns,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _throughput(group: GroupResult) -> Iterator[Event]:
    name = f"throughput: {_named(group.label)}"
    for step in group.series:
        rate = per_second(step.samples, step.duration_ns)
        if rate is not None:
            yield _counter(name, step.started_ns, {"samples/s": rate})


def _memory(observed: Observed) -> Iterator[Event]:
    for at_ns, size_bytes in () if observed.memory is None else observed.memory.series:
        yield _counter("resident memory", at_ns, {"bytes": size_bytes})


def _garbage(run: Run) -> Iterator[Event]:
    """The longest pauses, which are the ones that are kept."""
    pauses = () if run.garbage is None else run.garbage.longest
    if pauses:
        yield _metadata("thread_name", _GARBAGE_TRACK, "garbage collection, the longest pauses")
    for pause in pauses:
        yield _complete(
            name=f"collection of generation {pause.generation}",
            category="garbage",
            track=_GARBAGE_TRACK,
            started_ns=pause.started_ns,
            duration_ns=pause.duration_ns,
            args={"generation": pause.generation},
        )


def _complete(
    *, name: str, category: str, track: int, started_ns: int, duration_ns: int, args: Event
) -> Event:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": _PROCESS,
        "tid": track,
        "ts": started_ns,
        "dur": duration_ns,
        "args": {"started_ns": started_ns, "duration_ns": duration_ns, **args},
    }


def _counter(name: str, at_ns: int, values: Event) -> Event:
    return {"ph": "C", "name": name, "pid": _PROCESS, "tid": 0, "ts": at_ns, "args": values}


def _metadata(kind: str, track: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _named(name: str) -> str:
    return escape_controls(shorten_middle(visible(name), _LONGEST_NAME))
