"""``pyrometer report``: any report from a run file."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.cli.report_files import (
    StackFiles,
    beside,
    write_csv_files,
    write_flamegraph_beside,
    write_report,
    write_stack_files,
)
from pyrometer.cli.report_formats import (
    DEFAULT_TOP,
    MADE_OF_SEVERAL,
    Format,
    Shown,
    file_in,
    format_for,
    render,
)
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report import Screen
from pyrometer.report.levels import FILE_NAMES, Level
from pyrometer.report.stack_exports import Weight
from pyrometer.store.run_files import RUN_FILE_NAME, RUNS_FOLDER_NAME, current_folder, read_run
from pyrometer.store.settings import load_targets

PAGE_NAME = "report.html"


def report(
    run_paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help=f"A run file or a run's folder; by default the newest in {RUNS_FOLDER_NAME}. "
            "A baseline is made from one or more.",
            show_default=False,
        ),
    ] = None,
    *,
    report_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="By default by the ending of FILE (.md, .html, .json), else terminal. A baseline in FILE is "
            "added to: only the same program with the same arguments is replaced.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(help="How much Markdown says.  [default: deep]", show_default=False),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Markdown short enough for a comment, under 60 lines.")
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Show the N largest scopes, threads and functions ({DEFAULT_TOP}; in JSON all).",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    by_thread: Annotated[
        bool, typer.Option("--by-thread", help="Show each thread by itself too (in JSON always).")
    ] = False,
    functions: Annotated[
        bool,
        typer.Option(
            "--functions",
            help="Show more functions and call stacks, and lines too (in Markdown and JSON always).",
        ),
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="The run that relative targets of [tool.pyrometer.targets] are relative to."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to FILE, not to the screen; in a folder, under the format's own name. "
            "The flame graph goes beside a .md FILE.",
            metavar="FILE",
        ),
    ] = None,
    html: Annotated[
        bool, typer.Option("--html", help=f"Write the page to look at beside the run: {PAGE_NAME}.")
    ] = False,
    open_page: Annotated[
        bool,
        typer.Option("--open", help="Write that page, and open it in the browser."),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help=f"Write it as Markdown beside the run too: {FILE_NAMES[Level.DEEP]}, or as --level says.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say nothing of the files that are written.")
    ] = False,
    flamegraph: Annotated[
        Path | None, typer.Option(help="Write a flame graph of the CPU time there.", metavar="FILE.svg")
    ] = None,
    collapsed: Annotated[
        Path | None,
        typer.Option(
            help="Write the stacks there, one a line, as flame-graph tools read them.", metavar="FILE"
        ),
    ] = None,
    weight: Annotated[
        Weight | None,
        typer.Option(
            help="What --collapsed counts: nanoseconds of CPU or wall time, or samples.  [default: cpu]",
            show_default=False,
        ),
    ] = None,
    speedscope: Annotated[
        Path | None, typer.Option(help="Write the stacks there for speedscope.", metavar="FILE.json")
    ] = None,
    pprof: Annotated[
        Path | None, typer.Option(help="Write the stacks there for pprof.", metavar="FILE.pb.gz")
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg",
            help="Also draw how near phases and modules come to the limits of the machine.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the report of a run, write it as a page, or write its figures for another tool."""
    if not run_paths:
        run_paths = [newest_run(Path(RUNS_FOLDER_NAME))]
        print(f"{run_paths[0]}:", file=sys.stderr)
    runs = [read_run(path) for path in run_paths]
    chosen = report_format or (Format.MARKDOWN if brief or (level and not keep) else format_for(output))
    _check_words(chosen, level=level, brief=brief, keep=keep)
    if chosen in MADE_OF_SEVERAL:
        report_together(runs, chosen, output)
        return
    if len(runs) > 1:
        raise UsageError(
            f"{len(runs)} runs are too many for one report; only --format baseline and baseline-page take "
            "several"
        )
    (run_path,), (run,) = run_paths, runs
    shown = Shown(
        run=run,
        top=top,
        by_thread=by_thread,
        functions=functions,
        level=level or Level.DEEP,
        brief=brief,
        targets=load_targets(current_folder()),
        against=None if against is None else read_run(against),
    )
    if roofline is not None:
        write_report(roofline, draw_roofline(shown), run_path=run_path, option="--roofline")
    stack_files = StackFiles(
        flamegraph=flamegraph, collapsed=collapsed, weight=weight, speedscope=speedscope, pprof=pprof
    )
    for line in write_stack_files(run, stack_files, run_path=run_path):
        print(line, file=sys.stderr)
    asked_for_a_file = bool(stack_files) or html or open_page or (keep and quiet)
    if output is not None:
        write_to(output, shown, chosen, run_path=run_path, roofline=roofline, quiet=quiet)
    elif report_format is not None or brief or (level is not None and not keep) or not asked_for_a_file:
        show(shown, chosen)
    # Behind what is to be read at once: a place that cannot be written to does not take it away.
    if keep:
        write_to(beside(run_path, FILE_NAMES[shown.level]), shown, Format.MARKDOWN, run_path=run_path)
    if html or open_page:
        write_page(shown, run_path, open_it=open_page, quiet=quiet)


def _check_words(chosen: Format, *, level: Level | None, brief: bool, keep: bool) -> None:
    if chosen is not Format.MARKDOWN and brief:
        raise UsageError(f"--brief is for Markdown, and the format is {chosen.value}")
    if chosen is not Format.MARKDOWN and level is not None and not keep:
        raise UsageError(f"--level is for Markdown, and the format is {chosen.value}")


def show(shown: Shown, chosen: Format) -> None:
    """Print the report."""
    shown.screen = Screen.of(sys.stdout, environment=os.environ, terminal_size=os.get_terminal_size)
    encoding = sys.stdout.encoding or "utf-8"
    # Markdown keeps its characters; those the stream lacks are shown escaped rather than refused.
    print(render(shown, chosen).encode(encoding, "backslashreplace").decode(encoding), end="")


def write_to(
    output: Path,
    shown: Shown,
    chosen: Format,
    *,
    run_path: Path,
    roofline: Path | None = None,
    quiet: bool = False,
) -> None:
    """Write the report to a file, or under its own name to a folder; pictures go beside Markdown."""
    if chosen is Format.CSV:
        _say(write_csv_files(output, shown), quiet=quiet)
        return
    file = file_in(output, chosen, shown.level)
    if roofline is not None:
        shown.roofline_file = os.path.relpath(roofline, file.parent)
    if chosen is Format.MARKDOWN and not shown.brief and shown.level is not Level.STANDARD:
        shown.flamegraph = write_flamegraph_beside(shown.observed, file, run_path=run_path)
    write_report(file, render(shown, chosen), run_path=run_path)
    if file != output:
        _say(f"report written to {file}", quiet=quiet)


def write_page(shown: Shown, run_path: Path, *, open_it: bool, quiet: bool) -> None:
    """Write the page to look at beside the run, and open it if asked to."""
    page = beside(run_path, PAGE_NAME)
    write_report(page, render(shown, Format.HTML), run_path=run_path, option="--format html -o")
    _say(f"page written to {page}", quiet=quiet)
    address = page.absolute().as_uri()
    if open_it and not webbrowser.open(address):
        print(f"no browser could be opened; the page is {address}", file=sys.stderr)


def _say(line: str, *, quiet: bool) -> None:
    if not quiet:
        print(line, file=sys.stderr)


def report_together(runs: Sequence[Run], chosen: Format, output: Path | None) -> None:
    """Make what several runs make: a baseline, or the page of one."""
    if chosen is Format.BASELINE:
        report_baseline(runs, output)
        return
    from pyrometer.report.baseline_page import render_baseline_page

    text = render_baseline_page(runs)
    if output is None:
        print(text, end="")
    else:
        write_report(file_in(output, chosen, Level.DEEP), text, run_path=None)


def report_baseline(runs: Sequence[Run], output: Path | None) -> None:
    """Print the baseline these runs make, or add them to the one in the file."""
    from pyrometer.analysis.baseline import add_measurements, measure
    from pyrometer.report.baseline_file import render_baseline
    from pyrometer.store.baseline_files import read_baseline, write_baseline

    known = None if output is None else read_baseline(output)
    measured = [(run.program, measure(run, file_name=_name_from(run, output))) for run in runs]
    text = render_baseline(add_measurements(known, measured))
    if output is None:
        print(text, end="")
    else:
        write_baseline(text, output)


def _name_from(run: Run, output: Path | None) -> str:
    """The file as it is called in the program's working directory."""
    if output is None:
        return "baseline.json"
    place = output.absolute()
    folder = Path(run.program.working_directory)
    return str(place.relative_to(folder) if place.is_relative_to(folder) else place)


def newest_run(runs: Path) -> Path:
    """The run file in this folder of runs that was written last."""
    try:
        found = [(path.stat().st_mtime_ns, path) for path in runs.glob(f"*/{RUN_FILE_NAME}")]
    except OSError as error:
        raise UsageError(
            f"Cannot look for runs in {runs}: {error}. Name one: pyrometer report RUN"
        ) from error
    if not found:
        raise UsageError(
            f"There is no run in {current_folder() / runs}. Name one: pyrometer report RUN, "
            "or make one: pyrometer run SCRIPT"
        )
    return max(found)[1]


def draw_roofline(shown: Shown) -> str:
    """The picture of the run below the limits of its machine."""
    from pyrometer.report.roofline_svg import NoPictureError, render_roofline_svg

    torch = shown.observed.torch
    if torch is None:
        raise UsageError("--roofline: the program did not use PyTorch, so there is nothing to place")
    try:
        return render_roofline_svg(torch.roofline, title=f"Roofline of {shown.run.program.name}")
    except NoPictureError as error:
        raise UsageError(f"--roofline: {error}") from None
