"""``pyrometer map``: what sources hold, and what depends on what."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.codemap.results import MapResults, build_results
from pyrometer.cli.printing import print_text
from pyrometer.codemap.mapping import find_root, make_map
from pyrometer.report import Screen
from pyrometer.report.codemap_report import render_map_terminal
from pyrometer.report.codemap_sections import DEFAULT_TOP
from pyrometer.store.limits_files import cache_folder
from pyrometer.store.map_cache import cache_path, read_cache, write_cache
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import current_folder


def map_sources(
    wanted: Annotated[
        str,
        typer.Argument(metavar="PATH|PACKAGE", help="A folder or file, or a package that could be imported."),
    ],
    *,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Rows of each table.")] = DEFAULT_TOP,
    with_vendored: Annotated[
        bool, typer.Option("--with-vendored", help="Read folders with code of others too.")
    ] = False,
) -> None:
    """Read sources without running them: what there is, what imports what, and where it is large."""
    results = _results(find_root(wanted, current_folder()), with_vendored=with_vendored)
    screen = Screen.of(sys.stdout, environment=os.environ, terminal_size=os.get_terminal_size)
    print_text(
        render_map_terminal(
            results, top=top, width=screen.width, color=screen.color, ascii_only=screen.ascii_only
        )
    )


COMMAND = map_sources
"""Under the command's own name it would hide one of Python's."""


def _results(root: Path, *, with_vendored: bool) -> MapResults:
    kept = cache_path(root, cache_folder(os.environ))
    known = read_cache(kept)
    code, read = make_map(root, project=project_folder(root), with_vendored=with_vendored, known=known)
    if read.known != known:
        write_cache(kept, read.known)
    return build_results(code)
