"""Baseline files on disk: one for all configurations of a program, each replaced by its newest run."""

import os
from pathlib import Path

import msgspec

from pyrometer.analysis.baseline import BASELINE_FORMAT, BASELINE_VERSION, Baseline
from pyrometer.errors import RunFileError, UsageError
from pyrometer.store.run_files import name_of_rank, read_regular_file, reason_of, replace_whole


class _Header(msgspec.Struct, frozen=True):
    format: str | None = None
    version: int | None = None


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


def read_baseline(path: Path) -> Baseline | None:
    """The baseline in the file; None where there is no file, or an empty one."""
    try:
        data = read_regular_file(path)
    except FileNotFoundError:
        return None
    except RunFileError as error:
        raise _not_a_baseline(path, error.problem) from None
    if not data.strip():
        return None
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.format != BASELINE_FORMAT:
            raise _not_a_baseline(path, f'it has no "format": "{BASELINE_FORMAT}"')
        if header.version != BASELINE_VERSION:
            raise _not_a_baseline(
                path, f"its version is {header.version}, and this Pyrometer knows {BASELINE_VERSION}"
            )
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_baseline(path, " ".join(str(error).split())) from None


def write_baseline(text: str, path: Path) -> None:
    """Write the text of a baseline, whole or not at all."""
    try:
        replace_whole(Path(os.path.realpath(path)), text.encode("utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot write the baseline to {path}: {reason_of(error)}; name another file"
        ) from error


def _not_a_baseline(path: Path, problem: str) -> UsageError:
    return UsageError(
        f"{path} exists and is not a baseline that could be added to ({problem}); "
        "name another file, or remove this one"
    )
