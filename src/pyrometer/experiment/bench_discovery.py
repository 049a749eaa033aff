"""Which benchmarks there are, found out in a process of their own: nothing of the user's is imported here."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from pyrometer.errors import PyrometerError, UsageError
from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.experiment.paced_process import Side
from pyrometer.experiment.project_files import walk_project
from pyrometer.record.benchmarks import Benchmark, Listing
from pyrometer.units import format_duration

PATTERN = "bench_*.py"
PATIENCE_S = 600.0
"""What the import of a file may take: compiling takes minutes, and waiting for somebody has no end."""
_PROGRAM = ("-P", "-m", "pyrometer.experiment.bench_program")
_SHOWN_LINES = 15


def discover(
    path: Path,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    interpreter: str = sys.executable,
    patience_s: float = PATIENCE_S,
    unreadable: list[PyrometerError] | None = None,
) -> tuple[Benchmark, ...]:
    """The benchmarks of a file, or of all ``bench_*.py`` in a folder and below it; there is at least one.

    ``folder`` is where the processes run that import the files, ``variables`` what is different in their
    environment. Raises ``UsageError`` where nothing is found, names are not unique, or a function is marked
    that cannot be measured, and ``ProgramFailedError`` where a file cannot be imported, or not within
    ``patience_s``; what is wrong with a file goes into the list of those that are ``unreadable``, if there is
    one, as long as there are benchmarks in other files.
    """
    files = list(find_files(path))
    found: dict[str, Benchmark] = {}
    for file in files:
        try:
            listed = _list(
                file, folder=folder, variables=variables or {}, interpreter=interpreter, patience_s=patience_s
            )
        except (ProgramFailedError, UsageError) as error:
            if unreadable is None:
                raise
            unreadable.append(error)
            continue
        for benchmark in listed:
            if benchmark.name in found:
                raise UsageError(
                    f"{benchmark.name} is in {found[benchmark.name].file} and in {file}; rename one, so that "
                    "its results can be told apart"
                )
            found[benchmark.name] = benchmark
    if not found and unreadable:
        raise unreadable[0]
    if not found:
        where = str(path) if path.is_file() else f"the {len(files)} files {PATTERN} in {path}"
        raise UsageError(f"no function in {where} is marked with @pyrometer.benchmark")
    return tuple(found.values())


def is_named(benchmark: Benchmark, names: Sequence[str]) -> bool:
    """Whether one of the names is its own or its function's; where there are none, each is meant."""
    return not names or benchmark.name in names or benchmark.function in names


def find_files(path: Path) -> Iterator[Path]:
    """The file itself, or a folder's by name; environments and hidden folders are not searched."""
    if path.is_file():
        if path.suffix != ".py":
            raise UsageError(
                f"{path} is no Python file; name a file of benchmarks, or a folder with {PATTERN}"
            )
        yield path
        return
    if not path.is_dir():
        raise UsageError(f"{path} does not exist; name a file of benchmarks, or a folder with {PATTERN}")
    found = False
    for folder, files in walk_project(path):
        for name in files:
            if fnmatch(name, PATTERN) and (folder / name).is_file():
                found = True
                yield folder / name
    if not found:
        raise UsageError(f"there is no {PATTERN} in {path}")


def side_of(
    benchmark_name: str,
    *,
    file: Path,
    folder: Path,
    calls: int,
    name: str,
    shown: Path | None = None,
    variables: Mapping[str, str] | None = None,
    interpreter: str = sys.executable,
) -> Side:
    """The program that runs one benchmark, ``calls`` calls a step; 0: as many as it finds out and tells.

    ``shown`` is the file as seen from the folder, where that is known. What the program tells is a
    ``BenchmarkNote``, with each turn from the first on.
    """
    file = file.resolve()
    if shown is None:
        shown = file.relative_to(folder.resolve()) if file.is_relative_to(folder.resolve()) else file
    return Side(
        name=name,
        # Within the folder the same on both sides, whatever their folders are called.
        arguments=(*_PROGRAM, str(shown), benchmark_name, "--calls", str(calls)),
        folder=folder,
        program_folder=file.parent,
        variables=variables or {},
        interpreter=interpreter,
        shown=(file.name, str(shown), benchmark_name),
    )


def _list(
    file: Path,
    *,
    folder: Path | None,
    variables: Mapping[str, str],
    interpreter: str,
    patience_s: float,
) -> tuple[Benchmark, ...]:
    environment = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
    try:
        finished = subprocess.run(
            [interpreter, *_PROGRAM, str(file.resolve()), "--list"],
            cwd=folder,
            env=environment | dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=patience_s,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailedError(
            f"{file} was still being imported after {format_duration(patience_s * 1e9)}; what takes long "
            "belongs into a setup",
            None,
            _last_lines(error.stderr or b""),
        ) from None
    if finished.returncode != 0:
        raise ProgramFailedError(str(file), finished.returncode, _last_lines(finished.stderr))
    try:
        listing = msgspec.json.decode(finished.stdout, type=Listing)
    except msgspec.DecodeError as error:
        raise ProgramFailedError(
            f"{file}: what it has marked cannot be told, it ended too soon or wrote something else: {error}",
            finished.returncode,
            _last_lines(finished.stderr),
        ) from error
    if listing.problem is not None:
        problem = listing.problem.removeprefix(f"{file.resolve()}: ")
        raise UsageError(f"{file}: {problem}")
    return tuple(msgspec.structs.replace(one, file=str(file)) for one in listing.benchmarks)


def _last_lines(said: bytes) -> str:
    return "\n".join(said.decode(errors="replace").splitlines()[-_SHOWN_LINES:])
