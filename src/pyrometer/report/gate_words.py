"""What a gate says: the verdict, by which figures, and what to do about one that is none."""

import math
import shlex
from collections.abc import Iterator, Sequence

from pyrometer.analysis.attribution import changed_rows, grown_with_below
from pyrometer.analysis.comparison.model import PartChange, PartsTable, Presence, Verdict
from pyrometer.analysis.comparison.parts import is_called_otherwise
from pyrometer.analysis.gate import (
    COUNTED_PAIRS,
    INSTRUCTION_PAIRS,
    LEAST_EFFECT,
    LOOKS,
    MARGIN,
    Judgement,
    Look,
    Reason,
)
from pyrometer.analysis.gate import Verdict as GateVerdict
from pyrometer.analysis.gated import GatedLane, least_pairs, overall
from pyrometer.analysis.identity import NOT_USED
from pyrometer.analysis.measured import have_equal_samples
from pyrometer.analysis.trials import (
    Metric,
    Ratios,
    control_ratios,
    default_metric,
    loses_samples,
    processes_of,
    tell_samples,
)
from pyrometer.record.trials import LEAD_SPREAD, Plan, Trials, TrialSide
from pyrometer.report import comparison_words
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.safe_text import shorten_middle, visible
from pyrometer.units import format_bytes, format_count, format_duration

_LONGEST_NAME = 60
_MOST_NAMED = 3

METRIC_NAMES = {
    Metric.THROUGHPUT: "time a sample",
    Metric.LATENCY: "time a step",
    Metric.PEAK_MEMORY: "peak memory",
    Metric.INSTRUCTIONS: "instructions",
}
_UNITS = {"step": "a step", "call": "a call", "program": "of the program"}


def lane_name(lane: GatedLane) -> str:
    """What was judged."""
    name = METRIC_NAMES[lane.metric]
    unit = _UNITS[lane.trials.plan.unit]
    if lane.metric is Metric.LATENCY:
        name = f"time {unit}"
    elif lane.metric is Metric.INSTRUCTIONS:
        name = f"{name} {unit}"
    elif lane.peaks is not None:
        name = f"{name} ({lane.peaks.value})"
    return name if lane.subject is None else f"{visible(lane.subject)}, {name}"


def write_value(value: float | None, lane: GatedLane) -> str:
    """A figure of one side."""
    if value is None:
        return UNKNOWN_CELL
    if lane.metric is Metric.PEAK_MEMORY:
        return format_bytes(value)
    if lane.metric is Metric.INSTRUCTIONS:
        return f"{value:,.0f}"
    return format_duration(value)


def write_change(change: float | None) -> str:
    """A relative change in percent, with its sign."""
    return UNKNOWN_CELL if change is None else f"{_signed(change)} %"


def write_interval(judgement: Judgement) -> str:
    """Where the change lies."""
    if judgement.interval is None:
        return UNKNOWN_CELL
    return f"{_signed(judgement.interval.low)} to {_signed(judgement.interval.high)} %"


def _signed(change: float) -> str:
    return comparison_words.signless_zero(100 * change, 1)


def interval_heading(lanes: Sequence[GatedLane]) -> str:
    """What the intervals are: of counts, from the least pair to the most."""
    kinds = {lane.metric.is_timed for lane in lanes}
    return "interval" if len(kinds) > 1 else "99 % interval" if kinds == {True} else "range"


def describe_verdict(lane: GatedLane) -> str:
    """One sentence: what came out, and by which rule."""
    judgement, allowed = lane.judgement, lane.max_slowdown
    interval = "" if judgement.interval is None else f" ({write_interval(judgement)})"
    pairs = format_count(judgement.pairs, "pair")
    seen = f"{lane_name(lane)} {write_change(judgement.change)}{interval} over {pairs} of processes"
    match judgement.reason:
        case Reason.SLOWER:
            return f"{seen}; allowed: {_percent(allowed)}."
        case Reason.WITHIN:
            most = _percent(allowed + MARGIN)
            return f"{seen}; {most} or more is ruled out."
        case Reason.UNDECIDED:
            return f"{seen}: {_describe_doubt(lane)}"
        case Reason.UNEVEN:
            return (
                f"{seen}, but all turns together take {write_change(judgement.average_change)}: some steps "
                "take much longer than others, so that neither FAIL nor PASS is sure. Look at what is done "
                "in every tenth or hundredth step."
            )
        case Reason.CONTROL:
            return (
                f"{lane_name(lane)}: void, since the control, which runs the baseline's code, differs from "
                f"the baseline by {write_change(judgement.control_change)} over {pairs}. {_why_void(lane)}"
            )
        case Reason.NOT_MEASURED:
            return f"{lane_name(lane)}: not measured; {describe_what_is_missing(lane)}"


def describe_samples(lane: GatedLane) -> Iterator[str]:
    """That steps of both sides work on other numbers of samples, where the time of a sample is judged."""
    pairs = lane.trials.pairs
    if lane.metric is not Metric.THROUGHPUT or loses_samples(pairs) or have_equal_samples(pairs):
        return
    before, after = (
        sum(turn.samples or 0 for one in sides for turn in one.rounds)
        / sum(turn.steps for one in sides for turn in one.rounds)
        for sides in ([pair.baseline for pair in pairs], [pair.candidate for pair in pairs])
    )
    yield (
        f"a step works on {after:,.4g} samples now, and on {before:,.4g} before. If that is not meant, "
        "something else is taken for the batch than before: --metric latency judges the time of a step."
    )


def describe_other_memory(lane: GatedLane) -> Iterator[str]:
    """That a GPU's memory is not in the peaks, where the program uses one."""
    sides = (lane.trials.baseline, lane.trials.candidate)
    uses_gpu = any(side.identity.get("gpu", NOT_USED) != NOT_USED for side in sides)
    if lane.metric is Metric.PEAK_MEMORY and uses_gpu:
        yield "this is the memory of the host; that of the GPU is not judged."


def _describe_doubt(lane: GatedLane) -> str:
    """Why there is neither FAIL nor PASS."""
    judgement, allowed = lane.judgement, lane.max_slowdown
    if judgement.alpha is None:
        if judgement.pairs < _counted_pairs(lane.metric):
            return f"so few can tell nothing; it takes {_counted_pairs(lane.metric)}."
        control = [abs(math.expm1(one)) for group in _control(lane) for one in group]
        beside = f"; the control varies by up to {_percent(max(control))}" if control else ""
        return f"not sure enough for FAIL, nor for PASS{beside}."
    if judgement.pairs < LOOKS[0].pairs:
        return f"so few can tell nothing, whatever they show; it takes {LOOKS[0].pairs} or more."
    least = least_pairs(judgement.fail_alpha or judgement.alpha)
    if judgement.pairs < least:
        enough = next(look.pairs for look in LOOKS if look.pairs >= least)
        return (
            "PASS is not sure, and of so many benchmarks together so few pairs can tell no FAIL, whatever "
            f"they show; it takes {enough}."
        )
    smallest = judgement.smallest_seen
    could = (
        ""
        if smallest is None
        else f" Changes below about {_percent(round(smallest, 3))} cannot be told here."
    )
    return (
        f"neither FAIL (more than {_percent(allowed)}) nor PASS (less than {_percent(allowed + MARGIN)}) "
        f"is sure.{could}"
    )


def _control(lane: GatedLane) -> Ratios:
    return control_ratios(lane.trials.pairs, lane.metric)


def _why_void(lane: GatedLane) -> str:
    if not lane.metric.is_timed:
        return "The count is another one each time, and says nothing of the change."
    return "Something disturbs the two sides unequally; measure again on a quieter machine."


def describe_what_is_missing(lane: GatedLane) -> str:
    """Why there are no figures of a metric, and what to do."""
    if lane.metric is Metric.THROUGHPUT and lane.trials.plan.unit == "program":
        return "the program is measured as a whole, and not by its samples; use --metric latency."
    if lane.metric is Metric.THROUGHPUT and loses_samples(lane.trials.pairs):
        return (
            "the candidate's steps no longer tell how many samples they work on, as the baseline's do; "
            "use --metric latency."
        )
    if lane.metric is Metric.THROUGHPUT and not tell_samples([pair.baseline for pair in lane.trials.pairs]):
        return "the steps do not tell how many samples they work on; use --metric latency."
    if lane.metric is Metric.INSTRUCTIONS:
        return "callgrind counted nothing; see: pyrometer doctor."
    return "see what could not be seen, below." if lane.trials.losses else "no process could tell it."


def describe_rule(lane: GatedLane) -> str:
    """By which rule the lane was judged."""
    if not lane.metric.is_timed:
        return (
            f"{_counted_pairs(lane.metric)} pairs. FAIL: all are above {_percent(lane.max_slowdown)} by more "
            f"than the control varies, and their median by {_percent(LEAST_EFFECT)} or more. PASS: none is "
            f"above by {_percent(lane.max_slowdown + MARGIN)} or more. In brackets: from the least pair to "
            "the most."
        )
    chance = (
        ""
        if lane.judgement.alpha is None
        else f", each with a chance of error of {100 * lane.judgement.alpha:g} %"
    )
    shared = "" if lane.subject is None else " All benchmarks share FAIL's (Holm's correction)."
    return (
        f"FAIL: slower by at most {_percent(lane.max_slowdown)} is ruled out, and the estimate is at least "
        f"{_percent(lane.max_slowdown + LEAST_EFFECT)}. PASS: slower by "
        f"{_percent(lane.max_slowdown + MARGIN)} or more is ruled out{chance}, and all turns together are "
        "not slower by that for sure. By a sign-flip test over pairs of processes; looks after 10, 20 and 40 "
        f"pairs.{shared}"
    )


def _counted_pairs(metric: Metric) -> int:
    return INSTRUCTION_PAIRS if metric is Metric.INSTRUCTIONS else COUNTED_PAIRS


def program_name(lanes: Sequence[GatedLane]) -> str:
    """What was run, as the user typed it; of several benchmarks their file."""
    program = lanes[0].trials.program
    several = len({lane.subject for lane in lanes}) > 1
    return short(shlex.split(program)[0] if several else program)


def describe_side(side: TrialSide) -> str:
    """A side in a line."""
    if side.commit is None:
        return f"{short(side.name)}: {short(side.command)}"
    changed = " with uncommitted changes" if side.is_dirty else ""
    return f"{short(side.name)}, commit {side.commit[:12]}{changed}"


def describe_plan(trials: Trials) -> Iterator[str]:
    """How it was measured: first what many programs may have in common."""
    plan = trials.plan
    threads = (
        "as many threads as libraries choose"
        if plan.threads is None
        else format_count(plan.threads, "thread")
    )
    control = " and a second one of the baseline's as control" if trials.pairs[0].control else ""
    if plan.unit == "program":
        yield f"A pair is a fresh process of each side{control}, run whole, in random order; {threads}."
        if plan.few_steps is not None:
            yield (
                f"Its steps are too few to take turns with: {plan.few_steps:,}. All of it was measured, its "
                "start and its imports too; give it more steps to judge those."
            )
        return
    yield (
        f"A pair is a fresh process of each side{control}, all alive, that take turns in random order; "
        f"{threads}."
    )
    if plan.in_blocks:
        yield "The waiting ones are halted, with their children: loader workers would go on otherwise."
    processes = [process for pair in trials.pairs for process in processes_of(pair)]
    warm = sum(process.is_warm for process in processes)
    yield (
        f"{format_count(plan.rounds, 'turn')} each, of {_steps(plan)}. Warm-up: "
        f"{format_count(sum(plan.warmup_turns), 'step')}. Steady by then, by two windows of five turns "
        f"within 2 %: {warm} of {len(processes)} processes."
    )


def _steps(plan: Plan) -> str:
    steps = format_count(plan.turn_steps, "step")
    calls = f" of {format_count(plan.calls_per_step, 'call')}" if plan.unit == "call" else ""
    most = plan.lead_steps + LEAD_SPREAD
    lead = f" after {plan.lead_steps} or {most} that count for nothing" if plan.lead_steps else ""
    return f"{steps}{calls}{lead}, about {format_duration(plan.step_ns * plan.turn_steps)}"


def describe_look(trials: Trials, look: Look) -> str:
    """By which rule a measured comparison was judged."""
    least = LOOKS[0].pairs
    few = f" So few pairs can tell nothing: it takes {least} or more." if len(trials.pairs) < least else ""
    by_samples = ""
    if default_metric(trials.pairs) is Metric.THROUGHPUT and not have_equal_samples(trials.pairs):
        by_samples = (
            " B's steps do not tell how many samples they work on, as A's do: neither samples/s nor a step "
            "is judged."
            if loses_samples(trials.pairs)
            else " Steps of both sides work on other numbers of samples: samples/s is judged, and a step is "
            "not."
        )
    return (
        f"Slower or faster: the other is ruled out by a sign-flip test over "
        f"{format_count(len(trials.pairs), 'pair')}, with "
        f"a chance of error of {100 * look.alpha:g} % at this look, and the change is at least "
        f"{_percent(LEAST_EFFECT)}. No change: {_percent(MARGIN)} more and {_percent(MARGIN)} less are ruled "
        f"out. Looks after 10, 20 and 40 pairs.{few}{by_samples}"
    )


def describe_places(lane: GatedLane) -> Iterator[str]:
    """The places that changed for sure, the most telling first."""
    changed = list(changed_rows(lane.tables))
    for table, row in changed[:_MOST_NAMED]:
        yield _describe_place(table, row, lane.trials.plan.unit)
    if lane.verdict is GateVerdict.FAIL and lane.metric.is_timed and not changed:
        yield (
            "which place it is cannot be told for sure: the tables show what each takes."
            if lane.tables
            else "where it is cannot be told: the program has no torch modules, and none of its parts is "
            "marked with pyrometer.scope()."
        )
    left = len(changed) - _MOST_NAMED
    if left > 0:
        yield f"{format_count(left, 'more place')} changed: see the tables."


def _describe_place(table: PartsTable, row: PartChange, unit: str) -> str:
    """One place that changed; what is called otherwise, with what is below it."""
    name = comparison_words.short_name(row.name)
    grown = grown_with_below(table, row) if is_called_otherwise(row) else row.own.grown
    by = comparison_words.write_plain_signed(grown)
    if row.presence is not Presence.BOTH:
        return f"{name} {'is new' if row.presence is Presence.NEW else 'has vanished'}: {by} a {unit}"
    if is_called_otherwise(row):
        return f"{name} is called {comparison_words.write_calls(row)}: {by} a {unit}"
    moved = (
        f", moved from {comparison_words.short_name(row.moved.name)}" if row.moved and row.moved.name else ""
    )
    word = "slower" if row.own.verdict is Verdict.SLOWER else "faster"
    return f"{name} is {word}: {by} a {unit} ({100 * (row.own.relative or 0):+.0f} %){moved}"


def headline(lanes: Sequence[GatedLane]) -> str:
    """The verdict on all of them, with what it means."""
    failed = {lane.metric.is_timed for lane in lanes if lane.verdict is GateVerdict.FAIL}
    return {
        GateVerdict.PASS: "PASS",
        GateVerdict.FAIL: f"FAIL: {'slower' if failed == {True} else 'more'} than allowed",
        GateVerdict.INCONCLUSIVE: "INCONCLUSIVE: cannot be told",
        GateVerdict.REFUSED: "REFUSED: may not be compared",
    }[overall(lanes)]


def short(name: str) -> str:
    """A name in a line."""
    return shorten_middle(visible(name), _LONGEST_NAME)


def _percent(part: float) -> str:
    """All that a user may have asked for, such as 12.5 % and 100 %."""
    return f"{100 * part:.2g} %" if part < 0.01 else f"{round(100 * part, 2):g} %"
