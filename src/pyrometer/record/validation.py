"""What must hold in a run beyond the types of its fields.

Everything after the reader may rely on it: no analysis has to ask whether a parent exists
or whether the columns add up.
"""

import calendar
import re
from collections.abc import Iterator

from pyrometer.record.allocations_validation import allocations_problems
from pyrometer.record.counters_validation import counters_problems
from pyrometer.record.garbage_validation import garbage_problems
from pyrometer.record.limits_validation import limits_problems
from pyrometer.record.run import Memory, Run
from pyrometer.record.samples_validation import samples_problems
from pyrometer.record.torch_validation import torch_problems
from pyrometer.record.tree_validation import Problem, strand_problems

_TIME_WITH_OFFSET = (
    r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3}|\.[0-9]{6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def first_problem(run: Run) -> Problem | None:
    """The first thing in a run that contradicts itself, or None."""
    return next(_problems(run), None)


def _problems(run: Run) -> Iterator[Problem]:
    if not _is_time_with_offset(run.started_at):
        yield Problem(
            place="$.started_at",
            text=f"{run.started_at[:40]!r} is not an ISO 8601 time with its offset to UTC",
        )
    yield from strand_problems(run.strands, "$.strands")
    if run.memory is not None:
        yield from _memory_problems(run.memory, "$.memory")
    if run.allocations is not None:
        yield from allocations_problems(run.allocations, "$.allocations")
    if run.torch is not None:
        yield from torch_problems(run.torch, "$.torch")
    if run.samples is not None:
        calls = () if run.torch is None else run.torch.calls
        yield from samples_problems(run.samples, "$.samples", scopes=run.strands, calls=calls)
    if run.limits is not None:
        yield from limits_problems(run.limits, "$.limits")
    if run.counters is not None:
        yield from counters_problems(run.counters, "$.counters")
    if run.garbage is not None:
        yield from garbage_problems(run.garbage, "$.garbage")


def _memory_problems(memory: Memory, place: str) -> Iterator[Problem]:
    times_ns = [time_ns for time_ns, _ in memory.series]
    if times_ns != sorted(times_ns):
        yield Problem(place=f"{place}.series", text="the samples are not in order of time")


def _is_time_with_offset(text: str) -> bool:
    found = re.fullmatch(_TIME_WITH_OFFSET, text)
    if found is None:
        return False
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    return year > 0 and day <= calendar.monthrange(year, month)[1]
