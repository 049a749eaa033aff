"""Temporary folders of measurements, which go with them: at the end, or with the next one after a kill."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PREFIX = "pyrometer-measuring-"
_LOCK = ".lock"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, removed at the end; before, those whose owners were killed are removed.

    The owner holds a lock in it, which the system lets go however the owner ends.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / f"{_LOCK}.new").open("wb") as lock:
        # Locked before it can be found: a lock that nobody holds is that of one who was killed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / f"{_LOCK}.new").rename(folder / _LOCK)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # One of another user's, and one that another process removes just now, is none of ours.
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and not folder.is_symlink() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody holds its lock; one that has none yet is just being made."""
    with (folder / _LOCK).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
