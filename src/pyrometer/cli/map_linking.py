"""Links from the report of a run to a code map."""

import os
import shlex
import sys
from pathlib import Path
from urllib.parse import quote

from pyrometer.analysis.codemap.heat import find_places
from pyrometer.analysis.codemap.results import build_results
from pyrometer.record.run import Run
from pyrometer.report.map_links import MapLinks
from pyrometer.report.safe_text import for_terminal
from pyrometer.store.map_files import map_file_in, read_map


def link_to_map(run: Run, map_file: Path, *, seen_from: Path) -> MapLinks:
    """Where the run's functions are on the map in this file, or folder; its page lies beside it."""
    file = map_file_in(map_file)
    folder = seen_from if seen_from.is_dir() else seen_from.parent
    page = file.with_suffix(".html")
    code = read_map(file)
    if not page.is_file():
        print(
            f"pyrometer: there is no page {for_terminal(str(page))} for links to lead to; make it with: "
            f"pyrometer map {for_terminal(shlex.quote(code.root))} -o {for_terminal(shlex.quote(str(page)))}",
            file=sys.stderr,
        )
    return MapLinks(places=find_places(build_results(code), run), page=quote(os.path.relpath(page, folder)))
