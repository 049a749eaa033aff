"""What a comparison says, before any words: changes, their verdicts, and tables whose parts make a whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.frame_tree import FrameTree
from pyrometer.analysis.gate import Look
from pyrometer.analysis.identity import Comparability
from pyrometer.record.trials import Trials
from pyrometer.stats.pooled import Interval


class Quantity(StrEnum):
    """What a figure is of; times, rates and shares of time need many runs to be judged."""

    DURATION = "duration"
    RATE = "rate"
    SHARE = "share"
    COUNT = "count"
    BYTES = "bytes"
    INSTRUCTIONS = "instructions"

    @property
    def is_timed(self) -> bool:
        """Whether it varies from run to run although nothing has changed."""
        return self in {Quantity.DURATION, Quantity.RATE, Quantity.SHARE}


class Verdict(StrEnum):
    """What became of a figure: of times the first three, of counts, bytes and shares the next."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no change"
    MORE = "more"
    FEWER = "fewer"
    SAME = "same"
    CANNOT_TELL = "cannot tell"


class Doubt(StrEnum):
    """Why there is no verdict."""

    FEW_RUNS = "few runs"
    """Fewer than ``LEAST_RUNS`` on a side."""
    NOT_INTERLEAVED = "not interleaved"
    """One side ran before the other: what changed on the machine meanwhile is in the figures too."""
    OTHER_MACHINE = "other machine"
    """The runs may be of different machines: a trend only."""
    WATCHED_OTHERWISE = "watched otherwise"
    """Other parts of the profiler were on, or its other recorder: what it costs is in times, memory and
    instructions."""
    UNDECIDED = "undecided"
    """The runs vary too much for the change there is."""
    TOO_SMALL = "too small"
    """Below ``LEAST_TESTED_SHARE`` of the whole, and so not tested."""
    VARIES = "varies"
    """A count that is not the same in all runs of one side, or is known only about."""
    SAMPLED = "sampled"
    """Shares of samples are looked at, and not judged."""
    NOT_MEASURED = "not measured"
    CONTROL = "control"
    """The control of a measurement differs, though it is the same code: the sides are disturbed unequally."""
    UNEVEN = "uneven"
    """A usual turn takes as long on both sides, and all turns together do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure on both sides.

    Of several runs a side it is the median over them; of a part of a whole, what that run has whose
    whole is the middle one. None is not measured, or, of a part that is new or has vanished, not there.
    ``doubt`` is set exactly when the verdict is "cannot tell". ``interval`` is of the relative change,
    where there are runs enough for one.
    """

    quantity: Quantity
    before: float | None
    after: float | None
    verdict: Verdict
    doubt: Doubt | None = None
    interval: Interval | None = None

    @property
    def absolute(self) -> float | None:
        """After less before; None where either was not measured."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def relative(self) -> float | None:
        """The same as a part of before; None where that is 0."""
        absolute = self.absolute
        return absolute / self.before if absolute is not None and self.before else None

    @property
    def grown(self) -> float:
        """After less before, where what is not there counts as 0."""
        return (self.after or 0.0) - (self.before or 0.0)


class Metric(StrEnum):
    """The figures of a whole run."""

    STEP = "step"
    """The median of the steady steps of the main group."""
    ALL_STEPS = "all steps"
    """The time of the steps of all kinds, warm-up too, for each of the main group."""
    SAMPLES_PER_SECOND = "samples per second"
    TOKENS_PER_SECOND = "tokens per second"
    DATA_SHARE = "share of data"
    """Of the steps' time, in which the program waited for data."""
    PROFILED = "profiled"
    """The whole profiled time: of programs without steps."""
    FIRST_TOKEN = "first token"  # noqa: S105 - a word of a text, no password
    GENERATED_PER_SECOND = "generated tokens per second"
    FORWARD_CALLS = "forward calls"
    BACKWARD_PASSES = "backward passes"
    BATCHES = "batches"
    SAMPLES = "samples"
    """Of a step of the main group."""
    TENSOR_BYTES = "tensor bytes"
    TENSOR_ALLOCATIONS = "tensor allocations"
    PEAK_HOST_BYTES = "peak host bytes"
    PEAK_GPU_BYTES = "peak GPU bytes"
    GRAPHS = "compiled graphs"
    GRAPH_BREAKS = "graph breaks"
    RECOMPILATIONS = "recompilations"
    SIMULATED_INSTRUCTIONS = "simulated instructions"
    HARDWARE_INSTRUCTIONS = "hardware instructions"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """A figure of the whole run; ``subject`` is which model generates, where it is about that."""

    metric: Metric
    subject: str | None
    change: Change


class Presence(StrEnum):
    """Whether a part is there on both sides. One that was renamed has vanished, and is new.

    New and vanished are what all runs of the one side have, and none of the other.
    """

    BOTH = "both"
    NEW = "new"
    VANISHED = "vanished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Where time came from: a sibling, or what stood around it, shrank by about as much."""

    name: str
    proven: bool
    """Whether both changes have a verdict; else it is a trend, as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """A phase, module, scope or operator, all figures a step where there are steps."""

    place: Place = field(repr=False)
    presence: Presence
    is_part: bool
    """False of scopes on other threads: their time is beside the whole, and not in it."""
    own: Change
    """Time of its own, without parts below: these add up."""
    calls: Change | None = None
    total: Change | None = None
    per_call: Change | None = None
    """A finished call of a scope, parts below included."""
    allocated: Change | None = None
    """Bytes of torch's CPU tensors, parts below included."""
    moved: Move | None = None

    @property
    def name(self) -> str:
        """What it is called where it stands."""
        return self.place.name

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top down to it."""
        return self.place.path


class PartsKind(StrEnum):
    """What the parts of a table are."""

    PHASES = "phases"
    MODULES = "modules"
    SCOPES = "scopes"
    OPERATORS = "operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsTable:
    """Parts that make up a whole: their ``own`` changes and ``rest`` are the change of ``whole``.

    Rows whose calls changed come first, then those whose own time changed most.
    """

    kind: PartsKind
    rows: tuple[PartChange, ...]
    whole: Change
    rest: Change
    """The whole less its parts, on both sides."""
    steps: tuple[int, int] | None
    """Over how many steps figures are, on both sides, all runs of it together; None: over the whole run."""
    with_warmup: bool
    measured_unit: str | None = None
    """``step``, ``call`` or ``program``, where it was measured by turns: of what its figures are medians."""
    is_cut: bool = False
    """Whether of each pair only those places were kept that take most: what not all kept is in the rest."""

    @property
    def unit(self) -> str | None:
        """Of what the figures are; None: of the whole run."""
        return self.measured_unit or (None if self.steps is None else "step")

    @property
    def explained(self) -> float:
        """The sum of the parts' changes."""
        return sum(row.own.grown for row in self.rows if row.is_part)

    @property
    def unexplained(self) -> float:
        """What the whole changed by beyond that."""
        return self.rest.grown


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionChange:
    """A function's share of the CPU time of its own, by samples; points are differences of shares."""

    name: str
    module: str
    presence: Presence
    change: Change
    before_margin: float | None
    """Half the 95 % interval of the share; None where it was not met."""
    after_margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTable:
    """Functions by the change of their share, largest first; the shares of each side sum to 1."""

    rows: tuple[FunctionChange, ...]
    samples: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameDiff:
    """The stacks of both sides as one tree, whose figures are those of after.

    A frame is the same on both sides by its name and module, below the same frames.
    """

    after: FrameTree
    before_cpu_ns: Sequence[int]
    """Of each node itself, as ``after.cpu_ns``."""
    samples: tuple[int, int]
    effective_samples: float
    """Of after, as in ``SampleResults``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """What one side is."""

    name: str
    """As the user named it."""
    program: str
    runs: int
    commit: str | None
    dirty: bool | None
    started_at: str
    """Of its first run."""
    steps_label: str | None
    """What makes the main group of steps; None without steps."""
    steps: int
    """Of that group, over all runs; likewise the next."""
    warmup_steps: int
    is_steady: bool
    """Whether the end of the warm-up was found, or given, in all runs."""
    unfinished: tuple[str, ...]
    """How the runs ended that did not finish."""
    step_kinds: tuple[str, ...] = ()
    """What makes the steps of each kind that there is, the main group's among them."""


class Part(StrEnum):
    """A part of a comparison that may be missing, because a run does not hold it."""

    STEPS = "steps"
    MODULES = "modules"
    SCOPES = "scopes"
    OPERATORS = "operators"
    SAMPLES = "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A part that could not be compared, and which sides do not hold it."""

    part: Part
    before: bool
    after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides compared. Where that was refused, there is nothing but the facts."""

    before: SideFacts
    after: SideFacts
    comparability: Comparability
    doubt: Doubt | None
    """Why no time is judged; None where times are."""
    metrics: tuple[MetricChange, ...] = ()
    tables: tuple[PartsTable, ...] = ()
    functions: FunctionTable | None = None
    frames: FrameDiff | None = None
    missing: tuple[Missing, ...] = ()
    trials: Trials | None = None
    """What was measured for it, turn by turn; None of runs that were recorded before."""
    look: Look | None = None
    """The planned look that gave its verdict, where it was measured."""

    @property
    def leading(self) -> MetricChange | None:
        """The figure a summary begins with: the step, or the whole time of a program without steps.

        Where steps of both sides work on other numbers of samples, it is how many of those a second, or of
        tokens where text is generated: a smaller batch is no faster program.
        """
        if self.trials is not None:
            return self.metrics[0]  # what was judged
        known = {one.metric: one for one in self.metrics}
        leading = [Metric.STEP, Metric.PROFILED]
        samples = known.get(Metric.SAMPLES)
        if samples is not None and samples.change.verdict in {Verdict.MORE, Verdict.FEWER}:
            leading = [Metric.SAMPLES_PER_SECOND, Metric.TOKENS_PER_SECOND, *leading]
        return next((known[metric] for metric in leading if metric in known), None)

    def table(self, kind: PartsKind) -> PartsTable | None:
        """The table of that kind."""
        return next((table for table in self.tables if table.kind is kind), None)
