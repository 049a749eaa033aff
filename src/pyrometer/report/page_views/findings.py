"""Findings with their evidence, what is good already, what is not there and what cannot be told."""

from collections.abc import Sequence

from pyrometer.analysis.findings.model import PRIORITY_RULE, Evidence, Finding, Findings
from pyrometer.analysis.targets import TargetResult
from pyrometer.report.findings_wording import (
    current_figure,
    describe_strengths,
    how_to_measure,
    percent,
    times,
)
from pyrometer.report.page_views.blocks import Block, from_sections, name_of, plain, view
from pyrometer.report.targets_section import build_target_section
from pyrometer.report.torch_wording import sentence

# The beginnings of the sections' titles in the other reports, each with the view that has the same.
_VIEWS = (
    ("allocation", "memory"),
    ("lines that allocate", "memory"),
    ("memory", "memory"),
    ("garbage", "memory"),
    ("phases", "phases"),
    ("other steps", "phases"),
    ("first step", "phases"),
    ("warm-up", "phases"),
    ("steps and phases", "phases"),
    ("steps", "steps"),
    ("hotspots", "overview"),
    ("modules", "modules"),
    ("the model", "modules"),
    ("compilation", "modules"),
    ("roofline", "roofline"),
    ("operators", "operators"),
    ("data loading", "loading"),
    ("generation", "generation"),
    ("flame graph", "flamegraph"),
    ("the flame graph", "functions"),
    ("functions", "functions"),
    ("where the time goes", "functions"),
    ("outside any phase", "functions"),
    ("lines", "functions"),
    ("hot paths", "functions"),
    ("native functions", "functions"),
    ("scopes", "scopes"),
    ("tree", "scopes"),
    ("call tree", "scopes"),
    ("threads", "scopes"),
    ("hardware counters", "counters"),
    ("simulated", "counters"),
    ("cache", "counters"),
    ("losses", "cost"),
    ("own cost", "cost"),
    ("the profiler", "cost"),
    ("machine", "machine"),
)


def view_of_section(title: str) -> str | None:
    """The view that shows what a section of this title says; None where there is none."""
    lowered = title.casefold()
    return next((key for beginning, key in _VIEWS if lowered.startswith(beginning)), None)


def build_findings_view(findings: Findings, targets: Sequence[TargetResult] = ()) -> Block:
    """All of it, most to gain first; then the project's targets."""
    block: Block = {
        "type": "findings",
        "verdict": plain(findings.verdict),
        "rule": PRIORITY_RULE,
        "found": [finding_block(finding) for finding in findings.found],
        "notShown": findings.not_shown,
        "strengths": [plain(text) for text in describe_strengths(findings)],
        "clear": [kind.value for kind in findings.clear],
        "notLookedFor": [
            {"kind": one.kind.value, "reason": plain(one.reason)} for one in findings.not_looked_for
        ],
    }
    aims = build_target_section(targets)
    blocks = [block, *from_sections(() if aims is None else (aims,))]
    return view("findings", "Findings", blocks, count=len(findings.found))


def finding_block(finding: Finding) -> Block:
    """A finding as the page shows it, opened or in a line."""
    return {
        "rank": finding.rank,
        "kind": finding.kind.value,
        "what": sentence(plain(finding.what)),
        "priority": finding.priority.value,
        "gainClass": finding.gain_class.value,
        "gain": _gain(finding),
        "basis": None if finding.gain is None else plain(finding.gain.basis),
        "place": [[kind, name_of(name)] for kind, name in finding.place.parts],
        "takes": current_figure(finding),
        "evidence": [_evidence(evidence) for evidence in finding.evidence],
        "causes": [plain(cause) for cause in finding.causes],
        "remedies": [
            {
                "text": plain(remedy.text),
                "snippet": None if remedy.snippet is None else _snippet(remedy.snippet),
            }
            for remedy in finding.remedies
        ],
        "effort": finding.effort.value,
        "risk": finding.risk.value,
        "measure": _measure(finding),
    }


def _measure(finding: Finding) -> str | None:
    # No command to copy: there is none yet.
    command = how_to_measure(finding)
    if command is None:
        return None
    return plain(f"Run it both ways to measure what it gains; {command} will, in a version to come.")


def _gain(finding: Finding) -> str | None:
    gain = finding.gain
    if gain is None:
        return None
    words = f"at most {percent(gain.share)} of {gain.of.value}"
    return words if gain.speedup is None else f"{words}, {times(gain.speedup)} as fast"


def _evidence(evidence: Evidence) -> Block:
    return {
        "text": plain(evidence.text),
        "see": plain(evidence.see),
        "view": view_of_section(evidence.see),
    }


def _snippet(snippet: str) -> str:
    return "\n".join(plain(line) for line in snippet.split("\n"))
