"""Modules, as the tree of their calls and by name."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.modules import ModulePlace, ModuleRow, ModuleTable
from pyrometer.analysis.observed import Observed
from pyrometer.record.torch_run import Compilation
from pyrometer.report.page_views.blocks import (
    MOST_ROWS,
    Block,
    GridColumn,
    bullets,
    grid,
    heading,
    left_out,
    missing,
    text,
    view,
)
from pyrometer.report.page_views.steps import NO_TORCH
from pyrometer.report.torch_wording import describe_module_steps, describe_timed_backward
from pyrometer.units import compact_count, format_count, format_duration

_NO_MODULES = "No module was called while the profiler was on."
_HIDDEN = (
    "Compiled and scripted modules call no modules that could be seen: their rows have nothing below them."
)


def build_modules_view(observed: Observed) -> Block:
    """The tree, then the same modules by name."""
    torch = observed.torch
    if torch is None:
        return view("modules", "Modules", [missing(NO_TORCH)])
    if not torch.modules.roots:
        return view("modules", "Modules", [missing(_NO_MODULES)])
    modules = torch.modules
    notes = [*describe_module_steps(modules), *describe_timed_backward(modules)]
    notes += [_HIDDEN] if modules.hidden else []
    blocks = [
        heading("By place in the tree of calls"),
        _tree(modules, notes),
        heading("By name, wherever they are called"),
        _table(modules.rows[:MOST_ROWS], left_out(len(modules.rows) - MOST_ROWS)),
    ]
    if torch.compilation is not None:
        blocks += _compilation(torch.compilation)
    return view("modules", "Modules", blocks, count=len(modules.rows))


def _compilation(compilation: Compilation) -> Iterator[Block]:
    yield heading("Compilation")
    yield text(
        f"{format_count(compilation.graphs, 'graph')}, "
        f"{format_count(compilation.graph_breaks, 'graph break')}, "
        f"{format_count(compilation.recompilations, 'recompilation')}, "
        f"{format_duration(compilation.compile_ns)} spent compiling."
    )
    if compilation.break_reasons:
        yield bullets(
            f"Graph break{'' if number == 1 else f', {number:,} times'}: {reason}"
            for reason, number in compilation.break_reasons
        )


def _tree(modules: ModuleTable, notes: Sequence[str]) -> Block:
    facts = {row.name: row for row in modules.rows}
    places: list[ModulePlace] = []
    names: list[str] = []
    parents: list[int] = []
    above: list[int] = []
    for depth, place in modules.walk():
        del above[depth:]
        parent = above[-1] if above else -1
        outer = "" if parent < 0 else f"{places[parent].name}."
        hidden = "" if place.hidden is None else f" ({place.hidden})"
        names.append((place.name.removeprefix(outer) or place.name) + hidden)
        parents.append(parent)
        above.append(len(places))
        places.append(place)
    return grid(
        "modules-tree",
        heading="module",
        names=names,
        full_names=[place.name for place in places],
        parents=parents,
        columns=_tree_columns(places, [facts.get(place.name) for place in places]),
        notes=notes,
    )


def _tree_columns(places: Sequence[ModulePlace], facts: Sequence[ModuleRow | None]) -> list[GridColumn]:
    steps = [place.per_step for place in places]
    return [
        GridColumn(heading="class", unit="text", values=[place.kind for place in places]),
        GridColumn(
            heading="%",
            spelled="% of the step, forward and backward",
            unit="share",
            values=[place.share for place in places],
            bar=True,
        ),
        GridColumn(
            heading="forward",
            spelled="forward a step",
            unit="duration",
            values=[step.forward_ns for step in steps],
        ),
        GridColumn(
            heading="fwd self",
            spelled="forward a step, without the modules below",
            unit="duration",
            values=[step.forward_self_ns for step in steps],
        ),
        GridColumn(
            heading="backward",
            spelled="backward a step",
            unit="duration",
            values=[step.backward_ns for step in steps],
        ),
        GridColumn(
            heading="bwd self",
            spelled="backward a step, without the modules below",
            unit="duration",
            values=[step.backward_self_ns for step in steps],
        ),
        GridColumn(
            heading="calls", spelled="calls a step", unit="calls", values=[step.calls for step in steps]
        ),
        GridColumn(
            heading="allocated",
            spelled="allocated a step",
            unit="bytes",
            values=[step.allocated_bytes for step in steps],
        ),
        *_fact_columns(facts),
    ]


def _fact_columns(facts: Sequence[ModuleRow | None]) -> list[GridColumn]:
    return [
        GridColumn(
            heading="params",
            spelled="parameters, of the modules below too",
            unit="count",
            values=[None if row is None else row.parameters for row in facts],
        ),
        GridColumn(
            heading="output",
            spelled="output a call",
            unit="bytes",
            values=[None if row is None else row.output_bytes_per_call for row in facts],
        ),
        GridColumn(
            heading="FLOPs",
            spelled="FLOPs a forward call, by formula",
            unit="flops",
            values=[None if row is None else row.flops_per_call for row in facts],
            texts=[_at_least(row) for row in facts],
        ),
    ]


def _at_least(row: ModuleRow | None) -> str | None:
    if row is None or row.flops_per_call is None or not row.flops_are_at_least:
        return None
    return f"≥ {compact_count(round(row.flops_per_call))}"


def _table(rows: Sequence[ModuleRow], notes: Sequence[str]) -> Block:
    return grid(
        "modules",
        heading="module",
        names=[row.name for row in rows],
        columns=[
            GridColumn(heading="class", unit="text", values=[row.kind for row in rows]),
            GridColumn(
                heading="self %",
                spelled="% of the step without the modules below",
                unit="share",
                values=[row.self_share for row in rows],
                bar=True,
            ),
            GridColumn(
                heading="%", spelled="% of the step", unit="share", values=[row.share for row in rows]
            ),
            GridColumn(
                heading="self",
                spelled="forward and backward a step, without the modules below",
                unit="duration",
                values=[row.self_ns_per_step for row in rows],
            ),
            GridColumn(
                heading="total",
                spelled="forward and backward a step",
                unit="duration",
                values=[row.ns_per_step for row in rows],
            ),
            GridColumn(
                heading="forward, all",
                spelled="forward in all, while gradients were recorded",
                unit="duration",
                values=[row.forward.total_ns for row in rows],
            ),
            GridColumn(
                heading="no grad, all",
                spelled="forward in all, without gradients",
                unit="duration",
                values=[row.without_gradients.total_ns or None for row in rows],
            ),
            GridColumn(
                heading="bwd a pass",
                spelled="backward, a timed pass",
                unit="duration",
                values=[row.backward_ns_per_pass for row in rows],
            ),
            GridColumn(heading="places", unit="count", values=[row.places for row in rows]),
            *_fact_columns(rows),
        ],
        sort=1,
        notes=notes,
    )
