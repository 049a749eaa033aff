"""What a run was a run of, fact by fact, and whether two runs may be compared.

Figures of two runs say something about the code only where all else is the same. What must be is
refused where it differs or is not known; a machine that may be another one, or what the profiler watched,
which costs, leaves a trend, without a verdict; other code is what a comparison is for, and only told, as
another Pyrometer is. No text here is made safe for a terminal: values are what programs chose them to be.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.probes import Probes, compare_probes, probes_of
from pyrometer.analysis.steps import chosen_steps
from pyrometer.errors import UsageError
from pyrometer.record.run import Run

NOT_RECORDED = "not recorded"
NOT_USED = "not used"


class Weight(Enum):
    """What a difference in a fact means for the comparison."""

    REFUSED = "refused"
    """The figures are of different things."""
    TREND_ONLY = "trend only"
    """The machine, or what recording costs, may be another: figures can be looked at, and prove nothing."""
    NOTED = "noted"
    """The code, or Pyrometer, is not the same: told, and no reason not to compare."""


class Level(Enum):
    """Whether two runs may be compared."""

    REFUSED = "refused"
    TREND_ONLY = "trend only"
    COMPARABLE = "comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a fact is called in a sentence, and what a difference in it means."""

    label: str
    weight: Weight


RULES: Mapping[str, Rule] = {
    "code": Rule(label="commit", weight=Weight.NOTED),
    "dirty": Rule(label="uncommitted changes", weight=Weight.NOTED),
    "script": Rule(label="script's SHA-256", weight=Weight.NOTED),
    "program": Rule(label="program", weight=Weight.REFUSED),
    "inputs": Rule(label="arguments", weight=Weight.REFUSED),
    "steps": Rule(label="chosen steps", weight=Weight.REFUSED),
    "python": Rule(label="Python", weight=Weight.REFUSED),
    "torch": Rule(label="torch", weight=Weight.REFUSED),
    "blas": Rule(label="BLAS", weight=Weight.REFUSED),
    "threads": Rule(label="threads", weight=Weight.REFUSED),
    "cpu_flags": Rule(label="CPU flags", weight=Weight.REFUSED),
    "cpu_model": Rule(label="CPU", weight=Weight.TREND_ONLY),
    "usable_cores": Rule(label="usable cores", weight=Weight.TREND_ONLY),
    "gpu": Rule(label="GPU", weight=Weight.TREND_ONLY),
    "pyrometer": Rule(label="Pyrometer", weight=Weight.NOTED),
    "recorder": Rule(label="recorder", weight=Weight.TREND_ONLY),
    "watched": Rule(label="watched", weight=Weight.TREND_ONLY),
    "probes": Rule(label="measured limits", weight=Weight.TREND_ONLY),
}
"""By the facts' names, in the order in which they are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing a run is known by.

    ``value`` is None where it was not recorded, and where there is nothing to record: then it is not
    ``applicable``, as the version of torch is not to a program without torch.
    """

    name: str
    value: str | None
    applicable: bool = True

    @property
    def text(self) -> str:
        """The value, or why there is none."""
        if self.value is not None:
            return self.value
        return NOT_RECORDED if self.applicable else NOT_USED


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a run was a run of: a fact for each of ``RULES``, in that order."""

    facts: tuple[Fact, ...]
    probes: Probes | None
    """What the fact of that name says, as numbers."""

    def fact(self, name: str) -> Fact:
        """The fact of that name."""
        return next(fact for fact in self.facts if fact.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A fact that is not known to be the same on both sides."""

    name: str
    before: str
    after: str
    weight: Weight
    sentence: str
    """Both values in words, and what to do about one that is missing."""
    accepted: bool = False
    """Whether the user said that it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """Whether two runs may be compared, and all that differs, accepted differences included."""

    level: Level
    differences: tuple[Difference, ...]


def identity_of(run: Run) -> Identity:
    """What the run was a run of; what an older Pyrometer did not record is missing."""
    machine, git = run.machine, run.program.git
    probes = None if run.limits is None else probes_of(run.limits)
    gpu = None if run.torch is None else run.torch.gpu
    facts = (
        Fact(name="code", value=None if git is None else git.commit),
        Fact(
            name="dirty",
            value=None if git is None else ("yes" if git.dirty else "no"),
            applicable=git is not None,
        ),
        Fact(name="script", value=run.program.source_sha256),
        Fact(name="program", value=run.program.name),
        Fact(name="inputs", value=shlex.join(run.program.argv[1:]) or "(none)"),
        Fact(
            name="steps",
            value=None if run.torch is None else chosen_steps(run.torch),
            applicable=run.torch is not None,
        ),
        Fact(name="python", value=f"{run.software.python_implementation} {run.software.python_version}"),
        _torch(run),
        _blas(run),
        _threads(run),
        Fact(name="cpu_flags", value=None if machine.cpu_flags is None else " ".join(machine.cpu_flags)),
        Fact(name="cpu_model", value=machine.cpu_model),
        Fact(name="usable_cores", value=None if machine.usable_cores is None else str(machine.usable_cores)),
        Fact(name="gpu", value=None if gpu is None else gpu.name, applicable=gpu is not None),
        Fact(name="pyrometer", value=run.pyrometer_version),
        Fact(name="recorder", value=run.recorder),
        Fact(name="watched", value=", ".join(watched_in(run)) or "(none)"),
        Fact(name="probes", value=None if probes is None else probes.text),
    )
    return Identity(facts=facts, probes=probes)


def watched_in(run: Run) -> Iterator[str]:
    """What of the profiler was on, beside its recorder: it costs time and memory."""
    if run.samples is not None:
        yield f"{run.samples.samples_per_s:g} stacks/s"
        if run.samples.native_functions:
            yield "native functions"
    if run.allocations is not None:
        yield "memory" if run.allocations.python_bytes is None else "memory with Python's"
    if run.counters is not None and run.counters.hardware is not None:
        yield "hardware counters"
    if run.counters is not None and run.counters.simulated is not None:
        scope = run.counters.simulated.scope
        yield "simulated caches" if scope is None else f"simulated caches in {scope}"
    if run.torch is not None and run.torch.operators is not None:
        yield "operators"


def compare_identities(
    before: Identity,
    after: Identity,
    *,
    allowed: Collection[str] = frozenset(),
    sides: tuple[str, str] = ("before", "after"),
) -> Comparability:
    """Whether two runs may be compared, and every fact that is not known to be the same.

    ``allowed`` names facts whose difference the user accepts: they stay among the differences, and
    lower the level no more. ``sides`` is what the two are called in sentences.
    """
    check_fact_names(allowed)
    differences = []
    for name in RULES:
        sentence = _difference(name, before, after, sides)
        if sentence is not None:
            differences.append(_told(name, before, after, sentence, accepted=name in allowed))
    return Comparability(level=_level(differences), differences=tuple(differences))


def known_facts(identity: Identity) -> dict[str, str | None]:
    """Each fact by its name, None where it was not recorded."""
    return {fact.name: None if _is_missing(fact) else fact.text for fact in identity.facts}


def check_fact_names(names: Collection[str], *, also: Collection[str] = ()) -> None:
    """Raise ``UsageError`` for a name that no fact has; ``also`` are others that may be named."""
    unknown = sorted(set(names) - RULES.keys())
    if unknown:
        raise UsageError(
            f"there is no fact {unknown[0]!r} that could be allowed; there are: {', '.join((*RULES, *also))}"
        )


def check_baseline_side(identity: Identity) -> tuple[Difference, ...]:
    """Why nothing can be held against this side: its code is not that of a commit.

    A gate runs the baseline's code again, and gets only code that was committed back.
    """
    code, dirty = identity.fact("code"), identity.fact("dirty")
    if code.value is None:
        problem = "the baseline's commit is not recorded: record it again, from code in a git repository"
    elif dirty.value != "no":
        problem = (
            f"the baseline's code is not that of its commit {code.value[:12]}: commit, and record it again"
        )
    else:
        return ()
    name = "code" if code.value is None else "dirty"
    value = identity.fact(name).text
    return (Difference(name=name, before=value, after="", weight=Weight.REFUSED, sentence=problem),)


def _level(differences: Collection[Difference]) -> Level:
    weights = {difference.weight for difference in differences if not difference.accepted}
    if Weight.REFUSED in weights:
        return Level.REFUSED
    return Level.TREND_ONLY if Weight.TREND_ONLY in weights else Level.COMPARABLE


def _difference(name: str, before: Identity, after: Identity, sides: tuple[str, str]) -> str | None:
    """How the fact differs, or what of it is missing; None where it is known to be the same."""
    one, other = before.fact(name), after.fact(name)
    missing = [side for side, fact in zip(sides, (one, other), strict=True) if _is_missing(fact)]
    if missing:
        return _what_is_missing(name, missing)
    if name == "dirty":
        # Without a repository there is no commit either, which is told there.
        dirty = [side for side, fact in zip(sides, (one, other), strict=True) if fact.value == "yes"]
        return f"uncommitted changes: {' and '.join(dirty)}" if dirty else None
    if name == "probes" and before.probes is not None and after.probes is not None:
        reason = compare_probes(before.probes, after.probes)
        return None if reason is None else f"{RULES[name].label}: {reason}"
    if one == other:
        return None
    texts = _shown(name, one, other)
    return f"{RULES[name].label}: {texts[0]} ({sides[0]}), {texts[1]} ({sides[1]})"


def _is_missing(fact: Fact) -> bool:
    return fact.value is None and fact.applicable


def _what_is_missing(name: str, sides: list[str]) -> str:
    where = f"{RULES[name].label}: not recorded ({', '.join(dict.fromkeys(sides))})"
    if name == "probes":
        return f"{where}; measure them on that machine with: pyrometer limits, then record the run again"
    return where if RULES[name].weight is Weight.NOTED else f"{where}; record the run again"


def _told(name: str, before: Identity, after: Identity, sentence: str, *, accepted: bool) -> Difference:
    one, other = _shown(name, before.fact(name), after.fact(name))
    weight = RULES[name].weight
    return Difference(name=name, before=one, after=other, weight=weight, sentence=sentence, accepted=accepted)


def _shown(name: str, one: Fact, other: Fact) -> tuple[str, str]:
    """Both values, short enough to read: of a hundred CPU flags, those that only one side has."""
    if name != "cpu_flags" or one.value is None or other.value is None:
        return one.text, other.text
    flags, other_flags = one.value.split(), other.value.split()
    return _only(flags, other_flags), _only(other_flags, flags)


def _only(flags: list[str], others: list[str]) -> str:
    only = [flag for flag in flags if flag not in set(others)]
    return f"{len(flags)}, of which only here {' '.join(only)}" if only else f"{len(flags)}, none only here"


def _torch(run: Run) -> Fact:
    version = run.software.packages.get("torch") if run.torch is None else run.torch.torch_version
    return Fact(name="torch", value=version, applicable=version is not None)


def _blas(run: Run) -> Fact:
    loaded = run.torch is not None or bool({"torch", "numpy"} & run.software.packages.keys())
    blas = run.software.blas
    return Fact(name="blas", value=blas, applicable=blas is not None or loaded)


def _threads(run: Run) -> Fact:
    """Those of torch, where it is used, and what the environment asks of all libraries."""
    variables = run.software.thread_variables
    uses_torch = _torch(run).applicable
    threads = run.software.torch_threads
    if threads is None and run.torch is not None:
        threads = run.torch.intra_op_threads
    if variables is None or (uses_torch and threads is None):
        return Fact(name="threads", value=None)
    told = [f"{name}={value}" for name, value in sorted(variables.items())] or ["none set by the environment"]
    return Fact(name="threads", value=", ".join([f"torch {threads}", *told] if uses_torch else told))
