"""``pyrometer history``: earlier runs of the programs of a project."""

import os
import random
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.history import (
    Metric,
    ProgramHistory,
    build_histories,
    find_changes,
    find_programs,
    names_of,
)
from pyrometer.cli.history_adding import add_run
from pyrometer.cli.printing import print_text, screen_for
from pyrometer.cli.program_words import ProgramWordsCommand
from pyrometer.errors import UsageError
from pyrometer.store.history import MOST_RUNS, forget, history_path, project_of, read_history
from pyrometer.store.run_files import current_folder
from pyrometer.units import format_count

COMMAND_OPTIONS = {"cls": ProgramWordsCommand}
DEFAULT_LAST = 30
_SEED = 20_261_117
"""Fixed, so that the same history gives the same answer each time."""


def history(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM",
            help="A program's name, or the program with its arguments, quoted. 'forget PROGRAM' takes one "
            "out, 'path' says where the history is.",
            show_default=False,
        ),
    ] = None,
    *,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="What is drawn and looked at for changes.  [default: step; of a program without steps "
            "duration]",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="Look at the newest N runs of a program.")
    ] = DEFAULT_LAST,
    json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Programs of all projects, not only of this folder's.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With forget: do it without asking.")] = False,
) -> None:
    """Show earlier runs: the programs of this project, or the runs of one and where they changed.

    Every run under pyrometer run is kept, unless --no-history or PYROMETER_HISTORY=0 says otherwise.
    """
    words = words or []
    first = words[0] if words else None
    if first == "add" and len(words) >= 2:
        _add(Path(words[1]), words[2:])
    elif first == "path" and len(words) == 1:
        print(_path())
    elif first == "forget":
        _forget(words[1:], everywhere=everywhere, yes=yes)
    elif len(words) > 1:
        raise UsageError(
            f"{len(words)} words name no program; quote it with its arguments: "
            f"pyrometer history {shlex.quote(' '.join(words))}"
        )
    else:
        _show(first, metric=metric, last=last, as_json=json, everywhere=everywhere)


def _add(run_path: Path, following: Sequence[str]) -> None:
    """Keep a run that has ended, and go on with another command: one start of an interpreter for both."""
    add_run(run_path)
    if following:
        from pyrometer.cli.app import app

        app(args=list(following), prog_name="pyrometer")


def _path() -> Path:
    path = history_path(os.environ)
    if path is None:
        raise UsageError("there is no history without a home; set HOME or XDG_STATE_HOME")
    return path


def _histories(*, metric: Metric | None, last: int, everywhere: bool) -> tuple[list[ProgramHistory], int]:
    """The programs that are asked about, and how many rows could not be read."""
    kept = read_history(history_path(os.environ))
    project, _ = project_of(current_folder())
    found = [
        one
        for one in build_histories(kept.runs, last=last, metric=metric)
        if everywhere or one.latest.project == project
    ]
    return found, kept.unreadable


def _meant(histories: Sequence[ProgramHistory], wanted: str) -> tuple[ProgramHistory, ...]:
    project, folder = project_of(current_folder())
    found = find_programs(histories, wanted, project=project, folder=folder)
    if not found:
        known = ", ".join(sorted({_printable(name) for name in names_of(histories)})[:5]) or "none"
        raise UsageError(
            f"no run of {wanted!r} is kept (kept here: {known}); pyrometer history lists them, with --all "
            "those of other projects too"
        )
    return found


def _show(wanted: str | None, *, metric: Metric | None, last: int, as_json: bool, everywhere: bool) -> None:
    from pyrometer.report.history_report import (
        MOST_DRAWN,
        render_history_json,
        render_program,
        render_programs,
    )

    histories, unreadable = _histories(metric=metric, last=last, everywhere=everywhere)
    if wanted is not None:
        histories = list(_meant(histories, wanted))
    single = histories[0] if wanted is not None and len(histories) == 1 else None
    changes = () if single is None else find_changes(single, shuffle=random.Random(_SEED).shuffle)  # noqa: S311 - no secret
    if as_json:
        by_place = {} if single is None else {0: changes}
        path = history_path(os.environ)
        shown = render_history_json(
            histories, by_place, unreadable=unreadable, path=None if path is None else str(path)
        )
    elif not histories:
        shown = _nothing(everywhere=everywhere)
    else:
        screen = screen_for()
        remarks = _remarks(histories, unreadable, chosen=wanted)
        if single is not None:
            shown = render_program(single, changes, remarks=remarks, screen=screen)
        else:
            remarks = [*_runs_not_drawn(histories, min(MOST_DRAWN, last)), *remarks]
            shown = render_programs(histories, remarks=remarks, screen=screen)
    print_text(shown)


def _nothing(*, everywhere: bool) -> str:
    where = "" if everywhere else " of this project; --all looks in others too"
    return f"No run is kept yet{where}. pyrometer run SCRIPT keeps one.\n"


def _remarks(histories: Sequence[ProgramHistory], unreadable: int, *, chosen: str | None) -> list[str]:
    remarks = []
    if chosen is not None and len(histories) > 1:
        remarks.append(f"{chosen} was run in several ways: name one of these in quotes to see its runs.")
    if sum(one.all_runs + one.other_ranks for one in histories) >= MOST_RUNS:
        remarks.append(f"The newest {MOST_RUNS:,} runs are kept: older ones are gone.")
    if unreadable:
        some = format_count(unreadable, "entry of the history", "entries of the history")
        remarks.append(f"{some} could not be read, and {'is' if unreadable == 1 else 'are'} left out.")
    return remarks


def _runs_not_drawn(histories: Sequence[ProgramHistory], drawn: int) -> list[str]:
    if all(one.all_runs <= drawn for one in histories):
        return []
    newest = f"A trend is that of the newest {format_count(drawn, 'run')} where a program has more"
    return [f"{newest}: with its name its runs are listed and drawn, as many as --last says."]


def _forget(wanted: Sequence[str], *, everywhere: bool, yes: bool) -> None:
    if bool(wanted) == everywhere or len(wanted) > 1:
        raise UsageError("say what to forget: pyrometer history forget PROGRAM, or forget --all")
    found: tuple[ProgramHistory, ...] = ()
    if wanted:
        histories, _ = _histories(metric=None, last=1, everywhere=False)
        found = _meant(histories, wanted[0])
        if len(found) > 1:
            programs = ", ".join(shlex.quote(_printable(name)) for name in names_of(found))
            raise UsageError(f"{wanted[0]!r} was run in several ways; name one of them: {programs}")
    if not yes:
        what = names_of(found)[0] if found else "everything, of all projects"
        typer.confirm(f"Forget {_printable(what)}?", abort=True, err=True)
    gone = forget([one.latest.place for one in found] if wanted else None, history_path(os.environ))
    _say(f"{format_count(gone, 'run')} forgotten; run files are where they were")


def _printable(text: str) -> str:
    from pyrometer.report.safe_text import for_terminal

    return for_terminal(text)


def _say(text: str) -> None:
    print(f"pyrometer: {text}", file=sys.stderr, flush=True)
