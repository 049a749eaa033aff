"""Several runs in one folder: those of as many processes of one program."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from pyrometer.errors import RunFileError
from pyrometer.record.run import FORMAT_NAME, Run
from pyrometer.store.run_files import RUN_FILE_NAME, read_beginning, read_run, read_unpacked, reason_of
from pyrometer.units import format_count

MOST_RUNS = 1_000

_ENDINGS = (".json", ".json.gz")
_NAME_BELOW = re.compile(r"run(-rank[0-9]+)?\.json(\.gz)?")
_RANK = re.compile(r"(.*)-rank([0-9]+)(\.json(?:\.gz)?)", re.DOTALL)
_SAYS_IT_IS_ONE = f'"{FORMAT_NAME}"'.encode()
_BEGINNING = f'{{"format":"{FORMAT_NAME}"'.encode()
_BEGINNING_BYTES = 200


class _Format(msgspec.Struct, frozen=True):
    format: str | None = None


def read_runs(path: Path, *, tell: Callable[[str], None]) -> tuple[tuple[Path, Run], ...]:
    """The run in a file, or all runs in a folder and right below it, by name.

    Other files of a folder are passed over, and ``tell`` gets a line for each that is no JSON. What is or
    may be left of a run, an empty file too, is an error. Of the ranks that torchrun started together, as
    names of files or else the runs have them, only the lowest counts, and ``tell`` gets a line that says so.
    """
    if not path.is_dir():
        return ((path, read_run(path)),)
    try:
        found = [file for entry in sorted(path.iterdir()) for file in _run_files(entry, tell)]
    except OSError as error:
        raise RunFileError(f"cannot be looked into: {reason_of(error)}", path=path) from error
    files = _lowest_of_each_launch(found)
    if not files:
        raise RunFileError("the folder holds no runs; name a run file, or a folder of runs", path=path)
    if len(files) > MOST_RUNS:
        raise RunFileError(f"holds {len(files):,} runs, more than the {MOST_RUNS:,} of a side", path=path)
    runs = _lowest_recorded([(file, read_run(file)) for file in files])
    if len(runs) < len(found):
        several = format_count(len(found) - len(runs), "run of another rank is", "runs of other ranks are")
        tell(f"{path}: {several} left out: they are the same launches, and no further processes")
    return runs


def _run_files(entry: Path, tell: Callable[[str], None]) -> Iterator[Path]:
    if entry.is_dir():
        yield from _run_files_below(entry)
    elif entry.name.endswith(_ENDINGS) and entry.is_file() and _is_or_was_a_run(entry, tell):
        yield entry


def _run_files_below(folder: Path) -> Iterator[Path]:
    """What ``-o FOLDER`` writes there, with its rank under torchrun."""
    files = sorted(file for file in folder.iterdir() if _NAME_BELOW.fullmatch(file.name))
    for file in files:
        is_packed_copy = file.name == f"{RUN_FILE_NAME}.gz" and folder / RUN_FILE_NAME in files
        if file.is_file() and not is_packed_copy:
            yield file


def _lowest_of_each_launch(files: Sequence[Path]) -> list[Path]:
    """Those files, of several that differ in the rank in their names only that of the lowest, in order."""
    kept: dict[tuple[Path, str, str] | Path, tuple[int, Path]] = {}
    for file in files:
        named = _RANK.fullmatch(file.name)
        launch, rank = (file, 0) if named is None else ((file.parent, named[1], named[3]), int(named[2]))
        kept[launch] = min(kept.get(launch, (rank, file)), (rank, file))
    return [file for _, file in kept.values()]


def _lowest_recorded(runs: Sequence[tuple[Path, Run]]) -> tuple[tuple[Path, Run], ...]:
    """Those runs, of files without a rank in their names only those of the lowest rank that any of them has.

    Nothing says of which launch such a run is: where rank 0 is, the others' launches have theirs too.
    """
    unnamed = {file: run.program.rank or 0 for file, run in runs if _RANK.fullmatch(file.name) is None}
    lowest = min(unnamed.values(), default=0)
    return tuple((file, run) for file, run in runs if unnamed.get(file, lowest) == lowest)


def _is_or_was_a_run(path: Path, tell: Callable[[str], None]) -> bool:
    """Whether it says that it is a run, or was cut off before: reading it then tells what is wrong."""
    try:
        beginning = read_beginning(path, _BEGINNING_BYTES)
    except RunFileError:
        return True
    if _SAYS_IT_IS_ONE in beginning or _BEGINNING.startswith(beginning.strip()):
        return True
    try:
        return msgspec.json.decode(read_unpacked(path), type=_Format).format == FORMAT_NAME
    except (msgspec.ValidationError, RunFileError):
        return False  # JSON of another kind, or larger than a run can be
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        tell(f"{path} is left out: it is no run, and no JSON ({error})")
        return False
