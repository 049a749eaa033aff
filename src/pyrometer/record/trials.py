"""What an experiment measured: pairs of fresh processes that took turns, every value kept."""

from typing import Annotated, Literal

import msgspec

from pyrometer.record.values import Count, Nanoseconds, Value

TRIALS_FORMAT: Literal["pyrometer-trials"] = "pyrometer-trials"
TRIALS_VERSION: Literal[1] = 1

LEAD_SPREAD = 1
"""So many more steps than planned may come before a turn, drawn anew for each round and alike for all sides.

With always the same number, what a program does in every fifth step, say, could fall into those that are
not timed in all rounds of all pairs.
"""
MAX_PAIRS = 1_000
MAX_KEPT_NODES = 300
"""Of a pair, the same on all sides: those that take most on any of them."""


class Round(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One turn of one process."""

    duration_ns: Nanoseconds
    steps: Annotated[int, msgspec.Meta(ge=1)]
    samples: Count | None
    preemptions: Count = 0
    """How often it lost its core to others meanwhile."""


class NodeFigures(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One place of the call tree in one process: medians over its turns, of a step."""

    path: tuple[str, ...]
    """As in ``pyrometer.record.turns``."""
    calls: float
    """A step, over all turns."""
    self_ns: float
    change_ns: float
    """Less what the baseline's process of the same pair took in the turn beside it; 0 for that one itself."""


class ProcessTurns(Value, frozen=True, kw_only=True):
    """What one process did in its turns."""

    rounds: tuple[Round, ...]
    warmup_ns: tuple[float, ...] = ()
    """What a step took in each of the last ten turns of the warm-up."""
    is_warm: bool
    """Whether the last five of those agreed with the five before within 2 %."""
    nodes: Annotated[tuple[NodeFigures, ...], msgspec.Meta(max_length=MAX_KEPT_NODES)] = ()
    peak_bytes: Count | None = None
    """The most it had resident."""
    peak_live_bytes: Count | None = None
    """The most it had allocated at once; None where that was not counted."""
    instructions: Count | None = None
    """In all of its timed steps; None where they were not counted."""
    note: str | None = None
    """What the program itself told, such as a checksum."""


class Pair(Value, frozen=True, kw_only=True):
    """One process of each side, and a second one of the baseline's as control."""

    hash_seed: Count
    baseline: ProcessTurns
    candidate: ProcessTurns
    control: ProcessTurns | None = None


class Plan(Value, frozen=True, kw_only=True):
    """How the processes take turns, the same for all of them; worked out on one that is not counted."""

    unit: Literal["step", "call", "program"]
    """What a round's ``steps`` are: of a PyTorch program, calls of a function, or whole programs."""
    warmup_turns: tuple[Count, ...]
    """Steps in each turn of the warm-up."""
    warmup_ns: tuple[float, ...]
    """What a step took in each of those, in the process that the plan was found out on."""
    is_warm: bool
    """Whether the last two windows of five of those agreed within 2 %."""
    lead_steps: Count
    """At the start of each turn, not timed; where there are any, now and then ``LEAD_SPREAD`` more."""
    turn_steps: Count
    rounds: Count
    in_blocks: bool
    """The waiting process is halted with its children, since those would go on working for it."""
    threads: Count | None
    """What libraries may use; None: what they choose."""
    step_ns: float
    """What a step took there, for the duration of the whole."""
    calls_per_step: Count = 1
    """Of a function that is called many times over."""
    few_steps: Count | None = None
    """Of a program that is measured as a whole although it has steps: how many, which are too few."""


class TrialSide(Value, frozen=True, kw_only=True):
    """One of the two programs."""

    name: str
    """A revision, a command, or ``working tree``."""
    command: str
    commit: str | None = None
    is_dirty: bool | None = None
    """Whether tracked files differ from the commit; None where there is no git."""
    identity: dict[str, str | None] = msgspec.field(default_factory=dict)
    """The facts of its first process, as in ``pyrometer.analysis.identity``."""


class Trials(Value, frozen=True, kw_only=True, omit_defaults=False):
    """All that an experiment has measured."""

    format: Literal["pyrometer-trials"] = TRIALS_FORMAT
    version: Literal[1] = TRIALS_VERSION
    pyrometer_version: str
    started_at: str
    program: str
    baseline: TrialSide
    candidate: TrialSide
    plan: Plan
    pairs: Annotated[tuple[Pair, ...], msgspec.Meta(max_length=MAX_PAIRS)]
    losses: tuple[str, ...] = ()
    """What could not be seen in the measured programs."""
