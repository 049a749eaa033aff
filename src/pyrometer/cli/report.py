"""``pyrometer report``: any report from a run file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.cli.report_files import StackFiles, beside
from pyrometer.cli.report_formats import (
    DEFAULT_TOP,
    MADE_OF_SEVERAL,
    Format,
    Shown,
    doubts_about_targets,
    format_for,
)
from pyrometer.cli.report_making import PAGE_NAME, Wanted, make_reports, report_together
from pyrometer.errors import UsageError
from pyrometer.report.levels import FILE_NAMES, Level
from pyrometer.report.stack_exports import Weight
from pyrometer.store.run_files import RUN_FILE_NAME, RUNS_FOLDER_NAME, current_folder, read_run
from pyrometer.store.settings import load_targets


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
    map_file: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="MAP.json",
            help="Link functions to their places on this code map, whose page is beside it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the report of a run, write it as a page, or write its figures for another tool."""
    if not run_paths:
        run_paths = [newest_run(Path(RUNS_FOLDER_NAME))]
        print(f"{run_paths[0]}:", file=sys.stderr)
    chosen = report_format or (Format.MARKDOWN if brief or (level and not keep) else format_for(output))
    _check_words(chosen, level=level, brief=brief, keep=keep)
    runs = [read_run(path) for path in run_paths]
    if chosen in MADE_OF_SEVERAL:
        report_together(runs, run_paths, chosen, output)
        return
    if len(runs) > 1:
        raise UsageError(
            f"{len(runs)} runs are too many for one report; only --format baseline and baseline-page take "
            "several"
        )
    shown = Shown(
        run=runs[0],
        run_path=run_paths[0],
        top=top,
        by_thread=by_thread,
        functions=functions,
        level=level or Level.DEEP,
        brief=brief,
        targets=load_targets(current_folder()),
        against=None if against is None else read_run(against),
    )
    if map_file is not None:
        from pyrometer.cli.map_linking import link_to_map

        if chosen not in {Format.HTML, Format.MARKDOWN} and not (html or open_page):
            raise UsageError("--map is for links, on a page or in Markdown; add --html, or -o FILE.html")
        page = beside(run_paths[0], PAGE_NAME) if output is None else output
        shown.map_links = link_to_map(runs[0], map_file, seen_from=page)
    for line in doubts_about_targets(shown):
        print(line, file=sys.stderr)
    make_reports(
        shown,
        Wanted(
            report_format=chosen,
            asked_to_show=report_format is not None or chosen is Format.MARKDOWN,
            output=output,
            html=html,
            open_page=open_page,
            keep=keep,
            quiet=quiet,
            stacks=StackFiles(
                flamegraph=flamegraph,
                collapsed=collapsed,
                weight=weight,
                speedscope=speedscope,
                pprof=pprof,
            ),
            roofline=roofline,
        ),
    )


def _check_words(chosen: Format, *, level: Level | None, brief: bool, keep: bool) -> None:
    if brief and level is not None:
        raise UsageError("--brief is a level of its own; leave --level out, or --brief")
    if chosen is not Format.MARKDOWN and brief:
        raise UsageError(f"--brief is for Markdown, and the format is {chosen.value}")
    if chosen is not Format.MARKDOWN and level is not None and not keep:
        raise UsageError(f"--level is for Markdown, and the format is {chosen.value}")


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
