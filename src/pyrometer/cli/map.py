"""``pyrometer map``: what sources hold, what depends on what, and where a run's time went on it."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.codemap.checks import StructureRules, check_structure, pointless_rules
from pyrometer.analysis.codemap.heat import HeatBy, MapHeat, find_heat
from pyrometer.analysis.codemap.results import MapResults, build_results
from pyrometer.cli.printing import print_text, rows_wanted, screen_for
from pyrometer.codemap.mapping import find_root, make_map
from pyrometer.errors import UsageError
from pyrometer.report.codemap_documents import (
    MapFormat,
    MapReport,
    is_map_document,
    map_documents,
    render_map,
    render_map_terminal,
)
from pyrometer.report.codemap_sections import DEFAULT_TOP
from pyrometer.report.safe_text import for_terminal
from pyrometer.store.limits_files import cache_folder
from pyrometer.store.map_cache import cache_path, read_cache, write_cache
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import current_folder, read_run, reason_of, replace_whole
from pyrometer.store.settings import load_structure_rules
from pyrometer.units import format_count

BROKEN = 1
_REASONS = 3
_ENDINGS = {
    ".md": MapFormat.MARKDOWN,
    ".json": MapFormat.JSON,
    ".svg": MapFormat.SVG,
    ".html": MapFormat.HTML,
    ".mmd": MapFormat.MERMAID,
    ".dot": MapFormat.DOT,
    ".gv": MapFormat.DOT,
    ".txt": MapFormat.TERMINAL,
}
_HEAD_BYTES = 4_000


def map_sources(
    wanted: Annotated[
        str,
        typer.Argument(metavar="PATH|PACKAGE", help="A folder or file, or a package that could be imported."),
    ] = ".",
    *,
    heat: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Colour it by where the time of this run went.", show_default=False),
    ] = None,
    heat_by: Annotated[
        HeatBy | None,
        typer.Option(help="What pictures are coloured by.  [default: own]", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check it by [tool.pyrometer.map]; 1: a rule is broken.")
    ] = False,
    map_format: Annotated[
        MapFormat | None,
        typer.Option("--format", help="What to make; else by the ending of -o.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Write it there; into a folder all documents under their names.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help=f"Rows of each table.  [default: {DEFAULT_TOP}]", show_default=False
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all rows.")] = False,
    with_vendored: Annotated[
        bool, typer.Option("--with-vendored", help="Read folders with code of others too.")
    ] = False,
) -> None:
    """Read sources without running them: what there is, what imports what, and where it is large."""
    rows = rows_wanted(top, show_all=show_all, default=DEFAULT_TOP)
    if check and any((heat, heat_by, map_format, output, top, show_all)):
        raise UsageError("--check prints what breaks a rule, and nothing else; leave the other options out")
    if heat_by is not None and heat is None:
        raise UsageError("--heat-by says what of a run is shown; name the run with --heat RUN")
    folder = current_folder()
    root = find_root(wanted, folder)
    rules = load_structure_rules(project_folder(root)) if check else None
    results = read_results(root, with_vendored=with_vendored)
    if rules is not None:
        _check(results, rules)
        return
    report = MapReport(
        results=results,
        heat=None if heat is None else _heat(results, heat, heat_by),
        heat_by=heat_by or HeatBy.OWN,
        top=rows,
    )
    target = None if output in {None, "-"} else Path(str(output))
    if target is not None and map_format is None and _is_folder(str(output), target):
        write_documents(report, target)
    elif target is not None:
        chosen = map_format or _format_for(target)
        check_ours(target)
        write_file(target, render_map(report, chosen))
        print(f"pyrometer: written to {for_terminal(str(target))}", file=sys.stderr)
    elif map_format in {None, MapFormat.TERMINAL}:
        screen = screen_for()
        print_text(
            render_map_terminal(report, width=screen.width, color=screen.color, ascii_only=screen.ascii_only)
        )
    else:
        print_text(render_map(report, map_format or MapFormat.TERMINAL))


def _is_folder(typed: str, target: Path) -> bool:
    return target.is_dir() or typed.endswith("/") or (not target.suffix and not target.exists())


def check_ours(target: Path) -> None:
    """Only what a map was written to before is written over."""
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no regular file, and cannot be replaced; without -o it is printed")
    try:
        with target.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UsageError(f"cannot look at {target}: {reason_of(error)}; name another file with -o") from error
    if head.strip() and not is_map_document(head):
        raise UsageError(f"{target} exists and was not made by pyrometer map; name another place with -o")


COMMAND = map_sources
"""Under the command's own name it would hide one of Python's."""


def read_results(root: Path, *, with_vendored: bool = False) -> MapResults:
    """The map of these sources; what has not changed since the last one is not read again."""
    kept = cache_path(root, cache_folder(os.environ))
    known = read_cache(kept)
    code, read = make_map(root, project=project_folder(root), with_vendored=with_vendored, known=known)
    if not code.files:
        why = "".join(f"; {one.path}: {one.reason}" for one in code.skipped[:_REASONS])
        raise UsageError(f"there are no sources to be read in {root}{why}; name another folder, or a file")
    if read.reused < len(read.known) or len(read.known) != len(known):
        write_cache(kept, read.known)
    return build_results(code)


def _heat(results: MapResults, path: Path, by: HeatBy | None) -> MapHeat:
    found = find_heat(results, read_run(path))
    if found is None:
        raise UsageError(
            f"{path} has no samples of stacks, by which code is heated; run it without --sample-hz 0"
        )
    if by is not None and by not in found.kinds:
        raise UsageError(
            f"{path} has no samples of allocations, for --heat-by {by}; run it without --no-memory"
        )
    if not found.files:
        print(
            f"pyrometer: no function of the map was met in {for_terminal(found.program)}: is it a run of "
            "these sources?",
            file=sys.stderr,
        )
    return found


def _check(results: MapResults, rules: StructureRules) -> None:
    if not rules.count:
        raise UsageError(
            "there are no rules to check; write them under [tool.pyrometer.map] in pyproject.toml"
        )
    pointless = pointless_rules(results, rules)
    if pointless and results.code.is_whole:
        named = ", ".join(repr(str(rule)) for rule in pointless)
        raise UsageError(f"no module may break {named}: the importer is not on the map; mend its name")
    unread = [file.path for file in results.code.files if file.problem is not None]
    if unread:
        some = format_count(len(unread), "file")
        print(
            f"pyrometer: {some} could not be read, and not checked: {for_terminal(', '.join(unread[:5]))}",
            file=sys.stderr,
        )
    broken = check_structure(results, rules)
    for one in broken:
        print_text(f"{for_terminal(f'{one.where}: {one.text} ({one.rule})')}\n")
    checked = format_count(rules.count, "rule")
    if broken:
        print_text(f"FAIL: {checked} checked, {format_count(len(broken), 'violation')}\n")
        raise typer.Exit(BROKEN)
    print_text(f"PASS: {checked} checked on {format_count(len(results.code.files), 'file')}\n")


def _format_for(output: Path) -> MapFormat:
    chosen = _ENDINGS.get(output.suffix.lower())
    if chosen is None:
        known = ", ".join(_ENDINGS)
        raise UsageError(
            f"-o {output} does not say which format it is; end it with one of {known}, or a folder/"
        )
    return chosen


def write_documents(report: MapReport, folder: Path) -> None:
    """All documents under their default names."""
    documents = map_documents(report)
    for name in documents:
        check_ours(folder / name)
    for name, text in documents.items():
        write_file(folder / name, text)
    print(f"pyrometer: {for_terminal(str(folder))}: {', '.join(documents)}", file=sys.stderr)


def write_file(path: Path, text: str) -> None:
    """Write a document, whole or not at all; missing folders are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(Path(os.path.realpath(path)), text.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason_of(error)}; name another file with -o") from error
