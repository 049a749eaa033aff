"""Every operator of torch in a short window of steps: what it took, on what, and for whom."""

from typing import Annotated

import msgspec

from pyrometer.record.samples import Row
from pyrometer.record.values import Count, Nanoseconds, Value

MAX_WINDOWS = 4
MAX_OPERATORS = 2_000
MAX_ORIGINS = 20_000
MAX_USES = 40_000
MAX_SHAPES = 8

OTHER_OPERATORS = "(other)"
"""What operators beyond ``MAX_OPERATORS`` are put together as."""


class Shapes(Row, frozen=True):
    """Calls of one operator with inputs of the same shapes."""

    shapes: str
    """``[32, 784] [256, 784] [256]``: one for each input that is a tensor."""
    calls: Count


class Operator(Value, frozen=True, kw_only=True):
    """All calls of one operator in the window."""

    name: str
    """As torch has it: ``aten::addmm``."""
    calls: Count
    total_ns: Nanoseconds
    """With the operators it called; calls inside a call of the same one are counted once."""
    self_ns: Nanoseconds
    """Without them."""
    shaped_calls: Count = 0
    """Calls whose inputs were looked at, in one step before the window; the three below are over these."""
    flops: Count | None = None
    """By torch's formulas; None: it has none for this one."""
    input_bytes: Count | None = None
    """Of the tensors it was given, views at the size they show; None: not known for every call."""
    shapes: Annotated[tuple[Shapes, ...], msgspec.Meta(max_length=MAX_SHAPES)] = ()
    """The most frequent first."""
    device_ns: Nanoseconds | None = None
    """What it started on a GPU; None without one."""


class Origin(Row, frozen=True):
    """For whom an operator worked."""

    kind: str
    """``call``: inside the call of the module. ``backward``: in the backward pass, for what that call
    had computed. ``accumulation``: adding up gradients, for no module in particular."""
    phase: str | None
    """The phase it ran in; None: in none."""
    module: str | None
    """Qualified name; None: called by no module."""
    scope: str | None
    """The program's innermost scope; of a backward pass that of the forward call."""


class Use(Row, frozen=True):
    """The calls of one operator for one origin."""

    operator: Count
    origin: Count
    calls: Count
    self_ns: Nanoseconds


class OperatorWindow(Value, frozen=True, kw_only=True):
    """A few steps in a row, with every operator in them.

    The operators' ``self_ns`` sum to ``covered_ns`` exactly, and the uses' to their operator's.
    """

    kind: str
    """As in ``StepGroup``."""
    label: str
    first_step: Count
    steps: Count
    total_ns: Nanoseconds
    """What these steps took, the cost of looking so closely with them."""
    covered_ns: Nanoseconds
    """In operators, summed over threads."""
    thread_covered_ns: Nanoseconds
    """The part of it on the thread that makes the steps: never more than ``total_ns``."""
    events: Count
    """Operators called."""
    operators: Annotated[tuple[Operator, ...], msgspec.Meta(max_length=MAX_OPERATORS)] = ()
    """Largest ``self_ns`` first."""
    origins: Annotated[tuple[Origin, ...], msgspec.Meta(max_length=MAX_ORIGINS)] = ()
    uses: Annotated[tuple[Use, ...], msgspec.Meta(max_length=MAX_USES)] = ()


class Operators(Value, frozen=True, kw_only=True):
    """What became of the wish to see operators."""

    asked_steps: Count
    """In each window."""
    left_out_steps: Count = 0
    """Steps that were slowed by looking, and are in no group of steps."""
    windows: Annotated[tuple[OperatorWindow, ...], msgspec.Meta(max_length=MAX_WINDOWS)] = ()
    """At most one for each kind of step."""
    reason: str | None = None
    """Why there is no window."""
