"""``pyrometer bench``: what calls of marked functions take."""

import os
import platform
import random
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pyrometer._version import __version__
from pyrometer.cli.measuring import ProgressLine, end_cleanly_on_termination, parse_threads, print_result
from pyrometer.cli.printing import screen_for
from pyrometer.errors import PyrometerError, RunFileError, UsageError
from pyrometer.experiment.bench_discovery import discover, is_named
from pyrometer.experiment.bench_measuring import BenchmarkRunner
from pyrometer.experiment.errors import PROGRAM_FAILED
from pyrometer.machine.facts import cpu_model
from pyrometer.record.benchmarks import BENCHMARKS_FORMAT, Benchmark, BenchmarkResults
from pyrometer.report.bench_report import render_bench_json, render_bench_markdown, render_bench_terminal
from pyrometer.report.safe_text import for_terminal
from pyrometer.store.run_files import current_folder, read_regular_file, reason_of, replace_whole


class BenchFormat(StrEnum):
    """The forms in which benchmarks are printed."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"


def bench(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="A file of benchmarks, or a folder with bench_*.py.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Only these: functions with all their parameters, or single ones: 'bench_sort[size=10]'.",
            show_default=False,
        ),
    ] = None,
    *,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", "--pairs", min=1, max=1_000, metavar="N", help="Fresh processes of each."
        ),
    ] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Keep every measured value, as JSON.", show_default=False
        ),
    ] = None,
    bench_format: Annotated[BenchFormat, typer.Option("--format", help="How to print them.")] = (
        BenchFormat.TERMINAL
    ),
    threads: Annotated[
        str, typer.Option(metavar="N", help="What libraries may use; auto: what they choose.")
    ] = "1",
    listed: Annotated[
        bool, typer.Option("--list", help="Print the names of the benchmarks, and end.")
    ] = False,
) -> None:
    """Measure functions marked with @pyrometer.benchmark, each in many fresh processes that take turns.

    A benchmark that fails is told at the end, with exit code 5; the others are measured.
    """
    end_cleanly_on_termination()
    unreadable: list[PyrometerError] = []
    found = discover(path, unreadable=unreadable)
    for problem in unreadable:
        print(f"pyrometer: {problem}", file=sys.stderr)
    try:
        chosen = choose(found, names or [])
    except UsageError as error:
        if not unreadable:
            raise
        # It may well be in one of those.
        print(f"pyrometer: {error}", file=sys.stderr)
        raise typer.Exit(PROGRAM_FAILED) from None
    if listed:
        for one in chosen:
            print(for_terminal(one.name))
        raise typer.Exit(PROGRAM_FAILED if unreadable else 0)
    if output is not None:
        _refuse_unless_ours(output)
        _refuse_unless_writable(output)
    results = _measure(chosen, processes=processes, threads=parse_threads("--threads", threads))
    try:
        # Before they are printed: a reader may be gone by then.
        if output is not None:
            _keep(results, output)
    finally:
        _print(results, bench_format)
    if unreadable or any(one.failure is not None for one in results.benchmarks):
        raise typer.Exit(PROGRAM_FAILED)


def choose(benchmarks: Sequence[Benchmark], names: Sequence[str]) -> list[Benchmark]:
    """Those that are named, by themselves or by their function; all where no name is given."""
    for name in names:
        if not any(is_named(one, [name]) for one in benchmarks):
            known = ", ".join(for_terminal(one.name) for one in benchmarks[:5])
            more = f" and {len(benchmarks) - 5} more, shown by --list" if len(benchmarks) > 5 else ""
            raise UsageError(f"there is no benchmark {name!r}; there are {known}{more}")
    return [one for one in benchmarks if is_named(one, names)]


def _measure(chosen: Sequence[Benchmark], *, processes: int, threads: int | None) -> BenchmarkResults:
    started_at = datetime.now().astimezone().isoformat(timespec="seconds")
    line = ProgressLine()
    runner = BenchmarkRunner(
        folder=current_folder(),
        processes=processes,
        threads=threads,
        chooser=random.Random(),  # noqa: S311 - an order, no secret
        tell=line.show,
    )
    try:
        measured = runner.measure(chosen)
    finally:
        line.clear()
    return BenchmarkResults(
        pyrometer_version=__version__,
        started_at=started_at,
        python_version=platform.python_version(),
        cpu_model=cpu_model(),
        threads=threads,
        wanted_processes=processes,
        benchmarks=measured,
    )


def _print(results: BenchmarkResults, bench_format: BenchFormat) -> None:
    if bench_format is BenchFormat.JSON:
        text = render_bench_json(results)
    elif bench_format is BenchFormat.MARKDOWN:
        text = render_bench_markdown(results)
    else:
        screen = screen_for()
        text = render_bench_terminal(
            results, width=screen.width, color=screen.color, ascii_only=screen.ascii_only
        )
    print_result(text)


# The file of all values.


class _Header(msgspec.Struct, frozen=True):
    format: str | None = None


def _refuse_unless_ours(path: Path) -> None:
    """Before anything is measured: only results of earlier are ever written over."""
    try:
        data = read_regular_file(path)
        if not data.strip() or msgspec.json.decode(data, type=_Header).format == BENCHMARKS_FORMAT:
            return
        problem = f'it has no "format": "{BENCHMARKS_FORMAT}"'
    except FileNotFoundError:
        return
    except RunFileError as error:
        problem = error.problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = "it is no JSON"
    except OSError as error:
        problem = reason_of(error)
    raise UsageError(f"{path} exists and holds no results of pyrometer bench ({problem}); name another file")


def _refuse_unless_writable(path: Path) -> None:
    """Likewise: a file in its folder, or in the one that this will be made in."""
    real = Path(os.path.realpath(path))
    if real.is_char_device():
        return
    folder = next(folder for folder in real.parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write the results to {path}: {reason_of(error)}; name another file")


def _keep(results: BenchmarkResults, path: Path) -> None:
    try:
        replace_whole(Path(os.path.realpath(path)), render_bench_json(results).encode())
    except OSError as error:
        raise _cannot_write(path, error) from error
    print(f"pyrometer: every value written to {for_terminal(str(path))}", file=sys.stderr)
