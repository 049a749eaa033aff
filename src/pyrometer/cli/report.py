"""``pyrometer report``: any report from a run file."""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.cli.report_files import (
    StackFiles,
    write_flamegraph_beside,
    write_report,
    write_stack_files,
)
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report import Screen, render_json, render_markdown, render_terminal
from pyrometer.report.stack_exports import Weight
from pyrometer.store.run_files import RUN_FILE_NAME, RUNS_FOLDER_NAME, current_folder, read_run

_DEFAULT_TOP = 20


class Format(StrEnum):
    """The reports there are."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    BASELINE = "baseline"


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
            help="By default by the ending of FILE (.md, .json), else terminal. A baseline in FILE is "
            "added to: only the same program with the same arguments is replaced.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Show the N largest scopes, threads and functions ({_DEFAULT_TOP}; in JSON all).",
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
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to FILE, not to the screen; the flame graph goes beside a .md FILE.",
            metavar="FILE",
        ),
    ] = None,
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
    """Show the report of a run, or write its sampled stacks for another tool."""
    if not run_paths:
        run_paths = [newest_run(Path(RUNS_FOLDER_NAME))]
        print(f"{run_paths[0]}:", file=sys.stderr)
    runs = [read_run(path) for path in run_paths]
    chosen = report_format or format_for(output)
    if chosen is Format.BASELINE:
        report_baseline(runs, output)
        return
    if len(runs) > 1:
        raise UsageError(
            f"{len(runs)} runs are too many for one report; only --format baseline takes several"
        )
    (run_path,), (run,) = run_paths, runs
    if roofline is not None:
        write_report(roofline, draw_roofline(run), run_path=run_path, option="--roofline")
    stack_files = StackFiles(
        flamegraph=flamegraph, collapsed=collapsed, weight=weight, speedscope=speedscope, pprof=pprof
    )
    for line in write_stack_files(run, stack_files, run_path=run_path):
        print(line, file=sys.stderr)
    if stack_files and output is None and report_format is None:
        return
    if output is None:
        screen = Screen.of(sys.stdout, environment=os.environ, terminal_size=os.get_terminal_size)
        encoding = sys.stdout.encoding or "utf-8"
        text = render(run, chosen, top=top, by_thread=by_thread, functions=functions, screen=screen)
        # Markdown keeps its characters; those the stream lacks are shown escaped rather than refused.
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="")
    else:
        picture = None if roofline is None else os.path.relpath(roofline, output.parent)
        beside = None
        if chosen is Format.MARKDOWN:
            beside = write_flamegraph_beside(run, output, run_path=run_path)
        text = render(
            run,
            chosen,
            top=top,
            by_thread=by_thread,
            functions=functions,
            screen=Screen(),
            flamegraph=beside,
            roofline_file=picture,
        )
        write_report(output, text, run_path=run_path)


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


def render(
    run: Run,
    report_format: Format,
    *,
    top: int | None,
    by_thread: bool,
    screen: Screen,
    functions: bool = False,
    flamegraph: str | None = None,
    roofline_file: str | None = None,
) -> str:
    """The report of a run in the format asked for."""
    if report_format is Format.JSON:
        return render_json(run, top=top)
    if report_format is Format.MARKDOWN:
        return render_markdown(
            run,
            top=top or _DEFAULT_TOP,
            by_thread=by_thread,
            flamegraph=flamegraph,
            roofline_file=roofline_file,
        )
    return render_terminal(
        run,
        top=top or _DEFAULT_TOP,
        by_thread=by_thread,
        functions=functions,
        width=screen.width,
        color=screen.color,
        ascii_only=screen.ascii_only,
    )


def format_for(output: Path | None) -> Format:
    """The format a file's ending asks for."""
    endings = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".json": Format.JSON}
    return Format.TERMINAL if output is None else endings.get(output.suffix.lower(), Format.TERMINAL)


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


def draw_roofline(run: Run) -> str:
    """The picture of the run below the limits of its machine."""
    from pyrometer.analysis.torch_results import build_torch_results
    from pyrometer.report.roofline_svg import NoPictureError, render_roofline_svg

    torch = build_torch_results(run)
    if torch is None:
        raise UsageError("--roofline: the program did not use PyTorch, so there is nothing to place")
    try:
        return render_roofline_svg(torch.roofline, title=f"Roofline of {run.program.name}")
    except NoPictureError as error:
        raise UsageError(f"--roofline: {error}") from None
