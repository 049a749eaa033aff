"""Models side by side, and what a forward pass takes by the size of its batch."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.modules import ModuleRow, ModuleTable
from pyrometer.analysis.step_kinds import GroupKind
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.torch_run import Step
from pyrometer.report.blocks import Column, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.torch_wording import format_figure, name_group
from pyrometer.stats.rates import per, per_second
from pyrometer.units import format_bytes, format_count, format_duration

_MOST_MODELS = 10
_MOST_SIZES = 12
_FORWARD_KINDS = (GroupKind.INFERENCE, GroupKind.EVALUATION)


def build_model_tables(results: TorchResults) -> Iterator[Section]:
    """Root modules beside each other, and inference by batch size; nothing where there is neither."""
    models = _models(results.modules)
    if models:
        columns = (
            Column(heading="class", left=True, widest=30),
            Column(heading="forward", spelled="forward a call"),
            Column(heading="parameters"),
            Column(heading="size", spelled="size of the parameters"),
            Column(heading="% of the step"),
        )
        table = Table(names="model", columns=columns, rows=tuple(map(_model_row, models[:_MOST_MODELS])))
        yield Section(title="Models side by side", blocks=(table, *notes(_more(models))))
    rows = tuple(
        row for group in results.groups if group.nature.kind in _FORWARD_KINDS for row in _size_rows(group)
    )
    if rows:
        left_out = len(rows[_MOST_SIZES:])
        more = [f"{format_count(left_out, 'more size')} not shown."] if left_out else []
        table = _size_table(rows[:_MOST_SIZES])
        yield Section(title="Inference latency, by batch size", blocks=(table, *notes(more)))


def _models(modules: ModuleTable) -> list[ModuleRow]:
    roots = {place.name for place in modules.roots}
    return [row for row in modules.rows if row.name in roots and row.parameters]


def _more(models: Sequence[ModuleRow]) -> Iterator[str]:
    if len(models) > _MOST_MODELS:
        yield f"{format_count(len(models) - _MOST_MODELS, 'more model')} not shown."


def _model_row(row: ModuleRow) -> Row:
    calls = row.forward.calls + row.without_gradients.calls
    forward_ns = per(row.forward.total_ns + row.without_gradients.total_ns, calls)
    return Row(
        name=row.name,
        cells=(
            row.kind or UNKNOWN_CELL,
            write_known(forward_ns, format_duration),
            write_known(row.parameters, "{:,}".format),
            write_known(row.parameter_bytes, format_bytes),
            UNKNOWN_CELL if row.share is None else f"{100 * row.share:.1f}",
        ),
    )


def _size_rows(group: GroupResult) -> Iterator[Row]:
    """One for each size of batch, over the steps that were kept one by one, without the warm-up."""
    by_size: dict[int, list[Step]] = {}
    for step in group.series[group.warmup.steps :]:
        if step.samples:
            by_size.setdefault(step.samples, []).append(step)
    for size in sorted(by_size):
        durations_ns = [step.duration_ns for step in by_size[size]]
        mean_ns = sum(durations_ns) / len(durations_ns)
        yield Row(
            name=name_group(group),
            cells=(
                f"{size:,}",
                f"{len(durations_ns):,}",
                format_duration(min(durations_ns)),
                format_duration(mean_ns),
                format_duration(max(durations_ns)),
                format_duration(mean_ns / size),
                write_known(per_second(size, mean_ns), format_figure),
            ),
        )


def _size_table(rows: tuple[Row, ...]) -> Table:
    headings = ("batch size", "steps", "min", "avg", "max", "a sample", "samples/s")
    return Table(names="steps", columns=tuple(Column(heading=heading) for heading in headings), rows=rows)
