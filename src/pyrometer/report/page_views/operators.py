"""Operators, a table for each window, with whom each worked for below it."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.observed import Observed
from pyrometer.analysis.operators import OperatorOrigin, OperatorResults, OperatorRow, OperatorTable
from pyrometer.report.page_views.blocks import Block, GridColumn, grid, heading, missing, text, view
from pyrometer.report.page_views.steps import NO_TORCH
from pyrometer.report.torch_operators import operator_name, origin_name
from pyrometer.report.torch_wording import format_figure, sentence, short
from pyrometer.units import compact_share, format_count, format_duration

_COMMAND = "pyrometer run --ops PROGRAM.py"
_NOT_ASKED = (
    "Operators were not looked at: seeing every one slows a few steps, so it has to be asked for, "
    "by --ops or --deep."
)
_ORIGINS_LISTED = 12


def build_operators_view(observed: Observed) -> Block:
    """Each window, or why there is none."""
    title = "Operators"
    if observed.torch is None:
        return view("operators", title, [missing(NO_TORCH)])
    operators = observed.torch.operators
    if operators is None:
        return view("operators", title, [missing(_NOT_ASKED, command=_COMMAND)])
    if not operators.windows:
        reason = f"{sentence(operators.reason or 'no window was opened')}."
        return view("operators", title, [missing(reason, command=_COMMAND)])
    blocks: list[Block] = []
    for number, window in enumerate(operators.windows, start=1):
        blocks += _window_blocks(window, operators, number)
    return view("operators", title, blocks, count=len(operators.windows[0].rows))


def _window_blocks(window: OperatorTable, operators: OperatorResults, number: int) -> Iterator[Block]:
    last = window.first_step + window.steps - 1
    steps = f"Steps {window.first_step:,} to {last:,}" if window.steps > 1 else f"Step {last:,}"
    yield heading(f"{steps}: {window.kind}, {short(window.label)}")
    slower = "" if window.slowdown is None else f", {format_figure(window.slowdown)} × one outside the window"
    yield text(f"{format_duration(window.step_ns)} a step{slower}; {format_count(window.events, 'event')}.")
    yield _grid(window, operators, number)


def _grid(window: OperatorTable, operators: OperatorResults, number: int) -> Block:
    rows = _Rows()
    for operator in window.rows:
        rows.add_operator(operator)
    shown = [column.heading for column in rows.columns() if column.is_known]
    outside = {
        "self": format_duration(window.outside_ns_per_step),
        "%": compact_share(window.outside_share),
    }
    return grid(
        f"operators-{number}",
        heading="operator",
        names=rows.names,
        parents=rows.parents,
        columns=rows.columns(),
        sort=1,
        closed=True,
        total=("in no operator", [outside.get(heading, "") for heading in shown]),
        notes=_notes(window, operators),
    )


class _Rows:
    """The rows of a window: each operator, below it its origins and the shapes of its inputs."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int] = []
        self._cells: list[tuple[float | None, ...]] = []

    def add_operator(self, operator: OperatorRow) -> None:
        at = len(self.names)
        self._add(
            operator_name(operator.name),
            -1,
            operator.share,
            operator.self_ns_per_step,
            operator.total_ns_per_step,
            operator.calls_per_step,
            operator.device_ns_per_step,
            operator.flops_per_step,
            operator.input_bytes_per_step,
        )
        listed, others = operator.origins[:_ORIGINS_LISTED], operator.origins[_ORIGINS_LISTED:]
        for origin in listed:
            self._add_origin(f"for {origin_name(origin)}", at, operator, [origin])
        if others:
            self._add_origin(f"for {len(others):,} others", at, operator, others)
        for shapes in operator.shapes:
            self._add(f"inputs {shapes.shapes}, {shapes.calls:,} × in one step", at)

    def _add_origin(
        self, name: str, at: int, operator: OperatorRow, origins: Sequence[OperatorOrigin]
    ) -> None:
        share = sum(origin.share for origin in origins) * operator.share
        self_ns = sum(origin.self_ns_per_step for origin in origins)
        self._add(name, at, share, self_ns, None, sum(origin.calls_per_step for origin in origins))

    def _add(self, name: str, parent: int, *cells: float | None) -> None:
        self.names.append(name)
        self.parents.append(parent)
        self._cells.append((*cells, *[None] * (7 - len(cells))))

    def columns(self) -> list[GridColumn]:
        headings = (
            ("%", "% of the step, by time of its own", "share"),
            ("self", "time of its own a step", "duration"),
            ("total", "with the operators it calls, a step", "duration"),
            ("calls", "calls a step", "calls"),
            ("GPU", "on the GPU, a step", "duration"),
            ("FLOPs", "FLOPs a step, by torch's formulas", "flops"),
            ("input", "bytes of its inputs a step", "bytes"),
        )
        return [
            GridColumn(
                heading=name,
                spelled=spelled,
                unit=unit,
                values=[cells[index] for cells in self._cells],
                bar=unit == "share",
            )
            for index, (name, spelled, unit) in enumerate(headings)
        ]


def _notes(window: OperatorTable, operators: OperatorResults) -> Iterator[str]:
    if window.steps < operators.asked_steps:
        yield f"The window closed early: {format_count(operators.asked_steps, 'step')} had been asked for."
    yield "Self times and what is in no operator make up the steps; totals hold the operators called inside."
    if any(row.flops_per_step is not None for row in window.rows):
        yield "FLOPs by torch's formulas, and input bytes, from the inputs of one step before the window."
    if operators.left_out_steps:
        left_out = format_count(operators.left_out_steps, "step")
        yield (
            f"{sentence(left_out)} slowed by looking so closely are in no figure of steps and phases; "
            "averages of modules hold them."
        )
