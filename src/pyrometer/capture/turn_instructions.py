"""The instructions of a turn, counted by callgrind."""

import contextlib
import importlib
import os
from pathlib import Path
from typing import Any

from pyrometer._native import KIND
from pyrometer.capture.callgrind_file import read_instructions
from pyrometer.capture.losses import note_loss


class TurnInstructions:
    """Counts what this process executes between ``begin()`` and ``end()``, if valgrind runs it."""

    def __init__(self, counts_file: Path) -> None:
        # Valgrind adds the process id to the name.
        self._file = counts_file.with_name(f"{counts_file.name}.{os.getpid()}")
        self._core: Any = importlib.import_module("pyrometer._native.core") if KIND == "native" else None
        if self._core is None or not self._core.on_valgrind():
            note_loss("instructions", "not counted: the program does not run on valgrind")
            self._core = None

    def begin(self) -> None:
        """Count from here."""
        if self._core is not None:
            with contextlib.suppress(FileNotFoundError):
                self._file.unlink()  # callgrind would add to it
            self._core.start_callgrind()

    def end(self) -> int | None:
        """What was counted since; None where nothing was."""
        if self._core is None:
            return None
        self._core.dump_callgrind()
        self._core.stop_callgrind()
        try:
            with self._file.open(encoding="utf-8", errors="replace") as lines:
                return read_instructions(lines) or None
        except (OSError, ValueError, IndexError) as error:
            note_loss("instructions", f"what callgrind wrote cannot be read: {error}")
            return None
