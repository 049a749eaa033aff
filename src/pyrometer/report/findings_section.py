"""Findings: a table of what is worth changing, the evidence for it and what to try."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.findings.model import PRIORITY_RULE, Finding, Findings, GainClass
from pyrometer.analysis.hotspots import Priority
from pyrometer.report.blocks import (
    Block,
    Bullets,
    Code,
    Column,
    Emphasis,
    Heading,
    Lines,
    Row,
    Section,
    Table,
    notes,
)
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.findings_wording import (
    NOTHING_FOUND,
    current_figure,
    describe_causes,
    describe_clear,
    describe_effort,
    describe_evidence,
    describe_gain,
    describe_not_looked_for,
    describe_not_shown,
    describe_strengths,
    gain_text,
    how_to_measure,
    speedup_text,
    where,
)
from pyrometer.report.torch_wording import sentence

FINDINGS_TITLE = "Findings"
OPPORTUNITIES_TITLE = "Optimisation opportunities"
MOST_ON_TERMINAL = 8
MOST_DETAILED = 3
_FEW = 2
_MOST_KINDS = 4

_URGENT = (Priority.CRITICAL, Priority.HIGH)
_CLASS_TITLES = {
    GainClass.LARGE: "Could gain more than 10 %",
    GainClass.MIDDLE: "Could gain 5 to 10 %",
    GainClass.SMALL: "Could gain 2 to 5 %",
    GainClass.TRACE: "Could gain less than 2 %",
    GainClass.UNKNOWN: "Not bounded by what was measured",
}
_MEASURE_BRIEFLY = "At most: if the part at fault took no time at all; not measured."
_MEASURE = (
    "At most: what would be saved if the part at fault took no time at all; an upper bound until an "
    "experiment has measured it."
)


def build_findings_section(
    findings: Findings, *, most: int = MOST_ON_TERMINAL, most_detailed: int = MOST_DETAILED
) -> Section:
    """For a terminal: a row each, details of the first, what is good, what was looked for in vain or not."""
    if not findings.found:
        return Section(
            title=FINDINGS_TITLE, blocks=(Lines(lines=(NOTHING_FOUND,)), *_around(findings, most=_MOST_KINDS))
        )
    left_out = len(findings.found[most:]) + findings.not_shown
    blocks: list[Block] = [findings_table(findings.found[:most], briefly=True)]
    blocks += notes(describe_not_shown(left_out))
    for finding in findings.found[:most_detailed]:
        blocks += _briefly(finding)
    blocks += notes([f"{_MEASURE_BRIEFLY} {PRIORITY_RULE}"])
    return Section(title=FINDINGS_TITLE, blocks=(*blocks, *_around(findings, most=_MOST_KINDS)))


def findings_table(found: Sequence[Finding], *, briefly: bool) -> Table:
    """Rank, what, where, at most and priority; where there is room, effort and risk too."""
    columns = [
        Column(heading="where", left=True, widest=16 if briefly else None, dropped=1),
        Column(heading="at most"),
        *([] if briefly else [Column(heading="of", left=True), Column(heading="speed-up")]),
        *([] if briefly else [Column(heading="effort", left=True), Column(heading="risk", left=True)]),
        Column(heading="priority", left=True),
    ]
    return Table(
        names="finding", columns=tuple(columns), rows=tuple(_row(one, briefly=briefly) for one in found)
    )


def build_opportunity_section(findings: Findings, *, praised: bool = True) -> Section:
    """Each finding in full, by how much it could gain: figure, bottleneck, what to do, effort, risk.

    ``praised``: with what is good already.
    """
    around = tuple(_around(findings, praised=praised))
    if not findings.found:
        return Section(title=OPPORTUNITIES_TITLE, blocks=(Lines(lines=(NOTHING_FOUND,)), *around))
    blocks: list[Block] = [findings_table(findings.found, briefly=False)]
    blocks += notes([*describe_not_shown(findings.not_shown), _MEASURE, PRIORITY_RULE])
    for gain_class in GainClass:
        chosen = [finding for finding in findings.found if finding.gain_class is gain_class]
        if chosen:
            blocks.append(Heading(text=_CLASS_TITLES[gain_class]))
        for finding in chosen:
            blocks += opportunity_blocks(finding)
    return Section(title=OPPORTUNITIES_TITLE, blocks=(*blocks, *around))


def opportunity_blocks(finding: Finding) -> Iterator[Block]:
    """One finding in full."""
    yield Lines(lines=(f"{finding.rank}. {sentence(finding.what)}.",))
    lines = [
        f"Now: {current_figure(finding)}{_in(finding)}.",
        *(f"Seen: {describe_evidence(evidence)}" for evidence in finding.evidence),
        *describe_causes(finding),
        describe_gain(finding),
        _in_short(finding),
        *(f"Try: {remedy.text.rstrip('.')}." for remedy in finding.remedies),
    ]
    command = how_to_measure(finding)
    yield Bullets(
        lines=(
            *lines,
            *(
                []
                if command is None
                else [f"Measure it: run it both ways; {command} will, in a version to come."]
            ),
        )
    )
    for remedy in finding.remedies:
        if remedy.snippet is not None:
            yield Code(lines=tuple(remedy.snippet.splitlines()), language=remedy.language)


def _in(finding: Finding) -> str:
    place = where(finding.place)
    return "" if place == UNKNOWN_CELL else f", in {place}"


def _in_short(finding: Finding) -> str:
    return (
        f"Expected speed-up: {speedup_text(finding)}. Effort: {finding.effort.value}. "
        f"Risk: {finding.risk.value}. Priority: {finding.priority.value}."
    )


def _row(finding: Finding, *, briefly: bool) -> Row:
    gain = finding.gain
    of = "" if gain is None else gain.of.value
    wide = () if briefly else (of, speedup_text(finding))
    wider = () if briefly else (finding.effort.value, finding.risk.value)
    return Row(
        name=f"{finding.rank}. {finding.what}",
        cells=(
            where(finding.place, briefly=briefly),
            gain_text(finding, marked=briefly),
            *wide,
            *wider,
            finding.priority.value,
        ),
        emphasis=Emphasis.STRONG if finding.priority in _URGENT else Emphasis.NONE,
        sentence=True,
    )


def _briefly(finding: Finding) -> Iterator[Block]:
    yield Lines(lines=(f"{finding.rank}. {sentence(finding.what)}.",), emphasis=Emphasis.STRONG)
    remedies = finding.remedies[:_FEW]
    lines = [f"Seen: {describe_evidence(evidence)}" for evidence in finding.evidence[:_FEW]]
    lines += (f"Try: {remedy.text.rstrip('.')} ({describe_effort(finding)})." for remedy in remedies[:1])
    lines += (f"Or: {remedy.text.rstrip('.')}." for remedy in remedies[1:])
    yield Bullets(lines=tuple(lines))
    for remedy in remedies[:1]:
        if remedy.snippet is not None:
            yield Code(lines=tuple(remedy.snippet.splitlines()), language=remedy.language)


def _around(findings: Findings, *, praised: bool = True, most: int | None = None) -> Iterator[Block]:
    strengths = describe_strengths(findings) if praised else ()
    if strengths:
        yield Lines(lines=("Good already:",))
        yield Bullets(lines=strengths)
    rest = (
        *describe_clear(findings.clear, most=most),
        *describe_not_looked_for(findings.not_looked_for, most=most),
    )
    if rest:
        yield Lines(lines=rest)
