"""The history of programs as text: for a terminal, and as JSON."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from pyrometer.analysis.history import (
    LEAST_CHANGE,
    Change,
    Metric,
    PastRun,
    ProgramHistory,
    changed_circumstances,
    names_of,
)
from pyrometer.report.blocks import (
    Bullets,
    Column,
    Emphasis,
    Lines,
    Row,
    Section,
    Table,
    notes,
    without_unknown_columns,
)
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH, Screen
from pyrometer.stats.change_points import LEAST_SEGMENT
from pyrometer.units import (
    compact_bytes,
    compact_count,
    compact_duration,
    format_bytes,
    format_count,
    format_duration,
    format_share,
)

HISTORY_FORMAT = "pyrometer-history"
HISTORY_VERSION = 1

ADVISORY = (
    "Advisory only: a stored time also tells how busy the machine was, and never gates. To be sure, "
    "measure side by side: pyrometer compare --measure, pyrometer gate."
)

MOST_DRAWN = 16
"""Of how many runs at most the list of programs draws the trend."""
_NARROWEST = 40
_HEIGHTS = "▁▂▃▄▅▆▇█"
_NAMES = {
    Metric.STEP: "median step",
    Metric.THROUGHPUT: "samples/s",
    Metric.MEMORY: "peak memory",
    Metric.TOKENS: "tokens/s",
    Metric.DURATION: "profiled time",
}
_WRITTEN: dict[Metric, Callable[[float], str]] = {
    Metric.STEP: format_duration,
    Metric.THROUGHPUT: lambda rate: f"{rate:,.0f} samples/s" if rate >= 100 else f"{rate:.2f} samples/s",
    Metric.MEMORY: format_bytes,
    Metric.TOKENS: lambda rate: f"{rate:,.0f} tokens/s" if rate >= 100 else f"{rate:.2f} tokens/s",
    Metric.DURATION: format_duration,
}
_DROPPED_FIRST = ("p95", "took", "tokens/s", "peak", "samples/s", "commit")


def render_programs(
    histories: Sequence[ProgramHistory], *, remarks: Iterable[str], screen: Screen | None = None
) -> str:
    """All programs, each with its latest figures and how one of them went; those of a project together."""
    sections = [
        _program_section(project, list(members))
        for project, members in groupby(
            sorted(histories, key=lambda history: history.latest.project),
            key=lambda history: history.latest.project,
        )
    ]
    runs = sum(history.all_runs for history in histories)
    heading = f"{format_count(runs, 'run')} of {format_count(len(histories), 'program')}"
    return _page(heading, sections, [*remarks, ADVISORY], screen)


def render_program(
    history: ProgramHistory,
    changes: Sequence[Change],
    *,
    remarks: Iterable[str] = (),
    screen: Screen | None = None,
) -> str:
    """The runs of one program one by one, a drawing of one figure, and where that changed its level."""
    return _page(
        names_of([history])[0],
        list(_run_sections(history, changes)),
        [*_left_out(history), *remarks, ADVISORY],
        screen,
    )


def render_history_json(
    histories: Sequence[ProgramHistory],
    changes: Mapping[int, Sequence[Change]],
    *,
    unreadable: int,
    path: str | None,
) -> str:
    """What the reports are made of, for programs; ``changes`` by the place of a history."""
    content = {
        "format": HISTORY_FORMAT,
        "version": HISTORY_VERSION,
        "advisory_only": True,
        "path": path,
        "unreadable_rows": unreadable,
        "programs": [
            _program_as_json(history, changes.get(place)) for place, history in enumerate(histories)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _program_as_json(history: ProgramHistory, changes: Sequence[Change] | None) -> dict[str, Any]:
    latest = history.latest
    return {
        "project": latest.project,
        "folder": latest.folder,
        "program": latest.program,
        "kept_runs": history.all_runs,
        "other_ranks": history.other_ranks,
        "metric": history.metric.value,
        "runs": [msgspec.to_builtins(run) for run in history.runs],
        # Looked for in one program only: null says that they were not.
        "changes": None if changes is None else [_change_as_json(change) for change in changes],
    }


def _change_as_json(change: Change) -> dict[str, Any]:
    return {
        "from": change.first_after.started_at,
        "last_commit_before": change.last_before.commit,
        "first_commit_after": change.first_after.commit,
        "before": change.before,
        "after": change.after,
        "change_percent": 100 * change.share,
        "p": change.p,
        "circumstances": list(change.circumstances),
    }


def _page(heading: str, sections: Sequence[Section], remarks: Sequence[str], screen: Screen | None) -> str:
    screen = screen or Screen()
    page = Page(
        width=max(screen.width or DEFAULT_WIDTH, _NARROWEST),
        color=screen.color,
        ascii_only=screen.ascii_only,
    )
    closing = Section(title="Mind", blocks=(Bullets(lines=tuple(remarks)),))
    parts = [part for section in [*sections, closing] for part in page.section(section)]
    return page.render([page.paragraph(heading, style="bold"), *parts])


def _program_section(project: str, histories: Sequence[ProgramHistory]) -> Section:
    cells = [_program_cells(history) for history in histories]
    table = Table(
        names="program",
        columns=tuple(
            Column(heading=heading, left=heading == "trend", dropped=_turn_to_go(heading))
            for heading in cells[0]
        ),
        rows=tuple(
            Row(name=name, cells=tuple(row.values()))
            for name, row in zip(names_of(histories), cells, strict=True)
        ),
    )
    metrics = {history.metric: _NAMES[history.metric] for history in histories}
    drawn = f"Trend: {' or '.join(metrics.values())}, oldest to newest, each from its least to its most."
    table = without_unknown_columns(table, (UNKNOWN_CELL,))
    return Section(title=project, blocks=(table, *notes([drawn])))


def _program_cells(history: ProgramHistory) -> dict[str, str]:
    # A run that failed has no figures to go by.
    finished = next((run for run in reversed(history.runs) if run.finished), None)
    figures = dict.fromkeys(_FIGURES, UNKNOWN_CELL) if finished is None else _figures(finished)
    return {
        "runs": f"{history.all_runs:,}",
        "latest": _when(history.latest)[:10],
        **{name: figures[name] for name in ("step", "samples/s", "tokens/s", "peak", "took")},
        "trend": _drawn(history.series[-MOST_DRAWN:]) or UNKNOWN_CELL,
    }


_FIGURES: dict[str, Callable[[PastRun], str]] = {
    "step": lambda run: write_known(run.step_p50_ns, compact_duration),
    "p95": lambda run: write_known(run.step_p95_ns, compact_duration),
    "samples/s": lambda run: write_known(run.samples_per_s, _compact_rate),
    "tokens/s": lambda run: write_known(run.tokens_per_s, _compact_rate),
    "peak": lambda run: write_known(run.peak_host_bytes, compact_bytes),
    "took": lambda run: compact_duration(run.profiled_ns),
}


def _figures(run: PastRun) -> dict[str, str]:
    return {name: write(run) for name, write in _FIGURES.items()}


def _compact_rate(rate: float) -> str:
    return compact_count(round(rate)) if rate >= 100 else f"{rate:.2f}"


def _turn_to_go(heading: str) -> int:
    return len(_DROPPED_FIRST) - _DROPPED_FIRST.index(heading) if heading in _DROPPED_FIRST else 0


def _run_sections(history: ProgramHistory, changes: Sequence[Change]) -> Iterator[Section]:
    yield Section(title="Runs", blocks=(_run_table(history, changes),))
    known = [value for value in history.series if value is not None]
    name, write = _NAMES[history.metric], _WRITTEN[history.metric]
    if known:
        drawn = f"{_drawn(history.series)}  {write(min(known))} to {write(max(known))}"
        yield Section(title=f"Trend: {name}, oldest to newest", blocks=(Lines(lines=(drawn,)),))
    yield Section(title=f"Changes: {name}", blocks=tuple(_change_blocks(history, changes, len(known))))


def _run_table(history: ProgramHistory, changes: Sequence[Change]) -> Table:
    starts = {id(change.first_after) for change in changes}
    rows = []
    before: PastRun | None = None
    for run in history.runs:
        known = (run,) if before is None else (before, run)
        others = "; ".join(changed_circumstances(known)) if run.finished else ""
        before = run if run.finished else before
        cells = {"commit": _commit(run), **_figures(run), "ended": _ended(run)}
        rows.append(
            Row(
                name=_when(run),
                cells=tuple(cells.values()),
                mark=" *" if id(run) in starts else "",
                emphasis=Emphasis.NONE if run.finished else Emphasis.FAINT,
                details=(f"from here on: {others}",) if others else (),
            )
        )
    headings = ("commit", *_FIGURES, "ended")
    columns = tuple(
        Column(
            heading=heading,
            left=heading in {"commit", "ended"},
            widest=16 if heading == "ended" else None,
            dropped=_turn_to_go(heading),
        )
        for heading in headings
    )
    table = Table(names="run", columns=columns, rows=tuple(rows), whole_names=True)
    return without_unknown_columns(table, (UNKNOWN_CELL,))


def _change_blocks(
    history: ProgramHistory, changes: Sequence[Change], known: int
) -> Iterator[Lines | Bullets]:
    if changes:
        yield Bullets(lines=tuple(_told(change, history.metric) for change in changes))
        yield from notes(["* marks the first run of each. p: how often chance alone makes such a change."])
    elif known < 2 * LEAST_SEGMENT:
        least = format_count(2 * LEAST_SEGMENT, "finished run")
        yield Lines(lines=(f"Cannot tell: it takes {least} with the figure, and there are {known}.",))
    else:
        least = f"{100 * LEAST_CHANGE:.0f} %"
        told = f"None of {least} or more that chance would not make as well, in {known} finished runs."
        yield Lines(lines=(told,))


def _told(change: Change, metric: Metric) -> str:
    write = _WRITTEN[metric]
    text = (
        f"{write(change.before)} → {write(change.after)} ({100 * change.share:+.1f} %) from "
        f"{_when(change.first_after)} on, p {format_share(change.p)}"
    )
    commits = _commit(change.last_before), _commit(change.first_after)
    if commits[0] != commits[1]:
        text += f"; commit {commits[0]} → {commits[1]}"
    if change.circumstances:
        text += f". At the same time: {'; '.join(change.circumstances)}: it need not be the program"
    return f"{text}."


def _left_out(history: ProgramHistory) -> Iterator[str]:
    older = history.all_runs - len(history.runs)
    if older:
        yield f"{format_count(older, 'older run is', 'older runs are')} not shown: --last N shows more."
    if history.other_ranks:
        several = format_count(history.other_ranks, "run of another rank is", "runs of other ranks are")
        yield f"{several} kept and not shown: they are the same launches."
    failed = sum(not run.finished for run in history.runs)
    if failed:
        yield f"{format_count(failed, 'run')} did not finish: in neither trend nor changes."


def _when(run: PastRun) -> str:
    return run.started_at[:16].replace("T", " ")


def _commit(run: PastRun) -> str:
    return UNKNOWN_CELL if run.commit is None else run.commit[:7] + ("+" if run.dirty else "")


def _ended(run: PastRun) -> str:
    return run.outcome if run.finished or run.detail is None else run.detail


def _drawn(series: Sequence[float | None]) -> str:
    """A cell for each run, from the least to the most; blank where there is no figure."""
    known = [value for value in series if value is not None]
    if not known:
        return ""
    least, span = min(known), max(known) - min(known)
    return "".join(" " if value is None else _height(value - least, span) for value in series)


def _height(above: float, span: float) -> str:
    return _HEIGHTS[min(int(above / span * len(_HEIGHTS)), len(_HEIGHTS) - 1)] if span else _HEIGHTS[0]
