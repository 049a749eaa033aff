"""The words of the brief for coding agents, each text of a bounded size."""

from collections.abc import Iterator

from pyrometer.analysis.findings.model import Finding, Findings, GainOf
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult, WarmupEnd
from pyrometer.report import wording
from pyrometer.report.safe_text import escape_controls, for_markdown, shorten_middle, visible
from pyrometer.units import format_bytes, format_count, format_duration, format_share

FEWEST_STEPS = 10
FEWEST_SAMPLES = 100

_MOST_SNIPPET_LINES = 6
_LONGEST_SNIPPET_LINE = 90
_MOST_LOSSES = 2
_LEFT_OUT = "# …"


def as_text(text: str, most_bytes: int) -> str:
    """The text as Markdown that shows exactly it, its middle left out where it is too long."""
    width = most_bytes
    while len((escaped := for_markdown(shorten_middle(text, width))).encode()) > most_bytes and width > 1:
        # What is escaped takes several times its room.
        width = width * 3 // 4
    return escaped


def as_code(text: str, most_bytes: int) -> str:
    """The text between backticks, of which it has none; within the size but for those two."""
    width = most_bytes
    while len((clean := _one_line(text, width)).encode()) > most_bytes and width > 1:
        width = width * 3 // 4
    return f"`{clean}`"


def _one_line(text: str, width: int) -> str:
    return escape_controls(shorten_middle(visible(text), width)).replace("`", "'")


def fenced(snippet: str, language: str) -> Iterator[str]:
    """A change as code, a few lines of it."""
    # Of a very long one only the beginning is looked at.
    lines = snippet[:10_000].split("\n")
    yield f"  ```{language}"
    for line in lines[:_MOST_SNIPPET_LINES]:
        # No fence can end inside it.
        yield f"  {_code_line(line)}".rstrip()
    if len(lines) > _MOST_SNIPPET_LINES:
        yield f"  {_LEFT_OUT}"
    yield "  ```"


def _code_line(line: str) -> str:
    width = _LONGEST_SNIPPET_LINE
    while len((clean := escape_controls(shorten_middle(line, width))).encode()) > 2 * _LONGEST_SNIPPET_LINE:
        width = width * 3 // 4
    return clean.replace("```", "'''").replace("~~~", "---")


def describe_gain(finding: Finding, *, short: bool = False) -> str:
    """The bound in words."""
    gain = finding.gain
    if gain is None:
        return "not known: nothing that was measured bounds it"
    text = f"{format_share(gain.share)} of {gain.of.value}"
    if gain.speedup is not None:
        text = f"{text}, {gain.speedup:.2f} × as fast"
    return text if short else f"{text} ({as_text(gain.basis, 160)})"


def describe_check(observed: Observed, finding: Finding) -> str:
    """The figure to compare after the change, and what would measure the gain."""
    of = None if finding.gain is None else finding.gain.of
    figure = _figure_of(observed, finding, of)
    if finding.knob is None:
        return figure
    return f"{figure}; `pyrometer tune --only {_word(finding.knob)}` will measure it, in a version to come"


def _figure_of(observed: Observed, finding: Finding, of: GainOf | None) -> str:
    torch = observed.torch
    if of is GainOf.STEP:
        group = _group_of(observed, finding)
        if group is not None:
            return f"a steady step, {format_duration(group.steady.mean_ns)} on average now"
    if of is GainOf.TOKEN and torch is not None:
        largest = max(torch.generations, key=lambda generation: generation.total_ns, default=None)
        if largest is not None and largest.ns_per_token is not None:
            return f"a token, {format_duration(largest.ns_per_token)} now"
    if of is GainOf.MEMORY and observed.memory is not None:
        return f"peak memory, {format_bytes(observed.memory.peak_bytes)} now"
    if of is GainOf.RUN:
        return f"the whole run, {format_duration(observed.run.profiled_ns)} now"
    return "run again, and see whether the evidence above is gone"


def _group_of(observed: Observed, finding: Finding) -> GroupResult | None:
    if observed.torch is None:
        return None
    named = (group for group in observed.torch.groups if group.label == finding.place.group)
    return next(named, observed.torch.main)


def _word(knob: str) -> str:
    return "".join(character for character in knob[:60] if character.isalnum() or character in "-_.")


def find_gaps(observed: Observed, findings: Findings) -> Iterator[str]:
    """What this run cannot say, most telling first."""
    run = observed.run
    if run.outcome.status != "finished":
        yield f"the program did not end by itself ({wording.describe_ending(run.outcome)}): totals are so far"
    yield from _step_gaps(observed)
    for loss in run.losses[:_MOST_LOSSES]:
        yield f"lost: {wording.describe_loss(loss)}"
    reasons: dict[str, list[str]] = {}
    for missed in findings.not_looked_for:
        reasons.setdefault(missed.reason, []).append(missed.kind.value)
    for reason, kinds in reasons.items():
        yield f"cannot be told: {', '.join(kinds)}: {reason}"
    if observed.samples is None:
        yield "stacks were not sampled: nothing is known of single functions"
    elif observed.samples.effective_samples < FEWEST_SAMPLES:
        samples = format_count(round(observed.samples.effective_samples), "sample")
        yield f"shares of functions are by {samples} of equal weight: mind their intervals"
    if observed.torch is not None and observed.torch.gpu is None:
        yield "there was no GPU: nothing here says what the program would do on one"
    if observed.allocations is None:
        yield "allocations were not counted"
    yield "how much this run differs from the next: it is a single one"


def _step_gaps(observed: Observed) -> Iterator[str]:
    torch = observed.torch
    if torch is None:
        yield "PyTorch was not used, or could not be watched: there are no steps, phases or modules"
        return
    if torch.main is None:
        yield "no step was found: there are no phases, and nothing to divide by"
        return
    if torch.main.warmup.end is WarmupEnd.NOT_REACHED:
        yield "the steps never became steady: their average is not what a long run would have"
    if torch.main.steady.steps < FEWEST_STEPS:
        yield f"only {format_count(torch.main.steady.steps, 'steady step')} measured: too few for percentiles"
    if torch.main.steady.samples is None:
        yield "samples a second: the batch size could not be told"
