"""A comparison in words: figures with their signs, verdicts, and the reasons for "cannot tell"."""

from collections.abc import Iterator

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    Metric,
    MetricChange,
    Missing,
    Part,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
    SideFacts,
    Verdict,
)
from pyrometer.analysis.comparison.parts import is_called_otherwise
from pyrometer.analysis.comparison.verdicts import LEAST_RUNS
from pyrometer.analysis.identity import RULES, Difference, Level, Weight
from pyrometer.record.torch_run import FORWARD_WITHOUT_GRADIENTS, PHASES, RECOMPUTED_FORWARD
from pyrometer.record.trials import MAX_KEPT_NODES
from pyrometer.report.cells import UNKNOWN_CELL, Style
from pyrometer.report.safe_text import shorten_middle, visible
from pyrometer.units import compact_count, format_bytes, format_count, format_duration, three_digits

_LONGEST_NAME = 60
_MOST_STEPS_OF_A_PATH = 4

METRIC_NAMES = {
    Metric.STEP: "step (median)",
    Metric.ALL_STEPS: "steps of all kinds",
    Metric.SAMPLES_PER_SECOND: "samples/s",
    Metric.TOKENS_PER_SECOND: "tokens/s",
    Metric.DATA_SHARE: "waiting for data",
    Metric.PROFILED: "profiled time",
    Metric.FIRST_TOKEN: "first token",
    Metric.GENERATED_PER_SECOND: "generated tokens/s",
    Metric.FORWARD_CALLS: "forward calls",
    Metric.BACKWARD_PASSES: "backward passes",
    Metric.BATCHES: "batches",
    Metric.SAMPLES: "samples a step",
    Metric.TENSOR_BYTES: "tensor bytes",
    Metric.TENSOR_ALLOCATIONS: "tensor allocations",
    Metric.PEAK_HOST_BYTES: "peak host memory",
    Metric.PEAK_GPU_BYTES: "peak GPU memory",
    Metric.GRAPHS: "compiled graphs",
    Metric.GRAPH_BREAKS: "graph breaks",
    Metric.RECOMPILATIONS: "recompilations",
    Metric.SIMULATED_INSTRUCTIONS: "instructions (simulated)",
    Metric.HARDWARE_INSTRUCTIONS: "instructions (hardware)",
}

_TITLES = {
    PartsKind.PHASES: "Phases",
    PartsKind.MODULES: "Modules",
    PartsKind.SCOPES: "Scopes",
    PartsKind.OPERATORS: "Operators",
}
_PART_NAMES = {
    PartsKind.PHASES: "phase",
    PartsKind.MODULES: "module",
    PartsKind.SCOPES: "scope",
    PartsKind.OPERATORS: "operator",
}
_PHASES = frozenset({*PHASES, FORWARD_WITHOUT_GRADIENTS, RECOMPUTED_FORWARD})
_WHOLES = {
    PartsKind.PHASES: "step (mean)",
    PartsKind.MODULES: "all steps (mean)",
    PartsKind.SCOPES: "profiled time",
    PartsKind.OPERATORS: "step in the window",
}

_MISSING = {
    Part.STEPS: ("steps of PyTorch", None),
    Part.MODULES: ("modules", None),
    Part.SCOPES: ("scopes", None),
    Part.OPERATORS: ("operators", "record them with: pyrometer run --ops"),
    Part.SAMPLES: ("stack samples, so that there are no functions and no flame graph", None),
}


# Figures.


def write_figure(value: float | None, quantity: Quantity, style: Style) -> str:
    """A figure in its unit, a dash where it is not known."""
    if value is None:
        return UNKNOWN_CELL
    match quantity:
        case Quantity.DURATION:
            return style.duration(value)
        case Quantity.BYTES:
            return style.size(value)
        case Quantity.SHARE:
            return style.share(value) + ("" if style.wordy else " %")
        case Quantity.INSTRUCTIONS:
            return compact_count(round(value))
        case Quantity.RATE | Quantity.COUNT:
            return _number(value)


def _number(value: float) -> str:
    if abs(value) >= 99.95 or float(value).is_integer():
        return f"{value:,.0f}"
    return three_digits(value)


def write_change(change: Change, style: Style) -> str:
    """The absolute change with its sign; of shares in points."""
    return write_signed(change.absolute, change.quantity, style)


def write_signed(value: float | None, quantity: Quantity, style: Style) -> str:
    """A difference of two figures, with its sign."""
    if value is None:
        return UNKNOWN_CELL
    if quantity is Quantity.SHARE:
        return f"{signless_zero(100 * value, 1)} pt"
    written = write_figure(abs(value), quantity, style)
    if not any(digit in "123456789" for digit in written):
        return written
    return f"{'-' if value < 0 else '+'}{written}"


def write_percent(change: Change) -> str:
    """The relative change in percent, without the sign of percent; a dash from 0, and of shares."""
    if change.relative is None or change.quantity is Quantity.SHARE:
        return UNKNOWN_CELL
    percent = 100 * change.relative
    return ">+999" if percent >= 999.95 else signless_zero(percent, 1)


def signless_zero(value: float, decimals: int) -> str:
    """A number with its sign, but 0 without."""
    written = f"{value:+.{decimals}f}"
    return written[1:] if float(written) == 0 else written


def write_interval(change: Change) -> str:
    """The interval of the relative change in percent; a dash without one, and of shares."""
    if change.interval is None or change.quantity is Quantity.SHARE:
        return UNKNOWN_CELL
    low, high = change.interval
    return f"{signless_zero(100 * low, 1)} to {signless_zero(100 * high, 1)}"


def write_verdict(change: Change, presence: Presence = Presence.BOTH) -> str:
    """One or two words."""
    return change.verdict.value if presence is Presence.BOTH else presence.value


def write_times(ratio: float) -> str:
    """How many times: ``2 ×``, ``0.5 ×``."""
    rounded = round(ratio, 2)
    return f"{rounded:g} ×" if rounded else "<0.01 ×"


def write_calls(row: PartChange) -> str:
    """How often it is called a step, or how many times as often as before."""
    calls = row.calls
    if calls is None:
        return UNKNOWN_CELL
    if row.presence is not Presence.BOTH:
        return _number((calls.after if row.presence is Presence.NEW else calls.before) or 0.0)
    if calls.verdict is Verdict.CANNOT_TELL:
        return "varies"
    if calls.verdict is not Verdict.SAME and calls.before and calls.after is not None:
        return f"{write_times(calls.after / calls.before)} as often"
    return _number(calls.after or 0.0)


# Names.


def part_name(row: PartChange, kind: PartsKind) -> str:
    """What a row is called: a scope by where it stands, as the same name may stand elsewhere."""
    return path_name(row) if kind is PartsKind.SCOPES else row.name


def path_name(row: PartChange, *, most: int = _MOST_STEPS_OF_A_PATH) -> str:
    """Where a part stands: the last names of its path."""
    names: list[str] = []
    place: Place | None = row.place
    # Not by the whole path: a tree may be thousands of scopes deep, and has a row for each.
    while place is not None and len(names) < most:
        names.append(visible(place.name))
        place = place.outer
    return " > ".join((*(["…"] if place is not None else []), *reversed(names)))


def whole_name(table: PartsTable) -> str:
    """What the parts of a table make up."""
    if table.measured_unit is not None:
        return f"{table.measured_unit} (median)"
    a_step = table.kind is PartsKind.SCOPES and table.steps is not None
    return _WHOLES[table.kind] + (" a step" if a_step else "")


def table_title(table: PartsTable) -> str:
    """What the parts of a table are, in the plural."""
    return "Phases and modules" if _has_phases(table) else _TITLES[table.kind]


def heading_of_parts(table: PartsTable) -> str:
    """What a part of a table is, over their names."""
    return "phase, module" if _has_phases(table) else _PART_NAMES[table.kind]


def rest_name(table: PartsTable) -> str:
    """What is in no part."""
    if table.kind is PartsKind.PHASES:
        return "unexplained"
    return f"in no {'phase' if _has_phases(table) else _PART_NAMES[table.kind]}"


def _has_phases(table: PartsTable) -> bool:
    """Whether modules stand in the phases they are called in: so they do in trees that were measured."""
    return table.kind is PartsKind.MODULES and table.measured_unit is not None


def _is_phase(place: Place) -> bool:
    """Of a tree that was measured: at the top there are phases, and one may stand in another.

    A module may be called as its phase is: ``loss = CrossEntropyLoss()`` stands in the phase ``loss``.
    """
    outer = place.outer
    return outer is None or (place.name in _PHASES and place.name != outer.name and _is_phase(outer))


def metric_name(one: MetricChange) -> str:
    """A figure of the whole run."""
    name = METRIC_NAMES[one.metric]
    return name if one.subject is None else f"{name}, {short_name(one.subject)}"


def short_name(name: str) -> str:
    """A name in a sentence, shortened where it is long."""
    return shorten_middle(visible(name), _LONGEST_NAME)


# Sentences.


def describe_side(side: SideFacts) -> str:
    """A side in a line: what it is called, what it ran, at which commit, how often."""
    commit = "no commit known" if side.commit is None else f"commit {side.commit[:12]}"
    changed = " with uncommitted changes" if side.dirty else ""
    steps = ""
    if side.steps_label is not None:
        kept = format_count(side.steps - side.warmup_steps, "steady step" if side.is_steady else "step")
        steps = f", {kept} of {short_name(side.steps_label)} after {side.warmup_steps:,} of warm-up"
    return f"{short_name(side.name)}: {format_count(side.runs, 'run')}, {commit}{changed}{steps}"


def describe_level(comparison: Comparison) -> str:
    """Whether they may be compared."""
    match comparison.comparability.level:
        case Level.REFUSED:
            return "Refused: these runs are of different things, and their figures say nothing of the code."
        case Level.TREND_ONLY if comparison.doubt is Doubt.WATCHED_OTHERWISE:
            return (
                "Trend only: the two were not recorded alike, so times and memory are shown and not judged. "
                "Counts of calls are."
            )
        case Level.TREND_ONLY:
            return "Trend only: the machines may differ, so times are shown and not judged. Counts are."
        case Level.COMPARABLE if any(one.accepted for one in comparison.comparability.differences):
            return "Compared although not all is the same: what differs was accepted."
        case Level.COMPARABLE:
            return "Comparable: program, inputs, software and machine are the same."


def describe_differences(comparison: Comparison) -> Iterator[str]:
    """Each fact that is not the same, what that means, and how to accept it."""
    return map(_describe_difference, comparison.comparability.differences)


def describe_weighty_differences(comparison: Comparison) -> Iterator[str]:
    """Those of the facts that weigh on figures or were accepted; of the others only what they are."""
    noted = []
    for difference in comparison.comparability.differences:
        if difference.weight is not Weight.NOTED or difference.accepted:
            yield _describe_difference(difference)
        else:
            rule = RULES.get(difference.name)
            noted.append(difference.name if rule is None else rule.label)
    if noted:
        yield f"Noted, see below: {', '.join(noted)}"


def _describe_difference(difference: Difference) -> str:
    meaning = difference.weight.value
    if difference.accepted:
        meaning = "accepted"
    elif difference.weight is not Weight.NOTED:
        meaning = f"{meaning}; to accept it: --allow {difference.name}"
    return f"{difference.sentence} [{meaning}]"


def describe_doubt(comparison: Comparison) -> str | None:
    """Why no time has a verdict, and what to do about it; None where times have one."""
    if comparison.doubt is Doubt.FEW_RUNS:
        before, after = comparison.before.runs, comparison.after.runs
        return (
            f"Times cannot be told from {before} + {format_count(after, 'run')}: what is shown is a "
            f"trend. A verdict takes at least {LEAST_RUNS} runs a side, recorded by turns, in a folder "
            "each. Counts and bytes are exact."
        )
    return None if comparison.doubt is None else _WHY_NOT_TOLD.get(comparison.doubt)


_WHY_NOT_TOLD = {
    Doubt.NOT_INTERLEAVED: (
        "Times cannot be told: the runs of A and B did not take turns (all of A ran before B, or "
        "many of one side in a row); what changed on the machine meanwhile cannot be told apart. "
        "Record them by turns: A, B, A, B."
    ),
    Doubt.OTHER_MACHINE: (
        "Times cannot be told: the runs may be of different machines. Counts and bytes are exact."
    ),
    Doubt.WATCHED_OTHERWISE: (
        "Times, memory and instructions cannot be told: what the profiler watched, or the recorder it "
        "watched with, differs, and costs some of each. Record both sides with the same options and the "
        "same recorder. Counts of calls are exact."
    ),
    Doubt.CONTROL: (
        "Times cannot be told: the control, which runs A's code, differs from A. Something disturbs "
        "the sides unequally; measure again on a quieter machine."
    ),
    Doubt.UNEVEN: (
        "Times cannot be told: a usual turn takes as long on both sides, and all turns together do "
        "not. Some steps take much longer than others: look at what is done in every tenth or "
        "hundredth one."
    ),
}


def describe_missing(missing: Missing) -> str:
    """A part that is not compared."""
    what, advice = _MISSING[missing.part]
    who = (
        "neither side has" if missing.before and missing.after else f"{'A' if missing.before else 'B'} has no"
    )
    return f"{who} {what}" + (f"; {advice}" if advice else "")


def describe_metric(one: MetricChange, style: Style) -> str:
    """A figure on both sides, in a sentence."""
    change = one.change
    if change.before is None or change.after is None:
        side = "A" if change.before is None else "B"
        return f"{metric_name(one)}: not measured in {side}"
    before = write_figure(change.before, change.quantity, style)
    after = write_figure(change.after, change.quantity, style)
    is_share = change.quantity is Quantity.SHARE
    by = write_change(change, style) if is_share else f"{write_percent(change)} %"
    if change.verdict is Verdict.SAME:
        return f"{metric_name(one)}: the same ({after})"
    has_interval = change.interval is not None and not is_share
    interval = f", 99 % interval {write_interval(change)} %" if has_interval else ""
    return f"{metric_name(one)}: {change.verdict.value}: {before} → {after} ({by}{interval})"


def describe_calls(row: PartChange, table: PartsTable) -> str | None:
    """That a part is called more or less often, is new or has vanished; None where it is as before."""
    kind = "phase" if _has_phases(table) and _is_phase(row.place) else _PART_NAMES[table.kind]
    name = f"{kind} {short_name(part_name(row, table.kind))}"
    if not is_called_otherwise(row):
        return None
    if row.presence is not Presence.BOTH:
        return f"{name}: {'new' if row.presence is Presence.NEW else 'vanished'}"
    calls = row.calls
    if calls is None or not calls.before or calls.after is None:
        return None
    unit = "in the run" if table.unit is None else f"a {table.unit}"
    return (
        f"{name}: called {write_times(calls.after / calls.before)} as often "
        f"({_number(calls.before)} → {_number(calls.after)} {unit})"
    )


def describe_details(row: PartChange) -> Iterator[str]:
    """What the columns of a row do not say: where time moved from, and other bytes."""
    if row.moved is not None:
        source = short_name(row.moved.name) if row.moved.name else "what is in no part"
        yield f"{'' if row.moved.proven else 'perhaps '}moved from {source}, which lost about as much"
    allocated = row.allocated
    if allocated is not None and allocated.verdict in {Verdict.MORE, Verdict.FEWER} and row.own.absolute:
        before, after = format_bytes(allocated.before or 0.0), format_bytes(allocated.after or 0.0)
        yield f"allocates {allocated.verdict.value} bytes of tensors: {before} → {after}"
    if not row.is_part:
        yield "on another thread: beside the whole, and not part of it"


def describe_adding_up(table: PartsTable) -> str:
    """That the changes of the parts are that of the whole, and what they leave unexplained."""
    explained = write_plain_signed(table.explained)
    whole = write_plain_signed(table.whole.grown)
    rest = write_plain_signed(table.unexplained)
    where = "" if table.kind is PartsKind.PHASES else f" ({rest_name(table)})"
    more = (
        " A time below 0 there: medians of parts need not come to that of the whole, and here they are more."
        if min(table.rest.before or 0.0, table.rest.after or 0.0) < 0 and table.measured_unit is not None
        else ""
    )
    return f"The parts explain {explained} of {whole}; unexplained: {rest}{where}.{more}"


def write_plain_signed(duration_ns: float) -> str:
    """A difference of durations in running text."""
    written = format_duration(abs(duration_ns))
    if not any(digit in "123456789" for digit in written):
        return written
    return f"{'-' if duration_ns < 0 else '+'}{written}"


def _describe_cut(table: PartsTable) -> str:
    if not table.is_cut:
        return ""
    return (
        f" Of each pair the {MAX_KEPT_NODES} places that take most are kept; one that is not among them in "
        f"all pairs is in the row '{rest_name(table)}'."
    )


def describe_basis(table: PartsTable) -> str:
    """Over what the figures of a table are."""
    if table.steps is None:
        return "Own times over the whole run."
    before, after = table.steps
    if table.measured_unit is not None:
        return (
            f"Own times a {table.measured_unit}: medians over turns side by side, of {before:,} + {after:,} "
            f"{table.measured_unit}s.{_describe_cut(table)}"
        )
    warmup = ", warm-up too" if table.with_warmup else ""
    window = " of the windows in which operators were looked at" if table.kind is PartsKind.OPERATORS else ""
    judged = ""
    if table.kind is PartsKind.PHASES and table.whole.interval is not None:
        judged = " Figures are means; intervals and verdicts are of the medians of steps."
    return f"Own times a step, over {before:,} + {after:,} steps{window}{warmup}.{judged}"
