"""What a finding is, before any words are laid out on a page.

A gain is an upper bound worked out from the evidence, by Amdahl's law: what would be saved if the part
at fault took no time at all. It is called that until an experiment has measured it.
"""

from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.hotspots import Priority, Strength

MOST_FINDINGS = 20
CRITICAL_GAIN = 0.30
LARGE_GAIN = 0.10
MIDDLE_GAIN = 0.05
SMALL_GAIN = 0.02

PRIORITY_RULE = (
    "Priority by the most that could be gained: CRITICAL from 30 %, HIGH above 10 %, MEDIUM from 2 %, "
    "LOW below, and where no figure bounds it."
)


class FindingKind(Enum):
    """What can be found; the value is its name for programs, and in the docs."""

    INPUT_BOUND = "input-bound"
    TOO_FEW_WORKERS = "too-few-workers"
    IDLE_WORKERS = "idle-workers"
    WORKERS_RESTART = "workers-restart"
    SLOW_COLLATE = "slow-collate"
    SLOW_TRANSFORM = "slow-transform"
    OPTIMIZER_LOOP = "optimizer-loop"
    TINY_OPERATORS = "tiny-operators"
    NO_CACHE = "no-key-value-cache"
    ALLOCATION_CHURN = "allocation-churn"
    SYNCHRONISING = "synchronising-calls"
    UNUSED_GRADIENTS = "unused-gradients"
    COPIES = "copies-and-casts"
    DOUBLE_PRECISION = "double-precision"
    TOO_MANY_THREADS = "too-many-threads"
    SMALL_BATCH = "small-batch"
    GARBAGE_COLLECTION = "garbage-collection"
    MEMORY_GROWTH = "memory-growth"
    LONG_TAIL = "long-tail"
    FIRST_CALL = "first-call"
    HOT_PYTHON = "hot-python"
    OUTSIDE_PHASES = "outside-phases"
    MEMORY_BOUND = "memory-bound"
    STRIDED_ACCESS = "strided-access"
    STALLS = "saving-and-logging"
    GRAPH_BREAKS = "graph-breaks"
    GPU_IDLE = "gpu-idle"
    LAUNCH_BOUND = "gpu-launch-bound"


class GainClass(Enum):
    """How large a gain can be at most."""

    LARGE = "> 10 %"
    MIDDLE = "5–10 %"
    SMALL = "2–5 %"
    TRACE = "< 2 %"
    UNKNOWN = "not bounded by what was measured"


class GainOf(Enum):
    """What a gain is a share of."""

    STEP = "a step's time"
    TOKEN = "a token's time"  # noqa: S105 - no password: what a model makes
    RUN = "the run's time"
    MEMORY = "peak memory"


class Effort(Enum):
    """What the change asks of a person, which is also the horizon of a plan."""

    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"


class Risk(Enum):
    """What the change can do to the results."""

    NONE = "same results"
    ROUNDING = "results differ by rounding"
    LEARNING = "may change how the model learns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where it is, as far as that is known."""

    group: str | None = None
    """The kind of steps, by its label."""
    phase: str | None = None
    module: str | None = None
    function: str | None = None
    """With its file and line: ``load (data.py:12)``."""
    operator: str | None = None
    loader: str | None = None

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What is known, each with its kind."""
        named = (
            ("steps", self.group),
            ("phase", self.phase),
            ("module", self.module),
            ("function", self.function),
            ("operator", self.operator),
            ("loader", self.loader),
        )
        return tuple((kind, name) for kind, name in named if name is not None)


def function_place(name: str, file: str, line: int | None) -> str:
    """A function as ``Place.function`` has it; native code, which is never a place, has no line."""
    return f"{name} ({file}:{line})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured figure in a sentence, and where in the report it stands."""

    text: str
    see: str
    """The title of the section, or the beginning of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """An upper bound, from the evidence alone."""

    share: float
    """Of ``of``, that would be saved: 0 to 1."""
    of: GainOf
    basis: str
    """How it was worked out."""

    @property
    def speedup(self) -> float | None:
        """How many times as fast it could get at most; None of memory, and where nothing would be left."""
        if self.of is GainOf.MEMORY or self.share >= 1:
            return None
        return 1 / (1 - self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something to try."""

    text: str
    snippet: str | None = None
    """The change as code, in a line or a few."""
    language: str = "python"
    """Of the snippet: ``python``, or ``bash`` for what is typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something worth changing. There is none without evidence."""

    rank: int
    """From 1, by possible gain."""
    kind: FindingKind
    what: str
    """In a sentence without a full stop."""
    place: Place
    share: float | None
    """Of the time of a step, or of what ``gain`` is of, that it takes now; None where that is not known."""
    duration_ns: float | None
    """The same as a time: in a step, a token, or the run."""
    size_bytes: float | None
    """What it takes in memory."""
    gain: Gain | None
    """None: nothing that was measured bounds it."""
    evidence: tuple[Evidence, ...]
    causes: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    effort: Effort
    risk: Risk
    knob: str | None
    """What ``pyrometer tune --only`` calls the experiment that would measure it; None: there is none."""

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"a finding without evidence: {self.what}")

    @property
    def gain_class(self) -> GainClass:
        """By the most that could be gained."""
        return GainClass.UNKNOWN if self.gain is None else gain_class_of(self.gain.share)

    @property
    def priority(self) -> Priority:
        """By ``PRIORITY_RULE``."""
        return Priority.LOW if self.gain is None else finding_priority(self.gain.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLookedFor:
    """A kind of finding that this run cannot tell of."""

    kind: FindingKind
    reason: str
    """What is missing, and how to have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All there is to say of a run. Each kind is in one of ``found``, ``clear`` and ``not_looked_for``."""

    found: tuple[Finding, ...]
    """At most ``MOST_FINDINGS``, largest possible gain first; those without a bound last."""
    not_shown: int
    clear: tuple[FindingKind, ...]
    """Looked for, and not there."""
    not_looked_for: tuple[NotLookedFor, ...]
    strengths: tuple[Strength, ...]
    """What is efficient already."""
    verdict: str
    """The run in one sentence, with its full stop; and another where the machine was busy with others."""


def gain_class_of(share: float) -> GainClass:
    """The class of a gain: above 10 %, from 5 %, from 2 %, or below."""
    if share > LARGE_GAIN:
        return GainClass.LARGE
    if share >= MIDDLE_GAIN:
        return GainClass.MIDDLE
    return GainClass.SMALL if share >= SMALL_GAIN else GainClass.TRACE


def finding_priority(share: float) -> Priority:
    """The priority of a gain, by ``PRIORITY_RULE``."""
    if share >= CRITICAL_GAIN:
        return Priority.CRITICAL
    if share > LARGE_GAIN:
        return Priority.HIGH
    return Priority.MEDIUM if share >= SMALL_GAIN else Priority.LOW
