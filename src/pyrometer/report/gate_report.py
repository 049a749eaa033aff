"""A gate's report: for a terminal, and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence
from itertools import islice

from pyrometer.analysis.gate import Verdict
from pyrometer.analysis.gated import GatedLane
from pyrometer.report import gate_words as words
from pyrometer.report.blocks import Bullets, Column, Emphasis, Lines, Row, Section, Table, notes
from pyrometer.report.cells import COMPACT, SPACIOUS, Style
from pyrometer.report.comparison_sections import Shape, build_parts
from pyrometer.report.markdown_blocks import section_lines
from pyrometer.report.page import Page
from pyrometer.report.safe_text import for_markdown
from pyrometer.report.screen import DEFAULT_WIDTH

_NARROWEST = 40
_SHOWN_ROWS = 8
_SHOWN_NAMES = 10
_WHERE_THE_REST_IS = "all are in the JSON, -o FILE"


def render_gate_terminal(
    lanes: Sequence[GatedLane], *, width: int | None = None, color: bool = False, ascii_only: bool = False
) -> str:
    """The gate's verdict and its reasons, as text of at most ``width`` columns."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    content = [page.paragraph(words.headline(lanes), style="bold")]
    for section in build_sections(lanes, COMPACT):
        content += page.section(section)
    return page.render(iter(content))


def render_gate_markdown(lanes: Sequence[GatedLane]) -> str:
    """The same for a pull request: verdict and figures in sight, the rest folded."""
    return "\n".join(_markdown_lines(lanes)) + "\n"


def render_judged_markdown(lanes: Sequence[GatedLane]) -> str:
    """What was judged before a problem ended the gate, to stand below that."""
    return "\n".join(("What was judged before that:", *_section_lines(lanes))) + "\n" if lanes else ""


def _markdown_lines(lanes: Sequence[GatedLane]) -> Iterator[str]:
    yield f"# Pyrometer gate: {for_markdown(words.headline(lanes))}"
    yield from _section_lines(lanes)


def _section_lines(lanes: Sequence[GatedLane]) -> Iterator[str]:
    first, *rest = build_sections(lanes, SPACIOUS)
    yield from section_lines((first,))
    for section in rest:
        _, _, _, *content = section_lines((section,))
        yield from ("", f"<details><summary>{for_markdown(section.title)}</summary>", "")
        yield from content
        yield from ("", "</details>")


def build_sections(lanes: Sequence[GatedLane], style: Style) -> Iterator[Section]:
    """What was judged, where the change is, and how it was measured."""
    yield _verdicts(lanes)
    for lane in lanes:
        if lane.verdict is not Verdict.PASS or lane.changed:
            yield from _places(lane, style, several=len(lanes) > 1)
    yield _method(lanes)


def _verdicts(lanes: Sequence[GatedLane]) -> Section:
    trials = lanes[0].trials
    sides = (
        f"baseline:  {words.describe_side(trials.baseline)}",
        f"candidate: {words.describe_side(trials.candidate)}",
    )
    columns = (
        Column(heading="baseline"),
        Column(heading="candidate"),
        Column(heading="change"),
        Column(heading=words.interval_heading(lanes), dropped=1),
        Column(heading="pairs", dropped=2),
        Column(heading="verdict", left=True),
    )
    rows = tuple(_row(lane) for lane in lanes)
    return Section(
        title=f"Gate of {words.program_name(lanes)}",
        blocks=(
            Lines(lines=sides),
            Table(columns=columns, rows=rows, names="metric", whole_names=True),
            Bullets(lines=tuple(_sentences(lanes))),
        ),
    )


def _sentences(lanes: Sequence[GatedLane]) -> Iterator[str]:
    for lane in lanes:
        yield f"{lane.verdict.value}: {words.describe_verdict(lane)}"
        whose = f"{words.lane_name(lane)}: " if len(lanes) > 1 else ""
        yield from (f"{whose}{remark}" for remark in words.describe_samples(lane))
        yield from (f"{whose}{remark}" for remark in words.describe_other_memory(lane))
        yield from (f"{whose}{place}" for place in words.describe_places(lane))
    yield from _one_sided(lanes)


def _one_sided(lanes: Sequence[GatedLane]) -> Iterator[str]:
    """The benchmarks that only one side has: nothing is known of them, and they are not to go unnoticed."""
    for word, side, names in (
        ("new", "baseline", dict.fromkeys(name for lane in lanes for name in lane.new)),
        ("gone", "candidate", dict.fromkeys(name for lane in lanes for name in lane.gone)),
    ):
        left = len(names) - _SHOWN_NAMES
        more = f" and {left:,} more ({_WHERE_THE_REST_IS})" if left > 0 else ""
        if names:
            shown = ", ".join(map(words.short, islice(names, _SHOWN_NAMES)))
            yield f"{word}: {shown}{more}; not in the {side}, so not judged."


def _row(lane: GatedLane) -> Row:
    judgement = lane.judgement
    return Row(
        name=words.lane_name(lane),
        cells=(
            words.write_value(lane.before, lane),
            words.write_value(lane.after, lane),
            words.write_change(judgement.change),
            words.write_interval(judgement),
            f"{judgement.pairs}",
            lane.verdict.value,
        ),
        emphasis=Emphasis.STRONG if lane.verdict is Verdict.FAIL else Emphasis.NONE,
    )


def _places(lane: GatedLane, style: Style, *, several: bool) -> Iterator[Section]:
    for table in lane.tables:
        section = build_parts(
            table, Shape(style=style, top=_SHOWN_ROWS, where_the_rest_is=_WHERE_THE_REST_IS)
        )
        title = f"{section.title}, a {lane.trials.plan.unit}"
        yield Section(title=f"{words.lane_name(lane)}: {title}" if several else title, blocks=section.blocks)


def _method(lanes: Sequence[GatedLane]) -> Section:
    rules = dict.fromkeys(words.describe_rule(lane) for lane in lanes)
    losses = dict.fromkeys(loss for lane in lanes for loss in (*lane.trials.losses, *lane.unchecked))
    seen = [f"Could not be seen: {loss}" for loss in losses]
    return Section(
        title="How it was measured",
        blocks=(
            Bullets(lines=(*_plans(lanes), *rules, *seen)),
            *notes(("A stored time never gates: both sides ran here and now.",)),
        ),
    )


def _plans(lanes: Sequence[GatedLane]) -> Iterator[str]:
    """What holds for all of them once, and the rest with its lane."""
    told: dict[str, list[str]] = {}
    for lane in lanes:
        for line in words.describe_plan(lane.trials):
            told.setdefault(line, []).append(words.lane_name(lane))
    for line, names in told.items():
        yield line if len(names) == len(lanes) else f"{', '.join(names)}: {line}"
