"""Findings as JSON, for programs, and the JSON Schema of that.

Times are in nanoseconds, sizes in bytes, shares are fractions; what is unknown is null. The text is
plain ASCII. Keys stay, new ones may come, and ``version`` rises when the meaning of one changes. Write
the schema anew after a change: ``python -m pyrometer.report.findings_json > docs/findings.schema.json``.
"""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from pyrometer.analysis.findings.model import (
    Effort,
    Finding,
    FindingKind,
    Findings,
    GainClass,
    GainOf,
    Place,
    Risk,
)
from pyrometer.analysis.hotspots import Priority, Strength, StrengthKind
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.target_goals import Quantity
from pyrometer.analysis.targets import RelativeTo, TargetResult
from pyrometer.record.run import Run

FINDINGS_FORMAT: Literal["pyrometer-findings"] = "pyrometer-findings"
FINDINGS_VERSION: Literal[1] = 1

Amount = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Rank = Annotated[int, msgspec.Meta(ge=1)]


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file; every key is always there."""


class ProgramContent(Content, frozen=True, kw_only=True):
    """What was run."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    commit: str | None
    """The commit its source stood at; null where that is not in git."""
    has_uncommitted_changes: bool | None


class RunContent(Content, frozen=True, kw_only=True):
    """Which run it is."""

    started_at: str
    """ISO 8601 with the offset to UTC."""
    pyrometer_version: str
    profiled_ns: Amount
    outcome: str
    """``running`` (a checkpoint), ``finished``, ``exception`` or ``signal``."""


class PlaceContent(Content, frozen=True, kw_only=True):
    """Where it is, as far as that is known."""

    steps: str | None
    """The kind of steps, by its label."""
    phase: str | None
    module: str | None
    function: str | None
    """With its file and line: ``load (data.py:12)``."""
    operator: str | None
    loader: str | None


class EvidenceContent(Content, frozen=True, kw_only=True):
    """A measured figure in a sentence, and the section of the report it stands in."""

    text: str
    see: str


class GainContent(Content, frozen=True, kw_only=True):
    """The most that could be gained, by the evidence alone: an upper bound until it is measured."""

    share: Share
    """Of ``of``, that would be saved."""
    of: GainOf
    basis: str
    speedup: Annotated[float, msgspec.Meta(ge=1)] | None
    """How many times as fast at most; null of memory."""


class RemedyContent(Content, frozen=True, kw_only=True):
    """Something to try; ``snippet`` shows the change, in ``language`` (python, bash)."""

    text: str
    snippet: str | None
    language: str


class FindingContent(Content, frozen=True, kw_only=True):
    """Something worth changing."""

    rank: Rank
    kind: FindingKind
    what: str
    priority: Priority
    gain_class: GainClass
    gain: GainContent | None
    """null: nothing that was measured bounds it."""
    place: PlaceContent
    share: Amount | None
    """Of the time of a step, or of what ``gain`` is of, that it takes now."""
    duration_ns: Amount | None
    size_bytes: float | None
    evidence: Annotated[tuple[EvidenceContent, ...], msgspec.Meta(min_length=1)]
    causes: tuple[str, ...]
    remedies: tuple[RemedyContent, ...]
    effort: Effort
    risk: Risk
    knob: str | None
    """What ``pyrometer tune --only`` calls the experiment that would measure it."""


class NotLookedForContent(Content, frozen=True, kw_only=True):
    """A kind of finding that this run cannot tell of, and why."""

    kind: FindingKind
    reason: str


class StrengthContent(Content, frozen=True, kw_only=True):
    """Something efficient already, with the figure and the limit of the rule."""

    kind: StrengthKind
    subject: str
    value: float
    limit: float
    text: str


class TargetContent(Content, frozen=True, kw_only=True):
    """A target of the project beside this run; figures are in ``unit``."""

    name: str
    metric: str
    unit: Quantity
    written: str
    current: float | None
    low: float | None
    high: float | None
    exclusive: bool
    relative_to: RelativeTo | None
    reference: float | None
    improvement: float | None
    """How much the current figure must change: -0.2 is a fifth less; 0 where the target is met."""
    met: bool | None
    """null: cannot be told, for the ``reason``."""
    reason: str | None


class FindingsContent(Content, frozen=True, kw_only=True):
    """The file."""

    format: Literal["pyrometer-findings"] = FINDINGS_FORMAT
    version: Literal[1] = FINDINGS_VERSION
    program: ProgramContent
    run: RunContent
    verdict: str
    findings: tuple[FindingContent, ...]
    """Largest possible gain first; those without a bound last."""
    findings_not_shown: Annotated[int, msgspec.Meta(ge=0)]
    clear: tuple[FindingKind, ...]
    """Looked for, and not there."""
    not_looked_for: tuple[NotLookedForContent, ...]
    strengths: tuple[StrengthContent, ...]
    targets: tuple[TargetContent, ...]
    """Empty where the project sets none."""


def render_findings_json(observed: Observed, findings: Findings, targets: Sequence[TargetResult] = ()) -> str:
    """The text of the file: what it is first, a line for each figure."""
    content = findings_content(observed.run, findings, targets)
    # In this order, which is not that of the keys with defaults.
    head = {"format": content.format, "version": content.version}
    return json.dumps({**head, **msgspec.to_builtins(content)}, allow_nan=False, indent=2) + "\n"


def findings_content(run: Run, findings: Findings, targets: Sequence[TargetResult]) -> FindingsContent:
    """The same as a value."""
    git = run.program.git
    return FindingsContent(
        program=ProgramContent(
            name=run.program.name,
            argv=run.program.argv,
            working_directory=run.program.working_directory,
            commit=None if git is None else git.commit,
            has_uncommitted_changes=None if git is None else git.dirty,
        ),
        run=RunContent(
            started_at=run.started_at,
            pyrometer_version=run.pyrometer_version,
            profiled_ns=run.profiled_ns,
            outcome=run.outcome.status,
        ),
        verdict=findings.verdict,
        findings=tuple(map(_finding, findings.found)),
        findings_not_shown=findings.not_shown,
        clear=findings.clear,
        not_looked_for=tuple(
            NotLookedForContent(kind=missed.kind, reason=missed.reason) for missed in findings.not_looked_for
        ),
        strengths=tuple(map(_strength, findings.strengths)),
        targets=tuple(map(_target, targets)),
    )


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer findings, format version {FINDINGS_VERSION}",
        **msgspec.json.schema(FindingsContent),
    }
    return json.dumps(schema, indent=2) + "\n"


def _finding(finding: Finding) -> FindingContent:
    gain = finding.gain
    return FindingContent(
        rank=finding.rank,
        kind=finding.kind,
        what=finding.what,
        priority=finding.priority,
        gain_class=finding.gain_class,
        gain=None
        if gain is None
        else GainContent(share=gain.share, of=gain.of, basis=gain.basis, speedup=gain.speedup),
        place=_place(finding.place),
        share=finding.share,
        duration_ns=finding.duration_ns,
        size_bytes=finding.size_bytes,
        evidence=tuple(
            EvidenceContent(text=evidence.text, see=evidence.see) for evidence in finding.evidence
        ),
        causes=finding.causes,
        remedies=tuple(
            RemedyContent(text=remedy.text, snippet=remedy.snippet, language=remedy.language)
            for remedy in finding.remedies
        ),
        effort=finding.effort,
        risk=finding.risk,
        knob=finding.knob,
    )


def _place(place: Place) -> PlaceContent:
    return PlaceContent(
        steps=place.group,
        phase=place.phase,
        module=place.module,
        function=place.function,
        operator=place.operator,
        loader=place.loader,
    )


def _strength(strength: Strength) -> StrengthContent:
    return StrengthContent(
        kind=strength.kind,
        subject=strength.subject,
        value=strength.value,
        limit=strength.limit,
        text=strength.text,
    )


def _target(target: TargetResult) -> TargetContent:
    return TargetContent(
        name=target.name,
        metric=target.metric,
        unit=target.quantity,
        written=target.written,
        current=target.current,
        low=target.low,
        high=target.high,
        exclusive=target.exclusive,
        relative_to=target.relative_to,
        reference=target.reference,
        improvement=target.improvement,
        met=target.met,
        reason=target.reason,
    )


if __name__ == "__main__":
    sys.stdout.write(schema_text())
