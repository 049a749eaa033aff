"""``pyrometer baseline init``: everything a first baseline of a project is made of, by one command."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyrometer.analysis.codemap.heat import find_heat
from pyrometer.analysis.saved_baseline import save_runs
from pyrometer.cli.map import read_results
from pyrometer.cli.measuring import check_writable
from pyrometer.codemap.mapping import find_root
from pyrometer.errors import UsageError
from pyrometer.experiment.errors import PROGRAM_FAILED
from pyrometer.experiment.sides import command_in
from pyrometer.record.run import Run
from pyrometer.report.baseline_file import render_baseline
from pyrometer.report.baseline_page import render_baseline_page
from pyrometer.report.codemap_documents import (
    DEPENDENCIES,
    DEPENDENCIES_FILE,
    INVENTORY,
    SYSTEM_MAP,
    MapReport,
    map_documents,
)
from pyrometer.store.baseline_files import BASELINES_FOLDER_NAME, baseline_path, read_baseline, write_baseline
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import read_run, reason_of, replace_whole

NAME = "baseline"
REPORT = "profiling_report.md"
_TITLES = {
    REPORT: "# Baseline of",
    f"{INVENTORY}.md": "# Module inventory of",
    f"{DEPENDENCIES}.md": "# Dependency graph of",
    f"{SYSTEM_MAP}.md": "# System map of",
}
"""By which a file is known to be one of these, and may be written over."""
_FIGURES = (f"{INVENTORY}.json", DEPENDENCIES_FILE)


def init_baseline(package: str, words: Sequence[str], *, folder: Path, pages: Path) -> list[Path]:
    """Map the package, profile the program, and write all documents; the files there are now.

    Whatever can be wrong is said before the program runs.
    """
    root = find_root(package, folder)
    command_in(words)
    for name, title in _TITLES.items():
        if (pages / name).exists():
            check_writable("a page", pages / name, endings=(".md",), begins=title)
    run = _profiled(words, folder)
    results = read_results(root)
    documents = map_documents(MapReport(results=results, heat=find_heat(results, run)))
    figures = project_folder(folder) / BASELINES_FOLDER_NAME
    written = [_save(run, folder)]
    written += [_write(figures / name, documents[name]) for name in _FIGURES]
    written.append(_write(pages / REPORT, render_baseline_page([run])))
    written += [
        _write(pages / name, documents[name])
        for name in (f"{INVENTORY}.md", f"{DEPENDENCIES}.md", f"{SYSTEM_MAP}.md", f"{SYSTEM_MAP}.svg")
    ]
    return written


def _profiled(words: Sequence[str], folder: Path) -> Run:
    """A run of the program, under the profiler, with its own output as ever."""
    with tempfile.TemporaryDirectory(prefix="pyrometer-init-") as scratch:
        file = Path(scratch) / "run.json"
        command = [sys.executable, "-m", "pyrometer", "run", "--quiet", "-o", str(file), *words]
        code = subprocess.run(command, cwd=folder, check=False).returncode
        if code != 0:
            raise InitFailedError(f"the program ended with exit code {code}, so there is no baseline of it")
        return read_run(file)


class InitFailedError(UsageError):
    """The program that was to be the baseline failed."""

    exit_code = PROGRAM_FAILED


def _save(run: Run, folder: Path) -> Path:
    path = baseline_path(NAME, folder=folder)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    write_baseline(
        render_baseline(save_runs(read_baseline(path), [run], name=NAME, saved_at=now, force=False)), path
    )
    return path


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason_of(error)}") from error
    return path
