"""``pyrometer baseline init``: everything a first baseline of a project is made of, by one command."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from pyrometer.analysis.codemap.heat import find_heat
from pyrometer.analysis.saved_baseline import save_runs
from pyrometer.cli.map import check_ours, read_results, write_file
from pyrometer.cli.measuring import check_writable
from pyrometer.codemap.mapping import find_root
from pyrometer.errors import PyrometerError, UsageError
from pyrometer.experiment.errors import PROGRAM_FAILED
from pyrometer.experiment.sides import command_in
from pyrometer.record.run import Run
from pyrometer.report import render_markdown
from pyrometer.report.baseline_file import render_baseline
from pyrometer.report.baseline_page import render_baseline_page
from pyrometer.report.codemap_documents import (
    DEPENDENCIES,
    DEPENDENCIES_FILE,
    INVENTORY,
    SYSTEM_MAP,
    MapReport,
    map_documents,
    with_mark,
)
from pyrometer.store.baseline_files import BASELINES_FOLDER_NAME, baseline_path, read_baseline, write_baseline
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import default_run_path, read_run, write_run

NAME = "baseline"
REPORT = "profiling_report.md"
_COMMAND = "pyrometer baseline init"
_FIGURES = (f"{INVENTORY}.json", DEPENDENCIES_FILE)
_PAGES = (REPORT, f"{INVENTORY}.md", f"{DEPENDENCIES}.md", f"{SYSTEM_MAP}.md", f"{SYSTEM_MAP}.svg")


def init_baseline(package: str, words: Sequence[str], *, folder: Path, pages: Path) -> list[Path]:
    """Map the package, profile the program, and write all documents; the files there are now.

    Nothing is written before all is made. What can be known to be wrong is said before the program runs;
    where its run can be no part of the baseline afterwards, it is kept by itself.
    """
    root = find_root(package, folder)
    figures = project_folder(folder) / BASELINES_FOLDER_NAME
    _check(words, folder, [*(pages / name for name in _PAGES), *(figures / name for name in _FIGURES)])
    known = read_baseline(baseline_path(NAME, folder=folder))
    results = read_results(root)
    run = _profiled(words, folder)
    now = datetime.now().astimezone()
    path = baseline_path(NAME, folder=folder)
    try:
        documents = map_documents(MapReport(results=results, heat=find_heat(results, run)))
        saved = save_runs(
            known,
            [run],
            name=NAME,
            saved_at=now.isoformat(timespec="seconds"),
            project=str(project_folder(folder)),
        )
        report = _report(run)
        write_baseline(render_baseline(saved), path)
        texts = {figures / name: documents[name] for name in _FIGURES}
        texts |= {pages / name: documents.get(name, report) for name in _PAGES}
        for file, text in texts.items():
            write_file(file, text)
    except PyrometerError as error:
        kept = default_run_path(folder, run.program.name, now, os.getpid())
        write_run(run, kept)
        raise UsageError(f"{error}. The run is kept in {kept}") from error
    return [path, *texts]


def _check(words: Sequence[str], folder: Path, files: Iterable[Path]) -> None:
    command = command_in(words)
    if command.script is not None and not (folder / command.script).is_file():
        raise UsageError(f"there is no script {command.script!r}; name one behind --, or -m and a module")
    for path in files:
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent} is no folder; name another one with -o")
        if path.exists():
            check_writable("a document", path, endings=(path.suffix,))
            check_ours(path)


def _report(run: Run) -> str:
    """The page of a baseline; of a program without steps the usual report."""
    if run.torch is not None and any(group.steps for group in run.torch.groups):
        return with_mark(render_baseline_page([run]), _COMMAND)
    return with_mark(render_markdown(run), _COMMAND)


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
