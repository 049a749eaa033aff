"""What the files of a tree are imported as."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from pyrometer.analysis.codemap.inventory import names_in_path

_INIT = frozenset({"__init__.py", "__init__.pyi"})


class Layout:
    """Names of modules by the paths of their files.

    A module's name begins at its outermost package, the highest folder with an ``__init__.py``; folders
    without one below that are packages too, as for Python. In ``src`` it begins there. What is in no
    package is named by its path from the root, and so are packages that have one name: in a folder with
    several projects, each may have its ``tests``.
    """

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        packages = _packages_above(root)
        self._above = (*_namespace_above([root, *root.parents][len(packages)]), *packages)
        places = [path.rpartition("/") for path in paths]
        self._packages = {folder for folder, _, name in places if name in _INIT}
        outermost = {folder for folder in self._packages if not self._is_inside(folder)}
        names = Counter(folder.rpartition("/")[2] for folder in outermost)
        self._repeated = {folder for folder in outermost if names[folder.rpartition("/")[2]] > 1}

    def _is_inside(self, folder: str) -> bool:
        """Whether a folder around it is a package."""
        folders = folder.split("/")
        return any("/".join(folders[:depth]) in self._packages for depth in range(1, len(folders)))

    @property
    def above(self) -> str | None:
        """The package that the root is, with those it is in; None where it is none."""
        return ".".join(self._above) or None

    def module_of(self, path: str) -> str:
        """What a Python file is imported as."""
        names = names_in_path(path)[self._begin(path.split("/")[:-1]) :]
        return ".".join((*self._above, *names)) or "__init__"

    def package_of(self, path: str) -> str:
        """The package in which relative imports of a file are looked up."""
        module = self.module_of(path)
        return module if path.rpartition("/")[2] in _INIT else module.rpartition(".")[0]

    def _begin(self, folders: Sequence[str]) -> int:
        """From which of its folders on a file's path is a name."""
        if self._above:
            return 0
        if folders[:1] == ["src"]:
            return 1
        for depth in range(len(folders)):
            folder = "/".join(folders[: depth + 1])
            if folder in self._packages:
                return 0 if folder in self._repeated else depth
        return 0


def _packages_above(root: Path) -> tuple[str, ...]:
    """The names of the root and of what it is in, as far as they are packages."""
    names: list[str] = []
    folder = root
    while any((folder / name).is_file() for name in _INIT) and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    return tuple(names)


def _namespace_above(folder: Path) -> tuple[str, ...]:
    """The same for a folder without a file of its own, where Python could import it all the same.

    That is so below the ``src`` of a project, and below what is on the path; not by the folder that one
    happens to be in.
    """
    names: list[str] = []
    on_path = {Path(entry).resolve() for entry in sys.path if entry} - {Path.cwd()}
    while folder != folder.parent:
        if folder.name == "src" and _is_project(folder.parent):
            return tuple(names)
        if folder in on_path:
            spec = PathFinder.find_spec(names[0], sys.path) if names else None
            places = [] if spec is None else list(spec.submodule_search_locations or ())
            return tuple(names) if names and str(folder / names[0]) in places else ()
        if not folder.name.isidentifier() or _is_project(folder):
            return ()
        names.insert(0, folder.name)
        folder = folder.parent
    return ()


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg", ".git"))
