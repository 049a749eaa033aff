"""``pyrometer report``: any report from a run file."""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report import Screen, render_json, render_markdown, render_terminal
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
            help=f"Show the N largest scopes, and threads ({_DEFAULT_TOP}; in JSON all).",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    by_thread: Annotated[
        bool, typer.Option("--by-thread", help="Show each thread by itself too (in JSON always).")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to FILE, not to the screen.", metavar="FILE")
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
    """Show the report of a run."""
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
    if output is None:
        screen = Screen.of(sys.stdout, environment=os.environ, terminal_size=os.get_terminal_size)
        encoding = sys.stdout.encoding or "utf-8"
        text = render(run, chosen, top=top, by_thread=by_thread, screen=screen)
        # Markdown keeps its characters; those the stream lacks are shown escaped rather than refused.
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="")
    else:
        picture = None if roofline is None else os.path.relpath(roofline, output.parent)
        text = render(run, chosen, top=top, by_thread=by_thread, screen=Screen(), roofline_file=picture)
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
    roofline_file: str | None = None,
) -> str:
    """The report of a run in the format asked for."""
    if report_format is Format.JSON:
        return render_json(run, top=top)
    if report_format is Format.MARKDOWN:
        return render_markdown(run, top=top or _DEFAULT_TOP, by_thread=by_thread, roofline_file=roofline_file)
    return render_terminal(
        run,
        top=top or _DEFAULT_TOP,
        by_thread=by_thread,
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


def write_report(output: Path, text: str, *, run_path: Path, option: str = "-o") -> None:
    """Write a report to a file, but never over the run it was made from."""
    try:
        run_file = run_path / RUN_FILE_NAME if run_path.is_dir() else run_path
        if output.exists() and output.samefile(run_file):
            raise UsageError(f"{output} is the run itself: name another file for its report with {option}")
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"Cannot write the report to {output}: {error.strerror or error}. Name another file with {option}"
        ) from error
