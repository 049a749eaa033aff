"""The limits of machines on disk: one small file for each, in the user's cache folder."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pyrometer.errors import RunFileError
from pyrometer.record.limits import KERNELS_VERSION, Limits
from pyrometer.record.limits_validation import limits_problems
from pyrometer.store.run_files import read_regular_file, reason_of, replace_whole

MAX_LIMITS_BYTES = 1 << 20


class KeptLimitsError(Exception):
    """Limits that cannot be read, or cannot be kept, and why."""


def limits_path(identity: str, environment: Mapping[str, str]) -> Path | None:
    """Where the limits of the machine of this identity are kept; None without a home."""
    folder = cache_folder(environment)
    return None if folder is None else folder / f"limits-{identity}.json"


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where what can be found out again is kept for the user; None without a home."""
    cache = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # noqa: PTH117 - a relative one is to be ignored, says its specification
        home = environment.get("HOME", "")
        if not os.path.isabs(home):  # noqa: PTH117 - likewise
            return None
        cache = f"{home}/.cache"
    return Path(cache) / "pyrometer"


def read_limits(path: Path | None, *, identity: str) -> Limits | None:
    """The limits in the file; None where there is none, or where it is for other kernels.

    Whatever else is in it gives one ``KeptLimitsError``.
    """
    if path is None:
        return None
    try:
        data = read_regular_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RunFileError as error:
        raise KeptLimitsError(f"{path}: {error.problem}") from None
    except (OSError, ValueError) as error:
        raise KeptLimitsError(f"{path}: cannot be read: {reason_of(error)}") from None
    if len(data) > MAX_LIMITS_BYTES:
        raise KeptLimitsError(f"{path}: larger than the {MAX_LIMITS_BYTES:,} bytes limits may have")
    try:
        limits = msgspec.json.decode(data, type=Limits)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KeptLimitsError(f"{path}: {' '.join(str(error).split())}") from None
    problem = next(limits_problems(limits, "$"), None)
    if problem is not None:
        raise KeptLimitsError(f"{path}: {problem.text} (at {problem.place})")
    if limits.kernels_version != KERNELS_VERSION or limits.identity != identity:
        return None
    return limits


def write_limits(limits: Limits, path: Path | None) -> None:
    """Keep the limits, whole or not at all; raises ``KeptLimitsError`` where that cannot be."""
    if path is None:
        raise KeptLimitsError("there is neither HOME nor XDG_CACHE_HOME")
    try:
        text = msgspec.json.format(msgspec.json.encode(limits), indent=2)
        replace_whole(Path(os.path.realpath(path)), text + b"\n")
    except (OSError, ValueError) as error:
        raise KeptLimitsError(f"{path}: {reason_of(error)}") from None
