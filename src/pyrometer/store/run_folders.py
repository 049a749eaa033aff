"""Several runs in one folder: those of as many processes of one program."""

from collections.abc import Iterator
from pathlib import Path

from pyrometer.errors import RunFileError
from pyrometer.record.run import FORMAT_NAME, Run
from pyrometer.store.run_files import RUN_FILE_NAME, read_run, reason_of

MOST_RUNS = 1_000

_PACKED = ".json.gz"
_PLAIN = ".json"
_BEGINNING_BYTES = 200


def read_runs(path: Path) -> tuple[tuple[Path, Run], ...]:
    """The run in a file, or all runs in a folder and right below it, by name.

    Other files of a folder are passed over; one that begins as a run and cannot be read is an error.
    """
    if not path.is_dir():
        return ((path, read_run(path)),)
    try:
        found = sorted(_run_files(path))
    except OSError as error:
        raise RunFileError(f"cannot be looked into: {reason_of(error)}", path=path) from error
    if not found:
        raise RunFileError("the folder holds no runs; name a run file, or a folder of runs", path=path)
    if len(found) > MOST_RUNS:
        raise RunFileError(f"holds {len(found):,} runs, more than the {MOST_RUNS:,} of a side", path=path)
    return tuple((file, read_run(file)) for file in found)


def _run_files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            inside = entry / RUN_FILE_NAME
            if inside.is_file():
                yield inside
        elif entry.name.endswith((_PLAIN, _PACKED)) and entry.is_file() and _begins_as_a_run(entry):
            yield entry


def _begins_as_a_run(path: Path) -> bool:
    """Whether it says that it is a run; a packed file tells that only once it is read."""
    if path.name.endswith(_PACKED):
        return True
    with path.open("rb") as file:
        return f'"{FORMAT_NAME}"'.encode() in file.read(_BEGINNING_BYTES)
