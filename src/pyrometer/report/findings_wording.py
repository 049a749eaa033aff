"""The sentences about findings. Names from the run stay as they are: a renderer cleans them."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.findings.model import (
    Evidence,
    Finding,
    FindingKind,
    Findings,
    GainOf,
    NotLookedFor,
    Place,
)
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.torch_wording import sentence, short
from pyrometer.units import format_bytes, format_count, format_duration

NOTHING_FOUND = "Nothing was found that is worth changing."

_MOST_CAUSES = 3


def gain_text(finding: Finding, *, marked: bool = True) -> str:
    """The most that could be gained: ``≤ 31 %``; a dash where nothing bounds it.

    ``marked``: a gain of memory says so, ``≤ 5.0 % mem.``, where it stands among gains of time.
    """
    if finding.gain is None:
        return UNKNOWN_CELL
    of_memory = marked and finding.gain.of is GainOf.MEMORY
    return f"≤ {percent(finding.gain.share)}{' mem.' if of_memory else ''}"


def percent(share: float) -> str:
    """A bound in whole percent from 10 on: more digits would be more than it says."""
    value = 100 * share
    if 0 < value < 0.05:
        return "0.1 %"
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def speedup_text(finding: Finding) -> str:
    """The same as a speed-up: ``≤ 1.45 ×``."""
    speedup = None if finding.gain is None else finding.gain.speedup
    return UNKNOWN_CELL if speedup is None else f"≤ {times(speedup)}"


def times(speedup: float) -> str:
    """How many times as fast."""
    return f"{speedup:.2f} ×" if speedup < 9.995 else f"{speedup:.0f} ×"


def describe_gain(finding: Finding) -> str:
    """The bound in words, with what it is of and how it was worked out."""
    gain = finding.gain
    if gain is None:
        return "The gain is not bounded by what was measured."
    return f"At most {percent(gain.share)} of {gain.of.value}: {gain.basis.rstrip('.')}."


def current_figure(finding: Finding) -> str:
    """What it takes now."""
    parts = []
    if finding.duration_ns is not None:
        parts.append(format_duration(finding.duration_ns))
    if finding.size_bytes is not None:
        parts.append(format_bytes(finding.size_bytes))
    if finding.share is not None:
        parts.append(percent(finding.share))
    return ", ".join(parts) or UNKNOWN_CELL


def where(place: Place, *, briefly: bool = False) -> str:
    """Where it is; briefly: the innermost of what is known."""
    if briefly:
        for name in (
            place.function,
            place.module,
            place.operator,
            place.loader,
            place.phase,
            place.group,
        ):
            if name is not None:
                return short(name)
        return UNKNOWN_CELL
    named = [f"{kind} {short(name)}" for kind, name in place.parts]
    return ", ".join(named) or UNKNOWN_CELL


def describe_evidence(evidence: Evidence) -> str:
    """What was seen, and where in the report."""
    return f"{evidence.text.rstrip('.')} (see {short(evidence.see)})."


def describe_effort(finding: Finding) -> str:
    """What a change asks for, and what it can do to the results."""
    return f"{finding.effort.value}; {finding.risk.value}"


def describe_causes(finding: Finding) -> Iterator[str]:
    """Likely causes, if any are known."""
    if finding.causes:
        yield f"Likely: {'; '.join(cause.rstrip('.') for cause in finding.causes[:_MOST_CAUSES])}."


def how_to_measure(finding: Finding) -> str | None:
    """The command that is to try it, once there is one; None where there is no such experiment."""
    return None if finding.knob is None else f"pyrometer tune --only {finding.knob}"


def describe_clear(clear: Sequence[FindingKind], *, most: int | None = None) -> Iterator[str]:
    """What was looked for in vain; at most so many by name."""
    if clear:
        yield f"Looked for and not found: {_named(clear, most)}."


def describe_not_looked_for(missing: Sequence[NotLookedFor], *, most: int | None = None) -> Iterator[str]:
    """What this run cannot tell, kinds with the same reason together; at most so many of each by name."""
    if missing:
        reasons: dict[str, list[FindingKind]] = {}
        for one in missing:
            reasons.setdefault(one.reason, []).append(one.kind)
        told = (f"{_named(kinds, most)} ({reason.rstrip('.')})" for reason, kinds in reasons.items())
        yield f"Cannot be told: {'; '.join(told)}."


def _named(kinds: Sequence[FindingKind], most: int | None) -> str:
    shown = [kind.value for kind in kinds[:most]]
    left_out = len(kinds) - len(shown)
    return f"{', '.join(shown)} and {left_out} more" if left_out else ", ".join(shown)


def describe_strengths(findings: Findings) -> tuple[str, ...]:
    """What is efficient already."""
    return tuple(f"{sentence(strength.text)}." for strength in findings.strengths)


def describe_not_shown(number: int) -> Iterator[str]:
    """How many findings there are beyond those."""
    if number:
        yield f"{format_count(number, 'more finding')} not shown."
