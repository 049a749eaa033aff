"""What ``pyrometer report`` makes of a run: on the screen, in files, in the browser."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyrometer.cli.printing import print_text, screen_for
from pyrometer.cli.report_files import (
    StackFiles,
    beside,
    write_csv_files,
    write_flamegraph_beside,
    write_report,
    write_stack_files,
)
from pyrometer.cli.report_formats import OF_STACKS, Format, Shown, file_in, render
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report.levels import FILE_NAMES, Level
from pyrometer.report.safe_text import escape_controls

PAGE_NAME = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be made of a run."""

    report_format: Format
    asked_to_show: bool
    """Whether the report itself was asked for, and not only files beside it."""
    output: Path | None
    """Where it goes; None: to the screen."""
    html: bool
    open_page: bool
    keep: bool
    quiet: bool
    stacks: StackFiles
    roofline: Path | None

    @property
    def shows_report(self) -> bool:
        """Whether there is something for the screen."""
        files_only = bool(self.stacks) or self.html or self.open_page or (self.keep and self.quiet)
        return self.output is None and (self.asked_to_show or not files_only)


def make_reports(shown: Shown, wanted: Wanted) -> None:
    """Show or write the report, and all files that are asked for."""
    if wanted.roofline is not None:
        write_report(wanted.roofline, draw_roofline(shown), run_path=shown.run_path, option="--roofline")
    stacks = _with_format(wanted, shown)
    for line in write_stack_files(shown.run, stacks, run_path=shown.run_path):
        print(line, file=sys.stderr)
    if wanted.report_format not in OF_STACKS:
        if wanted.output is not None:
            write_to(wanted.output, shown, wanted.report_format, roofline=wanted.roofline, quiet=wanted.quiet)
        elif wanted.shows_report:
            show(shown, wanted.report_format)
    # Behind what is to be read at once: a place that cannot be written to does not take it away.
    if wanted.keep:
        kept = beside(shown.run_path, FILE_NAMES[shown.level])
        write_to(kept, shown, Format.MARKDOWN, roofline=wanted.roofline)
        _say(f"report kept in {kept}", quiet=wanted.quiet)
    if wanted.html or wanted.open_page:
        write_page(shown, open_it=wanted.open_page, quiet=wanted.quiet)


def _with_format(wanted: Wanted, shown: Shown) -> StackFiles:
    """The files of stacks, that of the format among them."""
    if wanted.report_format not in OF_STACKS:
        return wanted.stacks
    name = wanted.report_format.value
    if wanted.output is None:
        raise UsageError(f"the format {name} goes to a file: name it with -o FILE")
    if getattr(wanted.stacks, name) is not None:
        raise UsageError(f"--format {name} and --{name} name two files for the same; give one of them")
    file = file_in(wanted.output, wanted.report_format, shown.level)
    return wanted.stacks.with_file(name, file)


def show(shown: Shown, chosen: Format) -> None:
    """Print the report."""
    shown.screen = screen_for()
    print_text(render(shown, chosen))


def write_to(
    output: Path, shown: Shown, chosen: Format, *, roofline: Path | None = None, quiet: bool = False
) -> None:
    """Write the report to a file, or under its own name to a folder; pictures go beside Markdown."""
    if chosen is Format.CSV:
        _say(write_csv_files(output, shown), quiet=quiet)
        return
    file = file_in(output, chosen, shown.level)
    # Set anew for each file: where a picture is depends on where it is seen from.
    shown.roofline_file = None if roofline is None else os.path.relpath(roofline, file.parent)
    if chosen is Format.MARKDOWN and not shown.brief and shown.level is not Level.STANDARD:
        shown.flamegraph = write_flamegraph_beside(shown.observed, file, run_path=shown.run_path)
    write_report(file, render(shown, chosen), run_path=shown.run_path)
    if file != output:
        _say(f"report written to {file}", quiet=quiet)


def write_page(shown: Shown, *, open_it: bool, quiet: bool) -> None:
    """Write the page to look at beside the run, and open it if asked to."""
    page = beside(shown.run_path, PAGE_NAME)
    write_report(page, render(shown, Format.HTML), run_path=shown.run_path, option="--format html -o")
    _say(f"page written to {page}", quiet=quiet)
    address = page.absolute().as_uri()
    if open_it and not webbrowser.open(address):
        print(f"no browser could be opened; the page is {address}", file=sys.stderr)


def _say(line: str, *, quiet: bool) -> None:
    if not quiet:
        print(line, file=sys.stderr)


def report_together(
    runs: Sequence[Run], run_paths: Sequence[Path], chosen: Format, output: Path | None
) -> None:
    """Make what several runs make: a baseline, or the page of one."""
    if chosen is Format.BASELINE:
        report_baseline(runs, output)
        return
    from pyrometer.report.baseline_page import render_baseline_page

    text = render_baseline_page(runs)
    if output is None:
        print_text(text)
    else:
        write_report(file_in(output, chosen, Level.DEEP), text, run_path=run_paths)


def report_baseline(runs: Sequence[Run], output: Path | None) -> None:
    """Print the baseline these runs make, or add them to the one in the file.

    A saved one takes what ``pyrometer baseline save`` takes: no program that failed in the place of others.
    """
    from pyrometer.analysis.baseline import measure
    from pyrometer.analysis.saved_baseline import add_figures, save_runs
    from pyrometer.report.baseline_file import render_baseline
    from pyrometer.store.baseline_files import read_baseline, write_baseline
    from pyrometer.store.projects import project_folder
    from pyrometer.store.run_files import current_folder

    known = None if output is None else read_baseline(output)
    if known is not None and known.name is not None:
        # Figures without the runs they come from would be all that is left of what was saved.
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            project = str(project_folder(current_folder()))
            baseline = save_runs(known, runs, name=known.name, saved_at=now, project=project)
        except UsageError as error:
            raise UsageError(escape_controls(str(error))) from None  # it has words of the programs in it
    else:
        measured = [(run.program, measure(run, file_name=_name_from(run, output))) for run in runs]
        baseline = add_figures(known, measured)
    text = render_baseline(baseline)
    if output is None:
        print_text(text)
    else:
        write_baseline(text, output)


def _name_from(run: Run, output: Path | None) -> str:
    """The file as it is called in the program's working directory."""
    if output is None:
        return "baseline.json"
    place = output.absolute()
    folder = Path(run.program.working_directory)
    return str(place.relative_to(folder) if place.is_relative_to(folder) else place)


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
