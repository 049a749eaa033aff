"""Which files of a folder are the project's own."""

import os
from collections.abc import Iterator
from pathlib import Path

_NOT_SEARCHED = frozenset({"__pycache__", "node_modules", "build", "dist"})
_OF_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
"""What a folder has that is a virtual environment, or one of conda's."""


def walk_project(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each folder with the names of its files, in order.

    Environments, hidden folders, builds and other repositories, as clones and submodules are, are left out.
    """
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if _is_searched(Path(folder, name)))
        yield Path(folder), sorted(files)


def _is_searched(folder: Path) -> bool:
    return (
        not folder.name.startswith(".")
        and folder.name not in _NOT_SEARCHED
        and not (folder / ".git").exists()
        and not any((folder / name).exists() for name in _OF_ENVIRONMENTS)
    )
