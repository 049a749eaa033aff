"""The saved baselines of a project as text: all of them in a table, or one in full."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from pyrometer.analysis.identity import NOT_RECORDED, RULES
from pyrometer.analysis.saved_baseline import SavedBaseline, SavedConfiguration, configurations_of
from pyrometer.report.blocks import Bullets, Code, Column, Pairs, Row, Section, Table
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.page import Page
from pyrometer.report.screen import Screen
from pyrometer.units import format_bytes, format_duration, three_digits

_NARROWEST = 40
_GIB = 1 << 30
_MILLISECOND_NS = 1_000_000
_COMMIT_LENGTH = 9
_NEVER_GATES = (
    "A time that was stored proves nothing about a later one: machines change. It is for looking back, and "
    "for knowing what to measure again beside new code."
)

Listed = Sequence[tuple[str, SavedBaseline | Exception]]
"""Baselines by name, or why one cannot be read."""


def render_baseline_list(listed: Listed, *, folder: str, screen: Screen) -> str:
    """A row for each configuration of each baseline."""
    page = _page(screen)
    if not listed:
        return page.render(
            [page.paragraph(f"No baseline in {folder} yet. Save one with: pyrometer baseline save NAME RUN")]
        )
    rows = [
        _row(name, saved, configuration)
        for name, saved in listed
        if isinstance(saved, SavedBaseline)
        for configuration in configurations_of(saved)
    ]
    broken = [str(error) for _, error in listed if isinstance(error, Exception)]
    parts = [page.paragraph(f"Baselines in {folder}", style="bold"), ""]
    if rows:
        parts += page.table(Table(names="name", columns=_COLUMNS, rows=tuple(rows)))
    if broken:
        parts += page.section(Section(title="Cannot be read", blocks=(Bullets(lines=tuple(broken)),)))
    return page.render(parts)


def render_baseline_list_json(listed: Listed) -> str:
    """The same for programs; what was not measured is null."""
    content = [
        {
            "name": name,
            "problem": str(saved) if isinstance(saved, Exception) else None,
            "saved_at": None if isinstance(saved, Exception) else saved.saved_at,
            "configurations": []
            if isinstance(saved, Exception)
            else [_as_json(configuration) for configuration in configurations_of(saved)],
        }
        for name, saved in listed
    ]
    return json.dumps(content, indent=2) + "\n"


def render_baseline_terminal(saved: SavedBaseline, *, name: str, place: str, screen: Screen) -> str:
    """One baseline in full: figures, what it was a run of, and how to measure it again."""
    page = _page(screen)
    when = "" if saved.saved_at is None else f", saved {_when(saved.saved_at)}"
    parts = [page.paragraph(f"Baseline {name}{when}", style="bold"), page.paragraph(place)]
    for section in _sections(saved):
        parts += page.section(section)
    return page.render([*parts, "", page.paragraph(_NEVER_GATES, style="dim")])


_COLUMNS = (
    Column(heading="program", left=True, widest=20),
    Column(heading="commit", left=True, dropped=4),
    Column(heading="steps", dropped=5),
    Column(heading="a step"),
    Column(heading="samples/s", dropped=1),
    Column(heading="peak", spelled="peak host memory", dropped=3),
    Column(heading="runs"),
    Column(heading="saved", left=True, dropped=2),
)


def _row(name: str, saved: SavedBaseline, configuration: SavedConfiguration) -> Row:
    return Row(
        name=name,
        cells=(
            configuration.program,
            _short_commit(configuration.commit),
            write_known(configuration.steps, "{:,}".format),
            write_known(configuration.step_ms, _duration),
            write_known(configuration.samples_per_s, _rate),
            write_known(configuration.peak_host_memory_gb, _size),
            str(configuration.runs),
            UNKNOWN_CELL if saved.saved_at is None else saved.saved_at[:10],
        ),
        details=(shlex.join(configuration.arguments),) if configuration.arguments else (),
    )


def _as_json(configuration: SavedConfiguration) -> dict[str, object]:
    return {
        "program": configuration.key,
        "commit": configuration.commit,
        "steps": configuration.steps,
        "ms_per_step": configuration.step_ms,
        "samples_per_s": configuration.samples_per_s,
        "peak_host_memory_gb": configuration.peak_host_memory_gb,
        "runs": configuration.runs,
    }


def _sections(saved: SavedBaseline) -> Iterator[Section]:
    for configuration in configurations_of(saved):
        figures = Pairs(rows=tuple(_figures(configuration)))
        yield Section(title=configuration.key, blocks=(figures,))
        if configuration.identity is not None:
            facts = Pairs(rows=tuple(_facts(configuration.identity)))
            yield Section(title="What it was a run of", blocks=(facts,))
        commands = Code(lines=configuration.commands, language="console")
        yield Section(title="To measure it again", blocks=(commands,))


def _figures(configuration: SavedConfiguration) -> Iterator[tuple[str, str]]:
    unknown = "not measured"
    steps, step_ms, rate = configuration.steps, configuration.step_ms, configuration.samples_per_s
    yield "steps", unknown if steps is None else f"{steps:,}, after the warm-up"
    yield "a step", unknown if step_ms is None else f"{_duration(step_ms)} on average"
    yield "throughput", unknown if rate is None else f"{_rate(rate)} samples/s"
    peak = configuration.peak_host_memory_gb
    yield "peak host memory", unknown if peak is None else _size(peak)
    yield "runs", str(configuration.runs) if configuration.runs else "none kept, figures only"


def _facts(identity: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    for name, value in identity.items():
        label = RULES[name].label if name in RULES else name
        if name == "cpu_flags" and value is not None:
            yield label, f"{len(value.split())}, listed by --json"
        else:
            yield label, NOT_RECORDED if value is None else value


def _page(screen: Screen) -> Page:
    return Page(width=max(screen.width, _NARROWEST), color=screen.color, ascii_only=screen.ascii_only)


def _short_commit(commit: str | None) -> str:
    if commit is None:
        return UNKNOWN_CELL
    changed = "+" if commit.endswith("+") else ""
    return commit.removesuffix("+")[:_COMMIT_LENGTH] + changed


def _when(saved_at: str) -> str:
    return saved_at.replace("T", " ")


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else three_digits(per_second)


def _duration(duration_ms: float) -> str:
    return format_duration(duration_ms * _MILLISECOND_NS)


def _size(size_gb: float) -> str:
    return format_bytes(size_gb * _GIB)
