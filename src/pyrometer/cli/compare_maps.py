"""``pyrometer compare`` on two code maps."""

import sys
from pathlib import Path

from pyrometer.analysis.codemap.comparison import MapComparison, compare_maps
from pyrometer.analysis.codemap.results import build_results
from pyrometer.cli.printing import print_text, screen_for
from pyrometer.cli.report_files import write_report
from pyrometer.cli.report_formats import CompareFormat
from pyrometer.errors import UsageError
from pyrometer.report import Screen
from pyrometer.report.codemap_comparison import (
    render_map_comparison_markdown,
    render_map_comparison_terminal,
)
from pyrometer.report.codemap_comparison_html import render_map_comparison_html
from pyrometer.report.codemap_comparison_json import render_map_comparison_json
from pyrometer.report.safe_text import for_terminal
from pyrometer.store.map_files import is_map, map_file_in, read_map
from pyrometer.store.run_files import current_folder


def are_maps(before: str, after: str, *, folder: Path) -> bool:
    """Whether both files are maps; ``UsageError`` where only one is."""
    found = [is_map(map_file_in(folder / name)) for name in (before, after)]
    if found[0] != found[1]:
        which, other = (before, after) if found[0] else (after, before)
        if not (folder / other).exists():
            raise UsageError(f"there is no file {other!r} to compare the code map {which} with")
        raise UsageError(f"{which} is a code map, and the other one is not; compare two maps, or two runs")
    return found[0]


def compare_map_files(
    before: str, after: str, *, chosen: CompareFormat, output: Path | None, top: int | None
) -> None:
    """Tell what changed from one map to the other."""
    paths = [map_file_in(current_folder() / name) for name in (before, after)]
    comparison = compare_maps(*(build_results(read_map(path)) for path in paths))
    before_name, after_name = comparison.before.name, comparison.after.name
    if before_name != after_name:
        names = for_terminal(f"{before_name} and {after_name}")
        print(f"pyrometer: these are maps of different things: {names}", file=sys.stderr)
    text = _render(comparison, chosen, top=top, screen=screen_for(output))
    if output is None:
        print_text(text)
    else:
        write_report(output, text, run_path=paths)


def _render(comparison: MapComparison, chosen: CompareFormat, *, top: int | None, screen: Screen) -> str:
    match chosen:
        case CompareFormat.TERMINAL:
            return render_map_comparison_terminal(
                comparison, top=top, width=screen.width, color=screen.color, ascii_only=screen.ascii_only
            )
        case CompareFormat.MARKDOWN:
            return render_map_comparison_markdown(comparison, top=top)
        case CompareFormat.HTML:
            return render_map_comparison_html(comparison)
        case CompareFormat.JSON:
            return render_map_comparison_json(comparison)
