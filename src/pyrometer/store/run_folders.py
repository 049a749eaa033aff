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
_RANK = re.compile(r"(.*)-rank([0-9]+)(\.json(?:\.gz)?)", re.DOTALL)
_SAYS_IT_IS_ONE = f'"{FORMAT_NAME}"'.encode()
_BEGINNING = f'{{"format":"{FORMAT_NAME}"'.encode()
_BEGINNING_BYTES = 200


class _Format(msgspec.Struct, frozen=True):
    format: str | None = None


def read_runs(path: Path, *, tell: Callable[[str], None]) -> tuple[tuple[Path, Run], ...]:
    """The run in a file, or all runs in a folder and right below it, by name.

    Other files of a folder are passed over, and ``tell`` gets a line for each that is no JSON. What is or
    may be left of a run, an empty file too, is an error. Of the ranks that torchrun started together only
    the lowest is read, and ``tell`` gets a line that says so.
    """
    if not path.is_dir():
        return ((path, read_run(path)),)
    try:
        found = [file for entry in sorted(path.iterdir()) for file in _run_files(entry, tell)]
    except OSError as error:
        raise RunFileError(f"cannot be looked into: {reason_of(error)}", path=path) from error
    found = _lowest_ranks(found, path, tell)
    if not found:
        raise RunFileError("the folder holds no runs; name a run file, or a folder of runs", path=path)
    if len(found) > MOST_RUNS:
        raise RunFileError(f"holds {len(found):,} runs, more than the {MOST_RUNS:,} of a side", path=path)
    return tuple((file, read_run(file)) for file in found)


def _run_files(entry: Path, tell: Callable[[str], None]) -> Iterator[Path]:
    if entry.is_dir():
        inside = entry / RUN_FILE_NAME
        if inside.is_file():
            yield inside
    elif entry.name.endswith(_ENDINGS) and entry.is_file() and _is_or_was_a_run(entry, tell):
        yield entry


def _lowest_ranks(files: Sequence[Path], folder: Path, tell: Callable[[str], None]) -> list[Path]:
    """Those files, of several ranks of one launch only that of the lowest, in the same order."""
    kept: dict[tuple[str, ...] | Path, tuple[int, Path]] = {}
    for file in files:
        named = _RANK.fullmatch(file.name)
        launch, rank = (file, 0) if named is None else (named.group(1, 3), int(named[2]))
        kept[launch] = min(kept.get(launch, (rank, file)), (rank, file))
    if len(kept) < len(files):
        several = format_count(len(files) - len(kept), "run of another rank is", "runs of other ranks are")
        tell(f"{folder}: {several} left out: they are the same launches, and no further processes")
    return [file for _, file in kept.values()]


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
