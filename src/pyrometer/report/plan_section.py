"""The plan: what to do now, soon and later, with what it could gain at most and what it risks."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.findings.model import Finding
from pyrometer.analysis.plan import PLAN_RULE, Plan, Stage, Total
from pyrometer.report.blocks import Block, Column, Heading, Lines, Row, Section, Table, notes
from pyrometer.report.findings_wording import NOTHING_FOUND, gain_text, percent, times, where
from pyrometer.report.torch_wording import sentence, short

PLAN_TITLE = "Plan"

_COLUMNS = (
    Column(heading="where", left=True),
    Column(heading="at most"),
    Column(heading="of", left=True),
    Column(heading="risk", left=True),
    Column(heading="priority", left=True),
)


def build_plan_section(plan: Plan) -> Section:
    """The three horizons, each with its findings and totals, then all together; or that there is nothing."""
    if not any(stage.findings for stage in plan.stages):
        return Section(title=PLAN_TITLE, blocks=(Lines(lines=(NOTHING_FOUND,)),))
    blocks: list[Block] = []
    for stage in plan.stages:
        blocks += _stage(stage)
    blocks.append(Heading(text="All of it"))
    blocks.append(_totals(plan.totals))
    return Section(title=PLAN_TITLE, blocks=(*blocks, *notes([PLAN_RULE])))


def describe_total(total: Total) -> str:
    """What findings together could gain at most, in a sentence."""
    conservative, optimistic = total.speedups
    steps = "" if total.group is None else f", {short(total.group)}"
    faster = "" if conservative is None else f" ({times(conservative)})"
    if total.optimistic is None or optimistic is None:
        more = "optimistically not bounded: together they are all of it"
    else:
        more = f"{percent(total.optimistic)} ({times(optimistic)}) optimistically: upper bounds"
    return (
        f"{sentence(total.of.value)}{steps}: at most {percent(total.conservative)}{faster} conservatively, "
        f"{more}."
    )


def _stage(stage: Stage) -> Iterator[Block]:
    yield Heading(text=f"{sentence(stage.horizon.value)}: {stage.effort.value} of work")
    if not stage.findings:
        yield Lines(lines=("Nothing.",))
        return
    yield Table(names="what", columns=_COLUMNS, rows=tuple(_rows(stage.findings)))
    yield _totals(stage.totals)


def _totals(totals: Sequence[Total]) -> Lines:
    if not totals:
        return Lines(lines=("No bound is known for the time it takes.",))
    return Lines(lines=tuple(map(describe_total, totals)))


def _rows(found: Sequence[Finding]) -> Iterator[Row]:
    for finding in found:
        yield Row(
            name=f"{finding.rank}. {finding.what}",
            cells=(
                where(finding.place, briefly=True),
                gain_text(finding, marked=False),
                "" if finding.gain is None else finding.gain.of.value,
                finding.risk.value,
                finding.priority.value,
            ),
        )
