"""Whether each side ran its own code: an installed project would have both run the same."""

import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

_SOURCE_FOLDERS = ("", "src", "lib", "python")


def find_foreign_modules(imported: Mapping[str, str], *, own: Path, other: Path) -> list[tuple[str, str]]:
    """(module, file) of each of the project's modules that a side took from elsewhere than its own tree.

    Such are modules out of the ``other`` side's tree, and modules that its own tree has as well.
    """
    installed = [
        Path(folder).resolve() for folder in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix}
    ]
    own, other = own.resolve(), other.resolve()
    foreign = []
    for name, file in sorted(imported.items()):
        path = Path(file)
        if path.is_relative_to(own) and not _is_below(path, installed, inside=own):
            continue
        is_theirs = path.is_relative_to(other) and own != other
        is_shadowed = "." not in name and name != "__main__" and _has_module(own, name)
        if is_shadowed or (is_theirs and not _is_below(path, installed, inside=other)):
            foreign.append((name, file))
    return foreign


def _is_below(path: Path, folders: list[Path], *, inside: Path) -> bool:
    """Whether it is in one of the folders that are in the tree: a virtual environment is no project code."""
    return any(
        folder != inside and folder.is_relative_to(inside) and path.is_relative_to(folder)
        for folder in folders
    )


def _has_module(root: Path, name: str) -> bool:
    return any(
        (root / folder / name / "__init__.py").is_file() or (root / folder / f"{name}.py").is_file()
        for folder in _SOURCE_FOLDERS
    )
