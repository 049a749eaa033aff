"""Links from the report of a run to a code map."""

import os
import sys
from pathlib import Path
from urllib.parse import quote

from pyrometer.analysis.codemap.heat import find_places
from pyrometer.analysis.codemap.results import build_results
from pyrometer.record.run import Run
from pyrometer.report.map_links import MapLinks
from pyrometer.store.map_files import read_map

MAP_FILE = "code_map.json"


def link_to_map(run: Run, map_file: Path, *, seen_from: Path) -> MapLinks:
    """Where the run's functions are on the map in this file, or folder; its page lies beside it."""
    file = map_file / MAP_FILE if map_file.is_dir() else map_file
    folder = seen_from if seen_from.is_dir() else seen_from.parent
    page = os.path.relpath(file.with_suffix(".html"), folder)
    if not file.with_suffix(".html").is_file():
        print(
            f"pyrometer: there is no page {file.with_suffix('.html')} for links to lead to; make it with: "
            f"pyrometer map -o {file.with_suffix('.html')}",
            file=sys.stderr,
        )
    return MapLinks(places=find_places(build_results(read_map(file)), run), page=quote(page))
