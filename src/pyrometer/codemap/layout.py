"""What the files of a tree are imported as."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_INIT = frozenset({"__init__.py", "__init__.pyi"})


class Layout:
    """Names of modules by the paths of their files.

    A module's name begins at its outermost package, the highest folder with an ``__init__.py``; folders
    without one below that are packages too, as for Python. What is in no package is named by its path
    from the folder that is on the path when it is used: ``src``, or the root.
    """

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        self._above = _packages_above(root)
        self._packages = {PurePosixPath(path).parent for path in paths if path.rpartition("/")[2] in _INIT}

    @property
    def above(self) -> str | None:
        """The package that the root is, with those it is in; None where it is none."""
        return ".".join(self._above) or None

    def module_of(self, path: str) -> str:
        """What a Python file is imported as."""
        pure = PurePosixPath(path)
        parts = [*pure.parts[self._begin(pure) : -1]]
        if pure.name not in _INIT:
            parts.append(pure.name.rsplit(".", 1)[0])
        return ".".join([*self._above, *parts] if self._is_inside(pure) else parts) or pure.stem

    def package_of(self, path: str) -> str:
        """The package in which relative imports of a file are looked up."""
        module = self.module_of(path)
        return module if PurePosixPath(path).name in _INIT else module.rpartition(".")[0]

    def _is_inside(self, path: PurePosixPath) -> bool:
        return bool(self._above) and self._begin(path) == 0

    def _begin(self, path: PurePosixPath) -> int:
        """From which of its folders on the path is a name."""
        if self._above:
            return 0
        for depth in range(len(path.parts) - 1):
            if PurePosixPath(*path.parts[: depth + 1]) in self._packages:
                return depth
        return 1 if path.parts[0] == "src" and len(path.parts) > 1 else 0


def _packages_above(root: Path) -> tuple[str, ...]:
    """The names of the root and of what it is in, as far as they are packages."""
    names: list[str] = []
    folder = root
    while any((folder / name).is_file() for name in _INIT) and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    return tuple(names)
