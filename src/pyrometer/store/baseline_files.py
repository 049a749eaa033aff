"""Baseline files on disk: one for all configurations of a program, each replaced by its newest runs.

Those that have a name are ``benchmarks/NAME.json`` in the project's folder, to be kept with its code.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pyrometer.analysis.baseline import BASELINE_FORMAT, BASELINE_VERSION, Baseline, key_of
from pyrometer.analysis.saved_baseline import SavedBaseline
from pyrometer.errors import RunFileError, UsageError
from pyrometer.record.format import MAX_VALUES, decode_run
from pyrometer.record.run import Run
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import (
    MAX_FILE_BYTES,
    name_of_rank,
    read_regular_file,
    reason_of,
    replace_whole,
)

BASELINES_FOLDER_NAME = "benchmarks"

_ENDING = ".json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SAYS_IT_IS_ONE = re.compile(rb'"format"\s*:\s*"' + BASELINE_FORMAT.encode() + b'"')


class _NoBaselineError(Exception):
    """What is in the file is no baseline, and why."""


class _Format(msgspec.Struct, frozen=True):
    format: str | None = None


class _Header(_Format, frozen=True):
    version: int | None = None


class _Saved(msgspec.Struct, frozen=True):
    """What a saved baseline has beside its figures."""

    name: str | None = None
    saved_at: str | None = None
    configurations: dict[str, msgspec.Raw] = {}
    runs: dict[str, tuple[msgspec.Raw, ...]] = {}


# Files by name.


def baseline_path(name: str, *, folder: Path) -> Path:
    """The file of the baseline of that name, in the project that the folder belongs to."""
    if _NAME.fullmatch(name) is None or name.endswith(_ENDING):
        advice = f"; leave {_ENDING} out" if name.endswith(_ENDING) else ""
        raise UsageError(
            f"a baseline cannot be named {name[:100]!r}: a name is letters, digits, '.', '_' and '-', begins "
            f"with a letter or digit, and has at most 100 of them{advice}"
        )
    return project_folder(folder) / BASELINES_FOLDER_NAME / f"{name}{_ENDING}"


def load_baseline(name_or_path: str, *, folder: Path) -> tuple[Path, SavedBaseline]:
    """A baseline by its name, or by its file: what holds a slash or ends in ``.json``."""
    is_path = os.sep in name_or_path or name_or_path.endswith(_ENDING)
    path = folder / name_or_path if is_path else baseline_path(name_or_path, folder=folder)
    try:
        saved = _read(path)
    except (_NoBaselineError, OSError, ValueError) as error:
        raise _cannot_read(path, error) from None
    if saved is not None:
        return path, saved
    if is_path:
        raise UsageError(f"there is no baseline in {path}; save one with: pyrometer baseline save NAME RUN")
    raise _no_such_name(name_or_path, folder)


def load_saved_runs(name_or_path: str, *, folder: Path) -> dict[str, tuple[Run, ...]]:
    """The runs of a baseline by configuration, as ``key_of`` names it; see ``load_baseline``."""
    path, saved = load_baseline(name_or_path, folder=folder)
    if not saved.runs:
        name = path.name.removesuffix(_ENDING)
        raise UsageError(
            f"{path} has figures and no runs, as pyrometer run --baseline writes it; "
            f"save some with: pyrometer baseline save {name} RUN"
        )
    return dict(saved.runs)


def saved_baselines(folder: Path) -> Iterator[tuple[str, SavedBaseline | UsageError]]:
    """Each baseline of the project by name, or why it cannot be read; other files are passed over."""
    for name in baseline_names(folder):
        path = baseline_path(name, folder=folder)
        try:
            saved = _read(path)
        except (_NoBaselineError, OSError, ValueError) as error:
            yield name, _cannot_read(path, error)
        else:
            if saved is not None:
                yield name, saved


def baseline_names(folder: Path) -> list[str]:
    """The names of the project's baselines, in order; those too that are damaged and cannot be read."""
    place = project_folder(folder) / BASELINES_FOLDER_NAME
    try:
        files = sorted(place.glob(f"*{_ENDING}"))
    except OSError as error:
        raise UsageError(f"cannot look into {place}: {reason_of(error)}; check its permissions") from error
    names = [path.name.removesuffix(_ENDING) for path in files if is_baseline(path)]
    return [name for name in names if _NAME.fullmatch(name)]


def remove_baseline(name: str, *, folder: Path) -> Path:
    """Remove the baseline of that name, and nothing that is none; gives the file that was removed."""
    path = find_baseline(name, folder=folder)
    try:
        path.unlink()
    except OSError as error:
        raise UsageError(f"cannot remove {path}: {reason_of(error)}; check its permissions") from error
    return path


def find_baseline(name: str, *, folder: Path) -> Path:
    """The file of the baseline of that name, which is there and says that it is one."""
    path = baseline_path(name, folder=folder)
    if not os.path.lexists(path):
        raise _no_such_name(name, folder)
    if not is_baseline(path):
        raise UsageError(f"{path} is not a baseline, and stays; remove it yourself if it should go")
    return path


def is_baseline(path: Path) -> bool:
    """Whether a baseline is in the file, a damaged one too: what a merge left is no name that is free."""
    try:
        data = read_regular_file(path)
    except (OSError, RunFileError):
        return False
    try:
        return msgspec.json.decode(data, type=_Format).format == BASELINE_FORMAT
    except msgspec.ValidationError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _SAYS_IT_IS_ONE.search(data) is not None


def _no_such_name(name: str, folder: Path) -> UsageError:
    names = ", ".join(baseline_names(folder)) or "none yet"
    return UsageError(
        f"No baseline named {name!r} (saved: {names}). Save one with: pyrometer baseline save {name} RUN"
    )


# Any file.


def resolve_baseline(option: str, *, folder: Path) -> Path:
    """The file a baseline is to be written to, known to be usable before the program has run.

    Only a baseline is ever added to; no other file is replaced. Its folder is made here. Under
    torchrun each rank has a file of its own, named as those of runs are.
    """
    if not option or option.endswith(os.sep):
        raise UsageError(f"--baseline is {option!r}, but must name a file, such as baseline.json")
    path = folder / option
    try:
        path = path.with_name(name_of_rank(path.name, os.environ))
        read_baseline(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot write a baseline to {option}: {reason_of(error)}; name another file"
        ) from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write a baseline to {option}: Permission denied; name another file")
    return path


def read_baseline(path: Path) -> SavedBaseline | None:
    """The baseline in a file that is to be added to; None where there is no file, or an empty one."""
    try:
        return _read(path)
    except _NoBaselineError as error:
        raise UsageError(
            f"{path} exists and is not a baseline that could be added to ({error}); "
            "name another file, or remove this one"
        ) from None


def write_baseline(text: str, path: Path) -> None:
    """Write the text of a baseline, whole or not at all."""
    data = text.encode("utf-8")
    if len(data) > MAX_FILE_BYTES or data.count(b",") > MAX_VALUES:
        raise UsageError(
            f"the baseline for {path} takes {len(data):,} bytes, and only {MAX_FILE_BYTES:,} could be read "
            "back; save fewer runs"
        )
    try:
        replace_whole(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise UsageError(
            f"cannot write the baseline to {path}: {reason_of(error)}; name another file"
        ) from error


def _read(path: Path) -> SavedBaseline | None:
    try:
        data = read_regular_file(path)
    except FileNotFoundError:
        return None
    except RunFileError as error:
        raise _NoBaselineError(error.problem) from None
    if not data.strip():
        return None
    if data.count(b",") > MAX_VALUES:
        raise _NoBaselineError(f"it holds more than {MAX_VALUES:,} values")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _NoBaselineError(" ".join(str(error).split())) from None
    except RunFileError as error:
        raise _NoBaselineError(str(error)) from None


def _decode(data: bytes) -> SavedBaseline:
    header = msgspec.json.decode(data, type=_Header)
    if header.format != BASELINE_FORMAT:
        raise _NoBaselineError(f'it has no "format": "{BASELINE_FORMAT}"')
    if header.version != BASELINE_VERSION:
        raise _NoBaselineError(
            f"its version is {header.version}, and this Pyrometer knows {BASELINE_VERSION}"
        )
    saved = msgspec.json.decode(data, type=_Saved)
    runs = {key: _runs_of(key, several) for key, several in saved.runs.items() if several}
    without_figures = not saved.configurations and bool(runs)
    return SavedBaseline(
        name=saved.name,
        saved_at=saved.saved_at,
        figures=None if without_figures else msgspec.json.decode(data, type=Baseline),
        runs=runs,
    )


def _runs_of(key: str, several: tuple[msgspec.Raw, ...]) -> tuple[Run, ...]:
    runs = tuple(
        decode_run(bytes(run), path=f"run {number} of {key!r}") for number, run in enumerate(several, start=1)
    )
    for run in runs:
        if key_of(run.program) != key:
            raise _NoBaselineError(f"a run of {key_of(run.program)!r} stands under {key!r}")
    return runs


def _cannot_read(path: Path, error: _NoBaselineError | OSError | ValueError) -> UsageError:
    reason = str(error) if isinstance(error, _NoBaselineError) else reason_of(error)
    return UsageError(
        f"{path} cannot be read as a baseline ({reason}); repair it, or remove it and save it anew"
    )
