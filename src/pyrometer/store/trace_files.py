"""Traces on disk: written piece by piece, whole or not at all."""

import contextlib
import gzip
import os
from collections.abc import Iterable
from pathlib import Path

from pyrometer.errors import UsageError
from pyrometer.store.run_files import name_of_rank, reason_of

_ENDINGS = (".json", ".json.gz")
_BEGINNING = b'{"displayTimeUnit":"ns","otherData":{"made_by":"pyrometer"}'


def resolve_trace(option: str, *, folder: Path) -> Path:
    """The file a trace is to be written to, known to be usable before the program has run.

    Only an older trace of ours is ever replaced. Its folder is made here. Under torchrun each rank has a
    file of its own, named as those of runs are.
    """
    if not option.endswith(_ENDINGS):
        raise UsageError(f"--trace is {option!r}, but must name a file that ends in .json or .json.gz")
    path = folder / option
    try:
        path = path.with_name(name_of_rank(path.name, os.environ)).absolute()
        if path.exists() and not _is_ours(path):
            raise UsageError(
                f"{option} exists and is no trace of ours; name another file, or remove this one"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot write a trace to {option}: {reason_of(error)}; name another file"
        ) from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write a trace to {option}: Permission denied; name another file")
    return path


def write_trace(pieces: Iterable[str], path: Path) -> None:
    """Write the trace, compressed if the name says so."""
    path = Path(os.path.realpath(path))
    unfinished = path.parent / f".pyrometer-{os.urandom(8).hex()}.tmp"
    try:
        with unfinished.open("xb") as file:
            if path.name.endswith(".gz"):
                # Level 1: a trace is read once or twice, and the program's end waits for it.
                with gzip.GzipFile("", "wb", 1, file, mtime=0) as packed:
                    packed.writelines(piece.encode("utf-8") for piece in pieces)
            else:
                file.writelines(piece.encode("utf-8") for piece in pieces)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        beginning = file.read(len(_BEGINNING))
        if beginning.startswith(b"\x1f\x8b"):
            file.seek(0)
            with contextlib.suppress(OSError, EOFError):
                beginning = gzip.GzipFile(fileobj=file).read(len(_BEGINNING))
    return beginning in {b"", _BEGINNING}
