"""Findings made by hand: what reports show of them does not depend on what is looked for."""

from pyrometer.analysis.findings.model import (
    Effort,
    Evidence,
    Finding,
    FindingKind,
    Findings,
    Gain,
    GainOf,
    NotLookedFor,
    Place,
    Remedy,
    Risk,
)
from pyrometer.analysis.hotspots import LIMITS, Strength, StrengthKind

MS = 1_000_000


def make_finding(
    *,
    rank: int = 1,
    kind: FindingKind = FindingKind.OPTIMIZER_LOOP,
    what: str = "the optimizer updates each parameter by itself",
    place: Place | None = None,
    gain: float | None = 0.13,
    of: GainOf = GainOf.STEP,
    duration_ns: float | None = 1.3 * MS,
    size_bytes: float | None = None,
    evidence: str = "the optimizer takes 1.30 ms of a step of 10.0 ms",
    see: str = "Phases",
    cause: str = "foreach is off",
    remedy: str = "update all parameters at once",
    snippet: str | None = "torch.optim.Adam(model.parameters(), fused=True)",
    effort: Effort = Effort.MINUTES,
    risk: Risk = Risk.ROUNDING,
    knob: str | None = None,
) -> Finding:
    """A finding with one piece of evidence, one cause and one remedy."""
    return Finding(
        rank=rank,
        kind=kind,
        what=what,
        place=Place(phase="optimizer") if place is None else place,
        share=gain,
        duration_ns=duration_ns,
        size_bytes=size_bytes,
        gain=None if gain is None else Gain(share=gain, of=of, basis="if that took no time at all"),
        evidence=(Evidence(text=evidence, see=see),),
        causes=(cause,),
        remedies=(Remedy(text=remedy, snippet=snippet),),
        effort=effort,
        risk=risk,
        knob=knob,
    )


def make_findings(
    *found: Finding,
    not_shown: int = 0,
    clear: tuple[FindingKind, ...] = (),
    not_looked_for: tuple[NotLookedFor, ...] = (),
    strengths: tuple[Strength, ...] = (),
    verdict: str = "Nothing stands out.",
) -> Findings:
    """These findings, in this order."""
    return Findings(
        found=found,
        not_shown=not_shown,
        clear=clear,
        not_looked_for=not_looked_for,
        strengths=strengths,
        verdict=verdict,
    )


def no_findings() -> Findings:
    """Everything was looked for, and nothing found."""
    return make_findings(clear=tuple(FindingKind), verdict="No limit was met.")


def training_findings() -> Findings:
    """What could be said of ``tests.torch_runs.training_run``: one of each class, effort and risk."""
    return make_findings(
        make_finding(
            rank=1,
            kind=FindingKind.TINY_OPERATORS,
            what="the backward pass is made of many operators that do next to nothing",
            place=Place(group="Adam", phase="backward", module="model.fc1"),
            gain=0.35,
            duration_ns=3.5 * MS,
            evidence="212 operators a step, 16.5 µs each on average",
            see="Operators",
            cause="each operator has a fixed cost, whatever it computes",
            remedy="compile the model, which makes few operators of many",
            snippet="model = torch.compile(model)",
            effort=Effort.HOURS,
            risk=Risk.ROUNDING,
            knob="compile",
        ),
        make_finding(
            rank=2,
            kind=FindingKind.INPUT_BOUND,
            what="the steps wait for data",
            place=Place(group="Adam", phase="data", loader="DataLoader(TensorDataset)"),
            gain=0.10,
            duration_ns=MS,
            evidence="1.00 ms of a step of 10.0 ms is waited for the next batch",
            see="Data loading",
            cause="batches are made in the program's own process",
            remedy="make batches in worker processes, beside the steps",
            snippet=(
                "loader = DataLoader(\n    dataset, batch_size=32, num_workers=2, persistent_workers=True\n)"
            ),
            effort=Effort.MINUTES,
            risk=Risk.NONE,
            knob="workers",
        ),
        make_finding(rank=3, gain=0.04, snippet=None),
        make_finding(
            rank=4,
            kind=FindingKind.FIRST_CALL,
            what="the first step takes four times as long as a steady one",
            place=Place(group="Adam"),
            gain=0.01,
            of=GainOf.RUN,
            duration_ns=30 * MS,
            evidence="40.0 ms against 10.0 ms",
            see="First step against steady",
            cause="memory is asked for, and kernels are chosen, at first use",
            remedy="keep one process for many requests",
            snippet=None,
            effort=Effort.DAYS,
            risk=Risk.LEARNING,
        ),
        make_finding(
            rank=5,
            kind=FindingKind.MEMORY_GROWTH,
            what="memory grows with each step",
            place=Place(),
            gain=None,
            duration_ns=None,
            size_bytes=65_536,
            evidence="64.0 KiB a step, by a line through 13 samples",
            see="Memory",
            cause="something keeps what each step makes",
            remedy="keep figures, not tensors: loss.item()",
            snippet="losses.append(loss.item())",
            effort=Effort.HOURS,
            risk=Risk.NONE,
        ),
        not_shown=2,
        clear=(FindingKind.DOUBLE_PRECISION, FindingKind.TOO_MANY_THREADS, FindingKind.LONG_TAIL),
        not_looked_for=(
            NotLookedFor(kind=FindingKind.STRIDED_ACCESS, reason="caches were not simulated: --cachegrind"),
            NotLookedFor(kind=FindingKind.COPIES, reason="operators were not recorded: --ops"),
            NotLookedFor(kind=FindingKind.SYNCHRONISING, reason="operators were not recorded: --ops"),
        ),
        strengths=(
            Strength(
                kind=StrengthKind.LITTLE_OTHER,
                subject="Adam",
                value=0.01,
                limit=LIMITS[StrengthKind.LITTLE_OTHER],
            ),
        ),
        verdict="Overhead-bound: up to 35 % of a step goes into starting small operators.",
    )


def findings_named(name: str) -> Findings:
    """Findings in which all that comes from a run is this name."""
    everywhere = Place(group=name, phase=name, module=name, function=name, operator=name, loader=name)
    return make_findings(
        make_finding(
            what=name, place=everywhere, evidence=name, see=name, cause=name, remedy=name, snippet=name
        ),
        make_finding(rank=2, what=name, place=everywhere, gain=None, snippet=f"{name}\n{name}"),
        clear=(FindingKind.COPIES,),
        not_looked_for=(NotLookedFor(kind=FindingKind.GPU_IDLE, reason=name),),
        verdict=f"{name}.",
    )
