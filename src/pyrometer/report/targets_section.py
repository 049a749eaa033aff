"""Targets beside what a run measured: a table, and a list to tick off."""

from collections.abc import Sequence

from pyrometer.analysis.target_goals import Quantity
from pyrometer.analysis.targets import RelativeTo, TargetResult
from pyrometer.report.blocks import Checklist, Column, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.torch_wording import format_figure
from pyrometer.units import format_bytes, format_duration

TITLE = "Targets"

_TO_BE_REACHED = "to be reached"
_FROM_THIS_RUN = (
    "Targets in % or × are set from this run, for later ones to reach: with a baseline they are judged "
    "against that."
)
# Whatever goes for want of width, the list below says it too.
_COLUMNS = (
    Column(heading="current", dropped=2),
    Column(heading="target", dropped=1),
    Column(heading="improvement", spelled="improvement needed", dropped=3),
    Column(heading="met", left=True),
)


def build_target_section(results: Sequence[TargetResult]) -> Section | None:
    """The project's targets, those met and those not; None where it sets none."""
    if not results:
        return None
    table = Table(names="target", columns=_COLUMNS, rows=tuple(map(_row, results)), whole_names=True)
    from_this_run = any(result.relative_to is RelativeTo.THIS_RUN for result in results)
    checklist = Checklist(items=tuple((result.met, describe_target(result)) for result in results))
    return Section(title=TITLE, blocks=(table, checklist, *notes([_FROM_THIS_RUN] if from_this_run else [])))


def describe_target(result: TargetResult) -> str:
    """A target in a sentence: what it is, where it stands and where it is to be."""
    text = f"{spell_target(result)}: {goal_text(result)}"
    if result.reason is not None:
        return f"{text}; cannot be told: {result.reason}"
    now = f"{text}; {figure_text(result.current, result.quantity)} now"
    if result.met or result.improvement is None:
        return now
    return f"{now}, {_percent(result.improvement)} to go"


def is_to_be_reached(result: TargetResult) -> bool:
    """Whether it was set from this very run, which could not meet it."""
    return result.met is False and result.relative_to is RelativeTo.THIS_RUN


def spell_target(result: TargetResult) -> str:
    """Its name in words, and what it is."""
    return f"{result.name.replace('_', ' ')} ({result.metric})"


def goal_text(result: TargetResult) -> str:
    """Where the figure is to be: ``at least 4,160 samples/s (+30%)``."""
    low, high = (figure_text(end, result.quantity) for end in (result.low, result.high))
    if result.low is None and result.high is None:
        return result.written
    if result.low is None:
        text = f"below {high}" if result.exclusive else f"at most {high}"
    elif result.high is None:
        text = f"above {low}" if result.exclusive else f"at least {low}"
    elif low == high:
        text = f"at least {low}" if result.more_is_better else f"at most {high}"
    else:
        text = f"{low} to {high}"
    if result.relative_to is None:
        return text
    return f"{text} ({result.written}, from {result.relative_to.value})"


def figure_text(value: float | None, quantity: Quantity) -> str:
    """A figure with its unit, for people."""
    if quantity is Quantity.DURATION:
        return write_known(value, format_duration)
    if quantity is Quantity.SIZE:
        return write_known(value, format_bytes)
    return UNKNOWN_CELL if value is None else f"{format_figure(value)} {quantity.value}"


def _row(result: TargetResult) -> Row:
    return Row(
        name=result.name.replace("_", " "),
        cells=(
            figure_text(result.current, result.quantity),
            _short_goal(result),
            UNKNOWN_CELL if result.improvement is None else _percent(result.improvement),
            _met(result),
        ),
    )


def _short_goal(result: TargetResult) -> str:
    """The goal in a cell: ``≥ 4,160 samples/s``."""
    low, high = (figure_text(end, result.quantity) for end in (result.low, result.high))
    if result.low is None and result.high is None:
        return result.written
    if result.low is not None and result.high is not None:
        if low != high:
            # The unit once, where it is the same.
            number, _, unit = low.rpartition(" ")
            return f"{number if high.endswith(f' {unit}') else low} – {high}"
        return f"≥ {low}" if result.more_is_better else f"≤ {high}"
    if result.low is None:
        return f"< {high}" if result.exclusive else f"≤ {high}"
    return f"> {low}" if result.exclusive else f"≥ {low}"


def _met(result: TargetResult) -> str:
    if result.met is None:
        return UNKNOWN_CELL
    if result.met:
        return "yes"
    return _TO_BE_REACHED if is_to_be_reached(result) else "no"


def _percent(share: float) -> str:
    # A change that rounds to nothing is not nothing.
    decimals = 0 if abs(share) >= 0.0995 or share == 0 else 1
    text = f"{100 * share:+,.{decimals}f}"
    return "0 %" if share == 0 else f"{text} %"
