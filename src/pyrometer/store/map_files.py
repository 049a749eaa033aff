"""Code maps on disk."""

from pathlib import Path

import msgspec

from pyrometer.errors import RunFileError
from pyrometer.record.code_map import MAP_FILE_NAME, MAP_FORMAT, MAP_VERSION, CodeMap
from pyrometer.store.run_files import read_regular_file, reason_of

_LOOKED_AT = 1 << 20
"""In this many bytes of a file is its format, whoever has put its keys into another order."""


class _Head(msgspec.Struct, frozen=True):
    version: int = 0


def map_file_in(path: Path) -> Path:
    """The map's file, of a folder that holds all its documents."""
    return path / MAP_FILE_NAME if path.is_dir() else path


def is_map(path: Path) -> bool:
    """Whether the file says that it holds a code map."""
    try:
        with path.open("rb") as file:
            return f'"{MAP_FORMAT}"'.encode() in file.read(_LOOKED_AT)
    except OSError:
        return False


def read_map(path: Path) -> CodeMap:
    """The code map in a file; whatever else is in it gives one ``RunFileError``."""
    try:
        data = read_regular_file(path)
        if msgspec.json.decode(data, type=_Head).version > MAP_VERSION:
            raise RunFileError("made by a newer Pyrometer; use that one, or make the map again", path=path)
        return msgspec.json.decode(data, type=CodeMap)
    except FileNotFoundError:
        raise RunFileError("there is no such file", path=path) from None
    except OSError as error:
        raise RunFileError(f"cannot be read: {reason_of(error)}", path=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunFileError(f"no code map: {' '.join(str(error).split())}", path=path) from None
