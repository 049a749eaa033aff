"""All findings of a run, ranked."""

from pyrometer.analysis.findings.model import FindingKind, Findings, NotLookedFor
from pyrometer.analysis.observed import Observed


def find(observed: Observed) -> Findings:
    """What is worth changing in this run, what was looked for in vain, and what could not be looked for."""
    torch = observed.torch
    return Findings(
        found=(),
        not_shown=0,
        clear=(),
        not_looked_for=tuple(NotLookedFor(kind=kind, reason="not looked for yet") for kind in FindingKind),
        strengths=() if torch is None else torch.strengths,
        verdict="Nothing was looked for.",
    )
