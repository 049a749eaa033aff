"""What the files of a tree are imported as."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyrometer.analysis.codemap.inventory import part_name

_INIT = frozenset({"__init__.py", "__init__.pyi"})


class Layout:
    """Names of modules by the paths of their files.

    A module's name begins at its outermost package, the highest folder with an ``__init__.py``; folders
    without one below that are packages too, as for Python. What is in no package is named by its path
    from the folder that is on the path when it is used: ``src``, or the root.
    """

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        self._above = _packages_above(root)
        places = (path.rpartition("/") for path in paths)
        self._packages = {folder for folder, _, name in places if name in _INIT}

    @property
    def above(self) -> str | None:
        """The package that the root is, with those it is in; None where it is none."""
        return ".".join(self._above) or None

    def module_of(self, path: str) -> str:
        """What a Python file is imported as."""
        *folders, name = path.split("/")
        stem = part_name(name.rsplit(".", 1)[0])
        parts = [*self._above, *map(part_name, folders[self._begin(folders) :])]
        return ".".join(parts if name in _INIT else [*parts, stem]) or stem

    def package_of(self, path: str) -> str:
        """The package in which relative imports of a file are looked up."""
        module = self.module_of(path)
        return module if path.rpartition("/")[2] in _INIT else module.rpartition(".")[0]

    def _begin(self, folders: Sequence[str]) -> int:
        """From which of its folders on a file's path is a name."""
        if self._above:
            return 0
        for depth in range(len(folders)):
            if "/".join(folders[: depth + 1]) in self._packages:
                return depth
        return 1 if folders[:1] == ["src"] else 0


def _packages_above(root: Path) -> tuple[str, ...]:
    """The names of the root and of what it is in, as far as they are packages."""
    names: list[str] = []
    folder = root
    while any((folder / name).is_file() for name in _INIT) and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    return tuple(names)
