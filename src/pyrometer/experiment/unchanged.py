"""Whether files stay as they are while they are measured."""

from collections.abc import Iterable
from pathlib import Path


class FileStates:
    """When files were last written, and their sizes: as they were when each was first looked at."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[int, int] | None] = {}

    def find_changed(self, files: Iterable[str]) -> str | None:
        """The first of the files that is not what it was, or gone; None where all are as they were."""
        for file in files:
            state = _state_of(file)
            if self._states.setdefault(file, state) != state:
                return file
        return None


def _state_of(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
