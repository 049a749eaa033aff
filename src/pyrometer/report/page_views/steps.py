"""Steps over time, and what a step is made of."""

from collections.abc import Iterator, Mapping, Sequence

from pyrometer.analysis.findings.steps import SLOW_RATIO
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.report.adding_up import byte_unit, decimals_for, time_unit, written_to_sum
from pyrometer.report.page_views.blocks import (
    Block,
    GridColumn,
    bullets,
    grid,
    heading,
    missing,
    name_of,
    plain,
    small_print,
    text,
    view,
)
from pyrometer.report.page_views.colours import phase_colours
from pyrometer.report.torch_steps import build_warmup_section
from pyrometer.report.torch_wording import (
    NO_STEPS,
    describe_group,
    describe_step_times,
    describe_which_steps,
    describe_window,
    left_out_steps,
    name_group,
    sentence,
)
from pyrometer.units import format_count, format_duration

NO_TORCH = (
    "The program did not use PyTorch while it was profiled: "
    "there are no steps, no phases, no modules and no operators."
)
_TALLEST = 2.5
"""What is longer than so many times the steady 95th percentile is cut off, until asked for."""


def ordered_groups(torch: TorchResults) -> list[GroupResult]:
    """The main group first, the others by time."""
    return sorted(torch.groups, key=lambda group: (group is not torch.main, -group.total_ns))


def colours_of(torch: TorchResults) -> dict[str, str]:
    """The colours of all phases of a run."""
    return phase_colours(phase.name for group in torch.groups for phase in group.phases)


def build_steps_view(observed: Observed) -> Block:
    """Each step that was kept, phase by phase."""
    torch = observed.torch
    title = "Steps over time"
    if torch is None:
        return view("steps", title, [missing(NO_TORCH)])
    if torch.main is None:
        return view("steps", title, [missing(NO_STEPS)])
    colours = colours_of(torch)
    groups = ordered_groups(torch)
    blocks: list[Block] = [
        {"type": "steps", "groups": [step_chart(torch, group, colours) for group in groups]}
    ]
    for number, group in enumerate(groups, start=1):
        blocks += [heading(sentence(name_group(group))), _step_table(group, number)]
    return view("steps", title, blocks)


def step_chart(torch: TorchResults, group: GroupResult, colours: Mapping[str, str]) -> Block:
    """The steps of a group as a chart: all that is drawn, and the same in a sentence."""
    steady = group.steady
    slow_from_ns = SLOW_RATIO * steady.p50_ns
    positions = range(len(group.series))
    slow = [
        position
        for position in positions
        if position >= group.warmup.steps and group.series[position].duration_ns > slow_from_ns
    ]
    longest_ns = max(step.duration_ns for step in group.series)
    return {
        "label": plain(sentence(name_group(group))),
        "phases": [{"name": name_of(phase.name), "colour": colours[phase.name]} for phase in group.phases],
        "steps": [[step.index, step.duration_ns, *step.phase_ns] for step in group.series],
        "warmup": min(group.warmup.steps, len(group.series)),
        "slow": slow,
        "slowText": f"longer than {SLOW_RATIO} × the median of {format_count(steady.steps, 'steady step')}",
        "medianNs": steady.p50_ns,
        "tallestNs": min(longest_ns, _TALLEST * steady.p95_ns) or longest_ns,
        "longestNs": longest_ns,
        "summary": plain(
            f"{describe_step_times(steady)}. {_describe_kept(group, left_out=left_out_steps(torch))}"
        ),
    }


def _describe_kept(group: GroupResult, *, left_out: int) -> str:
    steps = format_count(group.steps, "step")
    # How many of them would have been of this group is not known.
    closely = f"; {left_out:,} looked at closely {_are(left_out)} not" if left_out else ""
    if len(group.series) < group.steps:
        return f"Of {steps} the first, and a fair choice of the later ones, are drawn{closely}."
    return f"{steps} {_are(group.steps)} drawn{closely}." if left_out else f"All {steps} are drawn."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _step_table(group: GroupResult, number: int) -> Block:
    steps = group.series
    columns = [
        GridColumn(heading="duration", unit="duration", values=[step.duration_ns for step in steps]),
        *(
            GridColumn(
                heading=plain(phase.name),
                unit="duration",
                values=[step.phase_ns[index] for step in steps],
            )
            for index, phase in enumerate(group.phases)
        ),
        GridColumn(
            heading="started",
            unit="duration",
            spelled="since recording began",
            values=[step.started_ns for step in steps],
        ),
        GridColumn(heading="samples", unit="count", values=[step.samples for step in steps]),
        GridColumn(heading="tokens", unit="count", values=[step.tokens for step in steps]),
        GridColumn(heading="allocated", unit="bytes", values=[step.allocated_bytes for step in steps]),
        GridColumn(heading="workers", unit="duration", values=[step.worker_ns for step in steps]),
    ]
    warm = group.warmup.steps
    names = [f"{step.index:,}{' (warm-up)' if at < warm else ''}" for at, step in enumerate(steps)]
    return grid(f"steps-{number}", heading="step", names=names, columns=columns)


def build_phases_view(observed: Observed) -> Block:
    """What a steady step is made of, for each group; then the warm-up."""
    torch = observed.torch
    if torch is None:
        return view("phases", "Phases", [missing(NO_TORCH)])
    if torch.main is None:
        return view("phases", "Phases", [missing(NO_STEPS)])
    colours = colours_of(torch)
    blocks: list[Block] = []
    for number, group in enumerate(ordered_groups(torch), start=1):
        blocks += _group_blocks(torch, group, number, colours)
    blocks += small_print(describe_window(torch.window))
    warmup = build_warmup_section(torch)
    if warmup is not None:
        blocks.append(heading(warmup.title))
        blocks += [bullets(block.lines) for block in warmup.blocks if hasattr(block, "lines")]
    return view("phases", "Phases", blocks)


def _group_blocks(
    torch: TorchResults, group: GroupResult, number: int, colours: Mapping[str, str]
) -> Iterator[Block]:
    yield heading(sentence(describe_group(group)))
    yield phase_bar(group, colours)
    yield _phase_table(torch, group, number, colours)
    yield text(f"{describe_step_times(group.steady)}.", f"{sentence(describe_which_steps(group))}.")


def phase_bar(group: GroupResult, colours: Mapping[str, str]) -> Block:
    """A step as one bar; times and shares add up as they are written."""
    times, unit = _times(group)
    shares = written_to_sum([100 * phase.share for phase in group.phases], 100, decimals=1)
    return {
        "type": "shares",
        "unit": unit,
        "parts": [
            {
                "name": name_of(phase.name),
                "colour": colours[phase.name],
                "share": phase.share,
                "time": f"{time} {unit}",
                "percent": f"{share} %",
            }
            for phase, time, share in zip(group.phases, times, shares, strict=False)
        ],
        "total": {"name": "step", "time": f"{times[-1]} {unit}", "percent": f"{shares[-1]} %"},
    }


def _times(group: GroupResult) -> tuple[list[str], str]:
    size_ns, unit = time_unit(group.steady.mean_ns)
    total = group.steady.mean_ns / size_ns
    parts = [phase.mean_ns / size_ns for phase in group.phases]
    return written_to_sum(parts, total, decimals=decimals_for(total)), unit


def _phase_table(torch: TorchResults, group: GroupResult, number: int, colours: Mapping[str, str]) -> Block:
    phases = group.phases
    times, unit = _times(group)
    shares = written_to_sum([100 * phase.share for phase in phases], 100, decimals=1)
    sizes, size_unit = _sizes([phase.allocated_bytes_per_step for phase in phases])
    counts = _counts([phase.allocations_per_step for phase in phases])
    columns = [
        GridColumn(
            heading=f"{unit} a step", unit="duration", values=[phase.mean_ns for phase in phases], texts=times
        ),
        GridColumn(
            heading="%", unit="share", values=[phase.share for phase in phases], texts=shares, bar=True
        ),
        GridColumn(heading="in all", unit="duration", values=[phase.total_ns for phase in phases]),
        GridColumn(
            heading="GPU a step",
            unit="duration",
            values=[torch.device_ns_per_step(phase.name) for phase in phases],
        ),
        GridColumn(
            heading=f"{size_unit} a step",
            spelled=f"{size_unit} of tensors allocated a step",
            unit="bytes",
            values=[phase.allocated_bytes_per_step for phase in phases],
            texts=sizes,
        ),
        GridColumn(
            heading="allocations",
            spelled="allocations a step",
            unit="figure",
            values=[phase.allocations_per_step for phase in phases],
            texts=counts,
        ),
    ]
    total = [_last(column, group) for column in columns if column.is_known]
    return grid(
        f"phases-{number}",
        heading="phase",
        names=[phase.name for phase in phases],
        columns=columns,
        total=("step", total),
        colours=[colours[phase.name] for phase in phases],
    )


def _last(column: GridColumn, group: GroupResult) -> str:
    """The sum below a column, where it has one as printed."""
    if column.texts is not None and len(column.texts) > len(column.values):
        return column.texts[-1] or ""
    if column.heading == "in all":
        return format_duration(group.steady.total_ns)
    return ""


def _sizes(sizes: Sequence[float | None]) -> tuple[list[str] | None, str]:
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None, "bytes"
    size_bytes, unit = byte_unit(sum(known))
    values = [size / size_bytes for size in known]
    decimals = 0 if unit == "B" else decimals_for(sum(values))
    return written_to_sum(values, sum(values), decimals=decimals), unit


def _counts(counts: Sequence[float | None]) -> list[str] | None:
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    whole = all(float(count).is_integer() for count in known)
    return written_to_sum(known, sum(known), decimals=0 if whole else 1)
