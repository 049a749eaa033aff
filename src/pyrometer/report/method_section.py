"""How the figures of a report were made: what was measured, how often, and how to measure it again."""

from collections.abc import Iterator

from pyrometer.analysis.baseline import key_of, recording_options
from pyrometer.analysis.steps import LEAST_WARMUP_STEPS, WARMUP_AGREEMENT, WARMUP_WINDOW_STEPS
from pyrometer.record.run import Run
from pyrometer.report.blocks import Bullets, Code, Lines, Pairs, Section
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.document import Document
from pyrometer.units import format_bytes, format_count, format_duration

METHOD_TITLE = "Method"
RAW_TITLE = "Raw data"
COMMANDS_TITLE = "Commands to reproduce"
CONFIGURATION_TITLE = "Configuration"

_RUN_FILE = "run.json"


def build_method_section(document: Document) -> Section:
    """What was measured and how, in sentences."""
    return Section(title=METHOD_TITLE, blocks=(Bullets(lines=tuple(_method(document))),))


def build_command_section(run: Run) -> Section:
    """What to type to make the run, and the reports, again."""
    lines = (
        run_command(run),
        f"pyrometer report {_RUN_FILE} --format markdown --level deep -o deep-profile-report.md",
        f"pyrometer report {_RUN_FILE} --format json -o report.json",
        *([f"pyrometer report {_RUN_FILE} --flamegraph flamegraph.svg"] if run.samples is not None else []),
    )
    where = Lines(lines=(f"In {run.program.working_directory}:",))
    return Section(title=COMMANDS_TITLE, blocks=(where, Code(lines=lines, language="console")))


def build_raw_section(run: Run) -> Section:
    """What the run file holds one by one, and how to have it as tables."""
    return Section(
        title=RAW_TITLE,
        blocks=(
            Pairs(rows=tuple(_raw(run))),
            Code(lines=(f"pyrometer report {_RUN_FILE} --format csv -o tables",), language="console"),
        ),
    )


def build_configuration_section(document: Document) -> Section:
    """The machine, the software, and what the profiler was asked to do."""
    return Section(
        title=CONFIGURATION_TITLE, blocks=(Pairs(rows=(*document.facts, *run_options(document.run))),)
    )


def run_command(run: Run) -> str:
    """What to type to record the same again, as far as the run says how it was made."""
    options = ["-o", _RUN_FILE, *recording_options(run)]
    return f"pyrometer run {' '.join(options)} {key_of(run.program)}"


def run_options(run: Run) -> Iterator[tuple[str, str]]:
    """What was recorded, and how closely."""
    samples, torch, allocations = run.samples, run.torch, run.allocations
    yield "stack samples", "none" if samples is None else f"{samples.samples_per_s:g} a second"
    counted = "not counted"
    if allocations is not None:
        counted = "counted" if allocations.python_bytes is None else "counted, Python's small objects too"
    yield "allocations", counted
    if torch is not None:
        operators = torch.operators
        asked = "not asked for" if operators is None else f"in {format_count(operators.asked_steps, 'step')}"
        yield "operators", asked
        yield "warm-up", "found by itself" if torch.warmup is None else format_count(torch.warmup, "step")
        window = torch.window
        last = "" if window is None or window[1] is None else f"{window[1]}"
        yield "steps recorded", "all" if window is None else f"{window[0]}:{last}"
    counters = run.counters
    counted_by = [] if counters is None or counters.hardware is None else ["hardware"]
    counted_by += [] if counters is None or counters.simulated is None else ["simulated"]
    yield "counters", ", ".join(counted_by) or "none"
    limits = run.limits
    yield (
        "limits of the machine",
        "not known" if limits is None else f"measured {limits.measured_at.replace('T', ' ', 1)}",
    )


def _raw(run: Run) -> Iterator[tuple[str, str]]:
    torch, samples, allocations = run.torch, run.samples, run.allocations
    scopes = sum(len(strand.nodes) for strand in run.strands)
    yield "scopes", f"{format_count(scopes, 'place')} on {format_count(len(run.strands), 'thread')}"
    if torch is not None:
        kept = sum(len(group.first) + len(group.sampled) for group in torch.groups)
        steps = sum(group.steps for group in torch.groups)
        yield "steps", f"{kept:,} of {steps:,} one by one, all in sums and histograms"
        yield "modules", f"{len(torch.modules):,}"
        windows = () if torch.operators is None else torch.operators.windows
        if windows:
            events = sum(window.events for window in windows)
            yield "operators", f"{format_count(events, 'event')} in {format_count(len(windows), 'window')}"
    if samples is not None:
        stacks = format_count(len(samples.observations), "place")
        yield "stack samples", f"{format_count(samples.samples, 'sample')} at {stacks}"
    if allocations is not None and allocations.sites is not None:
        yield "lines that allocate", format_count(len(allocations.sites.sites), "stack")
    if run.memory is not None:
        yield "memory", format_count(len(run.memory.series), "reading")


def _method(document: Document) -> Iterator[str]:
    run, torch, samples = document.run, document.torch, document.samples
    yield (
        f"{format_duration(run.profiled_ns)} were profiled by the {run.recorder} recorder of pyrometer "
        f"{run.pyrometer_version}; a scope costs {run.cost.scope_ns:.0f} ns, measured in this process."
    )
    if torch is not None and torch.main is not None:
        main = torch.main
        yield (
            f"Steps are timed one by one: {format_count(main.steady.steps, 'step')} after "
            f"{format_count(main.warmup.steps, 'step')} of warm-up. Phases exclude each other and "
            "make up the step exactly, in nanoseconds."
        )
        yield (
            f"Warm-up: at least {LEAST_WARMUP_STEPS} steps, and until the medians of two windows of "
            f"{WARMUP_WINDOW_STEPS} steps differ by no more than {100 * WARMUP_AGREEMENT:.0f} %, unless told."
        )
        passes = format_count(torch.modules.backward_passes, "backward pass", "backward passes")
        timed = f"{torch.modules.timed_backward_passes:,} of {passes}"
        yield f"Modules' backward parts are timed in {timed}, chosen at random."
    if samples is not None:
        yield (
            f"Stacks are looked at {samples.samples_per_s:g} times a second at irregular distances: "
            f"{format_count(samples.samples, 'sample')}, {samples.dropped:,} looks without a stack. "
            "Shares have a 95 % interval (Wilson), printed beside them as ±."
        )
    allocations = document.allocations
    if allocations is not None:
        size = write_known(allocations.sampled_bytes, format_bytes)
        lines = "" if size == UNKNOWN_CELL else f"; lines by a sample each {size} at exponential distances"
        yield f"Allocations are all counted{lines}."
    yield (
        "A gain is an upper bound by Amdahl's law: what would be saved if the part at fault took no time at "
        "all. It is not a forecast until an experiment has measured it."
    )
