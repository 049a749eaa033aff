"""Operators by their own time, with whom they worked for; what is in none is a row as well."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.operators import OperatorOrigin, OperatorResults, OperatorRow, OperatorTable
from pyrometer.report.blocks import (
    Column,
    Emphasis,
    Lines,
    Row,
    Section,
    Table,
    notes,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.report.safe_text import visible
from pyrometer.report.torch_wording import format_figure, sentence, short
from pyrometer.units import compact_count, format_count, format_duration

_ENGINE = "autograd::engine::evaluate_function: "
_COLUMNS = (
    Column(heading="calls", spelled="calls a step"),
    Column(heading="total", spelled="total a step", dropped=2),
    Column(heading="self", spelled="self a step"),
    Column(heading="%", spelled="% of the step"),
    Column(heading="GPU", spelled="GPU a step", dropped=1),
    Column(heading="FLOPs", spelled="FLOPs a step", dropped=3),
    Column(heading="input", spelled="input a step", dropped=4),
    Column(heading="most of it for", left=True, widest=24),
)
_UNKNOWN = ("", UNKNOWN_CELL)
_ORIGINS_NAMED = 3
_SHAPES_NAMED = 3


def build_operator_sections(
    operators: OperatorResults | None, style: Style, *, top: int
) -> Iterator[Section]:
    """One for each window, with its ``top`` operators; or why there is none."""
    if operators is None:
        return
    if not operators.windows:
        text = f"{sentence(operators.reason or 'no window was opened')}."
        yield Section(title="Operators", blocks=(Lines(lines=(text,)),))
    for window in operators.windows:
        table = Table(
            names="operator",
            columns=_COLUMNS,
            rows=tuple(_rows(window, style, top)),
            details="inputs and origins",
        )
        yield Section(
            title=f"Operators, by time of their own in {format_count(window.steps, 'step')}",
            blocks=(without_unknown_columns(table, _UNKNOWN), *notes(_notes(window, operators, style))),
        )


def _rows(window: OperatorTable, style: Style, top: int) -> Iterator[Row]:
    for operator in window.rows[:top]:
        yield _row(operator, style)
    folded = window.rows[top:]
    if folded:
        yield Row(
            name=f"… {len(folded):,} more",
            emphasis=Emphasis.FAINT,
            cells=_cells(
                calls=_calls(sum(row.calls_per_step for row in folded)),
                self_time=style.duration(sum(row.self_ns_per_step for row in folded)),
                share=style.share(sum(row.share for row in folded)),
            ),
        )
    yield Row(
        name="in no operator",
        total=True,
        cells=_cells(
            self_time=style.duration(window.outside_ns_per_step), share=style.share(window.outside_share)
        ),
    )


def _row(operator: OperatorRow, style: Style) -> Row:
    return Row(
        name=operator_name(operator.name),
        cells=_cells(
            calls=_calls(operator.calls_per_step),
            total=style.duration(operator.total_ns_per_step),
            self_time=style.duration(operator.self_ns_per_step),
            share=style.share(operator.share),
            device=write_known(operator.device_ns_per_step, style.duration),
            flops=write_known(operator.flops_per_step, lambda flops: compact_count(round(flops))),
            given=write_known(operator.input_bytes_per_step, style.size),
            origin=_largest_origin(operator.origins),
        ),
        details=tuple(_details(operator)) if style.wordy else (),
    )


def operator_name(name: str) -> str:
    """As torch has it, but for the autograd engine's, which would fill a line."""
    return f"engine: {name.removeprefix(_ENGINE)}" if name.startswith(_ENGINE) else name


def _cells(
    *,
    calls: str = "",
    total: str = "",
    self_time: str = "",
    share: str = "",
    device: str = "",
    flops: str = "",
    given: str = "",
    origin: str = "",
) -> tuple[str, ...]:
    return (calls, total, self_time, share, device, flops, given, origin)


def _largest_origin(origins: Sequence[OperatorOrigin]) -> str:
    if not origins:
        return UNKNOWN_CELL
    more = "" if len(origins) == 1 else f" +{len(origins) - 1:,}"
    return f"{origin_name(origins[0])}{more}"


def origin_name(origin: OperatorOrigin) -> str:
    """For whom an operator worked, in few words."""
    if origin.kind == "accumulation":
        return "adding gradients"
    caller = origin.module or origin.scope
    if origin.kind == "backward":
        return f"{visible(caller)}, backward" if caller else "backward"
    return visible(caller or origin.phase or "other")


def _details(operator: OperatorRow) -> Iterator[str]:
    if operator.shapes:
        shapes = ", ".join(
            f"{shapes.shapes} ({shapes.calls:,} ×)" for shapes in operator.shapes[:_SHAPES_NAMED]
        )
        yield f"Inputs in one step: {shapes}."
    if operator.origins:
        named = ", ".join(
            f"{short(origin_name(origin))} {100 * origin.share:.0f} %"
            for origin in operator.origins[:_ORIGINS_NAMED]
        )
        yield f"For: {named}."


def _notes(window: OperatorTable, operators: OperatorResults, style: Style) -> Iterator[str]:
    last = window.first_step + window.steps - 1
    steps = f"Steps {window.first_step:,} to {last:,}" if window.steps > 1 else f"Step {last:,}"
    slower = "" if window.slowdown is None else f", {format_figure(window.slowdown)} × one outside the window"
    yield f"{steps} ({window.kind}, {short(window.label)}): {format_duration(window.step_ns)} a step{slower}."
    if window.steps < operators.asked_steps:
        yield f"The window closed early: {format_count(operators.asked_steps, 'step')} had been asked for."
    if style.wordy:
        yield "Self times and what is in no operator make up the steps; totals hold operators called inside."
    if style.wordy and any(row.flops_per_step is not None for row in window.rows):
        yield "FLOPs by torch's formulas, and input bytes, from the inputs of one step before the window."
    if operators.left_out_steps:
        left_out = format_count(operators.left_out_steps, "step")
        yield (
            f"{sentence(left_out)} slowed by looking so closely are in no figure of steps and phases; "
            "averages of modules hold them."
        )


def _calls(calls: float) -> str:
    return compact_count(round(calls)) if calls >= 100 or float(calls).is_integer() else format_figure(calls)
