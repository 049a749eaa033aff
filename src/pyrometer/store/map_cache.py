"""What was read of sources, kept in the user's cache folder: the next map reads only what has changed."""

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pyrometer._version import __version__
from pyrometer.errors import RunFileError
from pyrometer.record.code_map import KnownFile
from pyrometer.store.run_files import read_regular_file, replace_whole

READERS_VERSION = 6
"""Raised when a file would be read to something else than before."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    pyrometer_version: str
    readers_version: int
    python_version: str
    """Another one may take what this one does not understand."""
    files: dict[str, KnownFile]


def cache_path(root: Path, cache_folder: Path | None) -> Path | None:
    """Where what was read below this folder is kept; None without a cache folder."""
    if cache_folder is None:
        return None
    return cache_folder / f"map-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}.json"


def read_cache(path: Path | None) -> Mapping[str, KnownFile]:
    """What is known; nothing where the file is damaged, or of another version: it is read anew then."""
    if path is None:
        return {}
    try:
        kept = msgspec.json.decode(read_regular_file(path), type=_Kept)
    except (OSError, RunFileError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    readers = (kept.pyrometer_version, kept.readers_version, kept.python_version)
    return kept.files if readers == (__version__, READERS_VERSION, _python_version()) else {}


def write_cache(path: Path | None, files: Mapping[str, KnownFile]) -> None:
    """Keep what is known; a cache that cannot be written is none."""
    if path is None:
        return
    kept = _Kept(
        pyrometer_version=__version__,
        readers_version=READERS_VERSION,
        python_version=_python_version(),
        files=dict(files),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(path, msgspec.json.encode(kept))
    except OSError:
        return


def _python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])
