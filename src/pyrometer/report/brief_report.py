"""The brief report: fit for a comment on a pull request, never longer than a screen."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.targets import TargetResult
from pyrometer.report.adding_up import decimals_for, time_unit, written_to_sum
from pyrometer.report.blocks import Block, Column, Lines, Row, Section, Table
from pyrometer.report.document import Document
from pyrometer.report.in_short import cost_line, generation_lines, loss_line, memory_line, target_lines
from pyrometer.report.sample_wording import place
from pyrometer.report.standard_report import short_findings
from pyrometer.report.torch_wording import describe_group, describe_which_steps
from pyrometer.units import format_duration

_MOST_PHASES = 9
_MOST_FUNCTIONS = 5
_MOST_LINES = 2
_MORE = "More: pyrometer report RUN; as Markdown with --format markdown --level deep."


def build_brief_sections(document: Document, targets: Sequence[TargetResult] = ()) -> Iterator[Section]:
    """Phases, findings and functions, at most a few rows each, and the rest in a line each."""
    torch = document.torch
    if torch is not None and torch.main is not None:
        lines = Lines(lines=(describe_which_steps(torch.main),))
        title = f"Phases: {describe_group(torch.main)}"
        yield Section(title=title, blocks=(_phases(torch.main), lines))
    yield Section(title="Findings", blocks=tuple(short_findings(document)))
    functions = tuple(_functions(document))
    if functions:
        yield Section(title="Most CPU time" if document.samples else "Most time", blocks=functions)
    in_lines = (
        *list(generation_lines(document))[:_MOST_LINES],
        memory_line(document),
        *target_lines(targets),
        f"{cost_line(document.run)} {loss_line(document)}",
        _MORE,
    )
    yield Section(title="In short", blocks=(Lines(lines=in_lines),))


def _phases(group: GroupResult) -> Table:
    """The largest phases in their order, the others together; the columns add up."""
    largest = sorted(group.phases, key=lambda phase: -phase.share)[:_MOST_PHASES]
    shown = [phase for phase in group.phases if phase in largest]
    others = [phase for phase in group.phases if phase not in largest]
    names = [phase.name for phase in shown] + ([f"{len(others)} others"] if others else [])
    times_ns = [phase.mean_ns for phase in shown] + ([sum(one.mean_ns for one in others)] if others else [])
    shares = [phase.share for phase in shown] + ([sum(one.share for one in others)] if others else [])
    size_ns, unit = time_unit(group.steady.mean_ns)
    total = group.steady.mean_ns / size_ns
    times = written_to_sum([one / size_ns for one in times_ns], total, decimals=decimals_for(total))
    percents = written_to_sum([100 * share for share in shares], 100, decimals=1)
    rows = [
        Row(name=name, cells=(time, percent))
        for name, time, percent in zip(names, times, percents, strict=False)
    ]
    rows.append(Row(name="step", cells=(times[-1], percents[-1]), total=True))
    columns = (Column(heading=f"{unit} a step"), Column(heading="%"))
    return Table(names="phase", columns=columns, rows=tuple(rows))


def _functions(document: Document) -> Iterator[Block]:
    samples = document.samples
    if samples is not None and samples.overall.parts.cpu_ns:
        rows = tuple(
            Row(
                name=function.name,
                cells=(
                    f"{100 * function.own.cpu_ns / samples.overall.parts.cpu_ns:.1f}",
                    f"{100 * function.total_cpu_ns / samples.overall.parts.cpu_ns:.1f}",
                    place(function.file, function.first_line),
                ),
            )
            for function in samples.functions[:_MOST_FUNCTIONS]
            if function.own.cpu_ns
        )
        columns = (Column(heading="self %"), Column(heading="total %"), Column(heading="where", left=True))
        yield Table(names="function", columns=columns, rows=rows)
    elif document.scopes:
        largest = sorted(document.scopes, key=lambda scope: -scope.self_ns)[:_MOST_FUNCTIONS]
        rows = tuple(
            Row(name=scope.name, cells=(format_duration(scope.self_ns), format_duration(scope.total_ns)))
            for scope in largest
        )
        yield Table(names="scope", columns=(Column(heading="self"), Column(heading="total")), rows=rows)
