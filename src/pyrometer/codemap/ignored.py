"""What ``.gitignore`` files leave out."""

import os
from pathlib import Path

from pathspec import GitIgnoreSpec


class Ignored:
    """The rules that hold in a folder: those of its own file before those of the folders around it."""

    def __init__(self, folder: Path, around: "Ignored | None" = None) -> None:
        self.folder = folder
        self.around = around
        self.rules = _read(folder / ".gitignore")

    @classmethod
    def at(cls, folder: Path) -> "Ignored":
        """The rules at a folder, with those of its repository; not those by which it is left out itself."""
        folders = [folder]
        for outer in folder.parents:
            if (folders[-1] / ".git").exists():
                break
            folders.append(outer)
        else:
            folders = [folder]  # in no repository
        rules: Ignored | None = None
        for one in reversed(folders):
            rules = cls(one, rules)
        if rules is None or (rules.around is not None and rules.around.has(str(folder), is_folder=True)):
            return cls(folder)
        return rules

    def has(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path below the folder is left out; the nearest rule that says something of it decides."""
        here: Ignored | None = self
        while here is not None:
            if here.rules is not None:
                seen = os.path.relpath(path, here.folder) + ("/" if is_folder else "")
                decision = here.rules.check_file(seen).include
                if decision is not None:
                    return decision
            here = here.around
        return False


def _read(file: Path) -> GitIgnoreSpec | None:
    try:
        # Not of a pipe: nobody might ever write into it.
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    except OSError:
        return None
    return GitIgnoreSpec.from_lines(filter(_is_rule, lines)) if lines else None


def _is_rule(line: str) -> bool:
    """Whether git would take the line for a rule; what it does not understand it passes over, too."""
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
