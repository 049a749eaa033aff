"""The formats that ``pyrometer report`` knows, and the text of each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from pyrometer.analysis.baseline import key_of
from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import Target, TargetResult, judge_targets
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report import Screen, render_json, render_markdown, render_terminal
from pyrometer.report.levels import FILE_NAMES, Level
from pyrometer.report.map_links import MapLinks

DEFAULT_TOP = 20


class Format(StrEnum):
    """The reports there are."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    FINDINGS = "findings"
    AGENT = "agent"
    CSV = "csv"
    TRACE = "trace"
    FLAMEGRAPH = "flamegraph"
    COLLAPSED = "collapsed"
    SPEEDSCOPE = "speedscope"
    PPROF = "pprof"
    BASELINE = "baseline"
    BASELINE_PAGE = "baseline-page"


class CompareFormat(StrEnum):
    """The forms of a comparison."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


OF_STACKS = frozenset({Format.FLAMEGRAPH, Format.COLLAPSED, Format.SPEEDSCOPE, Format.PPROF})
"""Formats of the sampled stacks, each also an option of its own beside a report."""
MADE_OF_SEVERAL = frozenset({Format.BASELINE, Format.BASELINE_PAGE})
"""Formats that put several runs together."""

_ENDINGS = {
    "": Format.TERMINAL,
    ".txt": Format.TERMINAL,
    ".log": Format.TERMINAL,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".json": Format.JSON,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}
_NAMES = {
    Format.TERMINAL: "report.txt",
    Format.HTML: "report.html",
    Format.JSON: "report.json",
    Format.FINDINGS: "findings.json",
    Format.AGENT: "agent-brief.md",
    Format.TRACE: "timeline.json",
    Format.FLAMEGRAPH: "flamegraph.svg",
    Format.COLLAPSED: "stacks.txt",
    Format.SPEEDSCOPE: "speedscope.json",
    Format.PPROF: "profile.pb.gz",
    Format.BASELINE: "baseline.json",
    Format.BASELINE_PAGE: "profiling_report.md",
}


def format_for(output: Path | None) -> Format:
    """The format a file's ending asks for; a folder takes Markdown."""
    if output is None:
        return Format.TERMINAL
    if output.is_dir():
        return Format.MARKDOWN
    ending = output.suffix.lower()
    if ending not in _ENDINGS:
        known = ", ".join(sorted(name for name in _ENDINGS if name))
        raise UsageError(f"{output}: no report has the ending {ending!r} ({known}); or say --format FORMAT")
    return _ENDINGS[ending]


def file_in(output: Path, report_format: Format, level: Level) -> Path:
    """The file to write: a folder takes one of the format's own name. CSV is a folder itself."""
    if report_format is Format.CSV or not output.is_dir():
        return output
    return output / (FILE_NAMES[level] if report_format is Format.MARKDOWN else _NAMES[report_format])


@dataclass(kw_only=True)
class Shown:
    """A run to be shown, and how. What is worked out of it is worked out once."""

    run: Run
    run_path: Path
    top: int | None = None
    by_thread: bool = False
    functions: bool = False
    level: Level = Level.DEEP
    brief: bool = False
    targets: tuple[Target, ...] = ()
    against: Run | None = None
    """What relative targets are relative to; None: to this run."""
    screen: Screen = field(default_factory=Screen)
    flamegraph: str | None = None
    """Where that picture is, as seen from the report; likewise ``roofline_file``."""
    roofline_file: str | None = None
    map_links: MapLinks | None = None
    """To a code map, for the page and for Markdown."""

    @cached_property
    def observed(self) -> Observed:
        """All that the run says."""
        return observe(self.run)

    @cached_property
    def findings(self) -> Findings:
        """What is worth changing in it."""
        return find(self.observed)

    @cached_property
    def judged(self) -> tuple[TargetResult, ...]:
        """The project's targets, beside the run."""
        baseline = None if self.against is None else observe(self.against)
        return judge_targets(self.observed, self.targets, baseline=baseline)


def doubts_about_targets(shown: Shown) -> Iterator[str]:
    """What makes a run to compare targets with of little use."""
    if shown.against is None:
        return
    if not shown.targets:
        yield "--against is for targets, and this project sets none: see [tool.pyrometer.targets]"
    elif key_of(shown.against.program) != key_of(shown.run.program):
        yield (
            f"mind: --against is a run of {key_of(shown.against.program)}, and this one is of "
            f"{key_of(shown.run.program)}"
        )


def render(shown: Shown, report_format: Format) -> str:
    """The run in the format asked for."""
    return _RENDERERS[report_format](shown)


def _terminal(shown: Shown) -> str:
    return render_terminal(
        shown.observed,
        top=shown.top,
        by_thread=shown.by_thread,
        functions=shown.functions,
        width=shown.screen.width,
        color=shown.screen.color,
        ascii_only=shown.screen.ascii_only,
        findings=shown.findings,
        targets=shown.judged,
    )


def _markdown(shown: Shown) -> str:
    return render_markdown(
        shown.observed,
        level=shown.level,
        brief=shown.brief,
        top=shown.top or DEFAULT_TOP,
        by_thread=shown.by_thread,
        flamegraph=shown.flamegraph,
        roofline_file=shown.roofline_file,
        on_map=shown.map_links,
        findings=shown.findings,
        targets=shown.judged,
    )


# Each loaded when it is asked for: none needs the others.


def _html(shown: Shown) -> str:
    from pyrometer.report.html_page import render_html

    return render_html(shown.observed, findings=shown.findings, targets=shown.judged, on_map=shown.map_links)


def _json(shown: Shown) -> str:
    return render_json(shown.observed, top=shown.top)


def _findings(shown: Shown) -> str:
    from pyrometer.report.findings_json import render_findings_json

    return render_findings_json(shown.observed, shown.findings, shown.judged)


def _agent(shown: Shown) -> str:
    from pyrometer.report.agent_brief import render_brief_for_agents

    return render_brief_for_agents(shown.observed, shown.findings, shown.judged)


def _trace(shown: Shown) -> str:
    from pyrometer.report.timeline_trace import render_timeline

    return render_timeline(shown.observed)


def _csv(_shown: Shown) -> str:
    raise UsageError("CSV is a folder of files, one for each table: name it with -o FOLDER")


_RENDERERS: dict[Format, Callable[[Shown], str]] = {
    Format.TERMINAL: _terminal,
    Format.MARKDOWN: _markdown,
    Format.HTML: _html,
    Format.JSON: _json,
    Format.FINDINGS: _findings,
    Format.AGENT: _agent,
    Format.TRACE: _trace,
    Format.CSV: _csv,
}
