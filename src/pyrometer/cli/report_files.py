"""The files that ``pyrometer report`` writes: reports, flame graphs, stacks for other tools."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import SampleResults, build_sample_results
from pyrometer.cli.report_formats import Shown
from pyrometer.errors import RunFileError, UsageError
from pyrometer.record.run import FORMAT_NAME, Run
from pyrometer.report.stack_exports import Weight, collapsed_lines, render_speedscope
from pyrometer.store.baseline_files import is_baseline
from pyrometer.store.run_files import RUN_FILE_NAME, read_beginning
from pyrometer.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFiles:
    """Where the stacks of a run are to be written, in which format; false when nowhere."""

    flamegraph: Path | None
    collapsed: Path | None
    weight: Weight | None
    speedscope: Path | None
    pprof: Path | None

    def with_file(self, name: str, file: Path) -> "StackFiles":
        """These, and the format of this name to that file."""
        changes: dict[str, Any] = {name: file}
        return replace(self, **changes)

    def __bool__(self) -> bool:
        return any((self.flamegraph, self.collapsed, self.speedscope, self.pprof))


def beside(run_path: Path, name: str) -> Path:
    """A file next to a run: of this name in a run's own folder, else with the run's name before it."""
    if run_path.is_dir():
        return run_path / name
    if run_path.name == RUN_FILE_NAME:
        return run_path.with_name(name)
    stem = run_path.name.removesuffix(".gz").removesuffix(".json")
    return run_path.with_name(f"{stem}.{name}")


def write_report(output: Path, text: str, *, run_path: Path | Sequence[Path], option: str = "-o") -> None:
    """Write a report to a file, but never over the run, or the runs, it was made from, or a baseline."""
    _write(output, [text.encode("utf-8")], run_path=run_path, what="report", option=option)


def check_replaceable(path: Path, *, what: str = "report", option: str = "-o") -> None:
    """Raise ``UsageError`` where a run or a saved baseline is in that file: no report takes its place."""
    there = "another run" if _is_a_run(path) else "a saved baseline" if is_baseline(path) else None
    if there is not None:
        raise UsageError(f"{path} is {there}: name another file for the {what} with {option}")


def write_csv_files(folder: Path, shown: Shown) -> str:
    """Write each table of a run to a file of its own in the folder; a line that says so."""
    from pyrometer.report.csv_tables import TABLE_FILES, csv_tables

    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for name, text in csv_tables(shown.observed, shown.findings, shown.judged):
            (folder / name).write_text(text, encoding="utf-8", newline="")
            names.append(name)
        # Tables of another run, left from before, would look like this one's.
        for name in TABLE_FILES.difference(names):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"Cannot write tables to {folder}: {error.strerror or error}. Name another folder with -o"
        ) from error
    return f"{folder}: {format_count(len(names), 'table')}: {', '.join(names)}"


def write_flamegraph_beside(observed: Observed, output: Path, *, run_path: Path) -> str | None:
    """Write the flame graph next to a Markdown report; its name, or None when there is nothing to draw."""
    from pyrometer.report.flamegraph import render_flamegraph

    run, results = observed.run, observed.samples
    if results is None or not results.overall.parts.cpu_ns:
        return None
    picture = output.with_name(f"{output.stem}.flamegraph.svg")
    content = [render_flamegraph(run, results).encode("utf-8")]
    _write(picture, content, run_path=run_path, what="flame graph", option="-o")
    return picture.name


def write_stack_files(run: Run, wanted: StackFiles, *, run_path: Path) -> Iterator[str]:
    """Write the stacks in each format that is asked for; a line about each file."""
    if wanted.weight is not None and wanted.collapsed is None:
        raise UsageError("--weight says what --collapsed FILE counts; name that file too")
    if not wanted:
        return
    results = build_sample_results(run)
    if results is None or not results.samples:
        raise UsageError(
            f"{run_path} has no stack samples to write: it was made without sampling, or the program was "
            "too short for one. Its report says what was lost: pyrometer report RUN"
        )
    for option, path, render in _formats(run, wanted, results):
        if path is not None:
            name = option.removeprefix("--")
            _write(path, render(), run_path=run_path, what=f"{name} file", option=option)
            yield f"{path}: {format_count(results.samples, 'sample')}, {_HOW_TO_READ[name]}"


_HOW_TO_READ = {
    "flamegraph": "open it in a browser",
    "collapsed": "for flamegraph.pl, inferno and the like",
    "speedscope": "open it at https://www.speedscope.app, or with the speedscope command",
    "pprof": "open it with: pprof -http=: FILE",
}


def _formats(
    run: Run, wanted: StackFiles, results: SampleResults
) -> Iterator[tuple[str, Path | None, Callable[[], Iterable[bytes]]]]:
    from pyrometer.report.flamegraph import render_flamegraph
    from pyrometer.report.pprof import render_pprof

    weight = wanted.weight or Weight.CPU
    yield (
        "--flamegraph",
        wanted.flamegraph,
        lambda: [render_flamegraph(run, results).encode("utf-8")],
    )
    yield (
        "--collapsed",
        wanted.collapsed,
        lambda: (line.encode("utf-8") for line in collapsed_lines(results.tree, weight)),
    )
    yield (
        "--speedscope",
        wanted.speedscope,
        lambda: [render_speedscope(run, results.tree).encode("ascii")],
    )
    yield "--pprof", wanted.pprof, lambda: [render_pprof(run, results.recorded)]


def _is_a_run(path: Path) -> bool:
    """Whether a file is there that begins as runs do."""
    if not path.is_file():
        return False
    try:
        return f'"format":"{FORMAT_NAME}"'.encode() in read_beginning(path, 100)
    except RunFileError:  # packed, and damaged
        return False


def _write(
    path: Path, content: Iterable[bytes], *, run_path: Path | Sequence[Path], what: str, option: str
) -> None:
    run_paths = [run_path] if isinstance(run_path, Path) else run_path
    try:
        for one in run_paths:
            run_file = one / RUN_FILE_NAME if one.is_dir() else one
            if path.exists() and path.samefile(run_file):
                raise UsageError(f"{path} is the run itself: name another file for its {what} with {option}")
        check_replaceable(path, what=what, option=option)
        with path.open("wb") as file:
            file.writelines(content)
    except OSError as error:
        raise UsageError(
            f"Cannot write the {what} to {path}: {error.strerror or error}. Name another file with {option}"
        ) from error
