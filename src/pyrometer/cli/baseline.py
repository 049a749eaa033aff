"""``pyrometer baseline``: runs kept under a name, with the project's code."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.identity import Weight, check_baseline_side, compare_identities, identity_of
from pyrometer.analysis.saved_baseline import save_runs
from pyrometer.cli.printing import print_text, screen_for
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report.baseline_file import render_baseline
from pyrometer.report.baseline_listing import (
    render_baseline_list,
    render_baseline_list_json,
    render_baseline_terminal,
)
from pyrometer.report.safe_text import escape_controls
from pyrometer.store.baseline_files import (
    baseline_path,
    find_baseline,
    load_baseline,
    read_baseline,
    remove_baseline,
    saved_baselines,
    write_baseline,
)
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import current_folder
from pyrometer.store.run_folders import read_runs
from pyrometer.units import format_count

GROUP = typer.Typer(name="baseline", no_args_is_help=True, add_completion=False, rich_markup_mode=None)

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="What the baseline is called.", show_default=False)
]
_Json = Annotated[bool, typer.Option("--json", help="Print it for programs.")]


@GROUP.callback()
def baseline() -> None:
    """Keep runs under a name, in benchmarks/NAME.json of the project, to compare later runs with."""


@GROUP.command()
def save(
    name: _Name,
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run files, or folders of runs; several processes.", show_default=False
        ),
    ],
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also runs of a program that failed or was killed, or of another folder."
        ),
    ] = False,
) -> None:
    """Save runs as a baseline; those of the same program and arguments replace what it had of them.

    Several runs of one configuration must be of the same code, versions, threads and machine.
    """
    path = baseline_path(name, folder=current_folder())
    project = str(project_folder(current_folder()))
    known = read_baseline(path)
    loaded = [run for named in runs for _, run in read_runs(named, tell=_say)]
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        saved = save_runs(known, loaded, name=name, saved_at=now, force=force, project=project)
    except UsageError as error:
        raise UsageError(escape_controls(str(error))) from None  # it has words of the programs in it
    write_baseline(render_baseline(saved), path)
    kept = sum(map(len, saved.runs.values()))
    _say(
        f"baseline {name} saved to {path}: {format_count(len(saved.runs), 'configuration')}, "
        f"{format_count(kept, 'run')}"
    )
    for line in dict.fromkeys(line for run in loaded for line in _to_mind(run)):
        _say(f"mind: {line}")


@GROUP.command()
def init(
    package: Annotated[
        str,
        typer.Argument(metavar="PACKAGE", help="The package, or folder, that is mapped.", show_default=False),
    ],
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="-- SCRIPT [ARGS]...",
            help="The program that trains, or -m and a module.",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where the pages go."),
    ] = Path(),
) -> None:
    """Make a project's first baseline: inventory, dependency graph, system map, profile and report."""
    from pyrometer.cli.baseline_init import init_baseline

    words = program[1:] if program[:1] == ["--"] else program
    for path in init_baseline(package, words, folder=current_folder(), pages=current_folder() / output):
        _say(f"written: {path}")


@GROUP.command("list")
def list_baselines(*, as_json: _Json = False) -> None:
    """List the project's baselines."""
    folder = current_folder()
    listed = tuple(saved_baselines(folder))
    if as_json:
        print(render_baseline_list_json(listed), end="")
    else:
        place = str(project_folder(folder) / "benchmarks")
        print_text(render_baseline_list(listed, folder=place, screen=screen_for()))


@GROUP.command()
def show(name: _Name, *, as_json: _Json = False) -> None:
    """Show a baseline: its figures, what it was a run of, and how to measure it again."""
    path, saved = load_baseline(name, folder=current_folder())
    if as_json:
        print(render_baseline(saved), end="")
    else:
        print_text(render_baseline_terminal(saved, name=path.stem, place=str(path), screen=screen_for()))


@GROUP.command()
def remove(
    name: _Name, *, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Remove a baseline."""
    folder = current_folder()
    path = find_baseline(name, folder=folder)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"to remove {path} without being asked, add --yes")
        typer.confirm(f"Remove {path}?", abort=True, err=True)
    _say(f"baseline {name} removed: {remove_baseline(name, folder=folder)}")


def _to_mind(run: Run) -> list[str]:
    """What will keep comparisons with this run from a verdict."""
    identity = identity_of(run)
    # With itself: what differs then is what is not known.
    here = ("in this run", "in this run")
    unknown = compare_identities(identity, identity, sides=here).differences
    sentences = [one.sentence for one in unknown if one.weight is not Weight.NOTED]
    return [*(one.sentence for one in check_baseline_side(identity)), *sentences]


def _say(text: str) -> None:
    print(f"pyrometer: {escape_controls(text)}", file=sys.stderr, flush=True)
