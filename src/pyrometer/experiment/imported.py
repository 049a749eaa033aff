"""Whether each side ran its own code: an installed project would have both run the same."""

import sys
import sysconfig
from collections.abc import Collection, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath

from pyrometer.experiment.project_files import walk_project

_COMPILED = tuple(EXTENSION_SUFFIXES)


def python_files(root: Path) -> frozenset[str]:
    """The Python files of a tree as paths from its root; environments and hidden folders are not searched."""
    return frozenset(
        (folder / name).relative_to(root).as_posix()
        for folder, files in walk_project(root)
        for name in files
        if name.endswith(".py")
    )


def find_foreign_modules(
    imported: Mapping[str, str],
    *,
    own: Path,
    other: Path,
    files: Collection[str],
    linked: Collection[Path] = (),
) -> list[tuple[str, str]]:
    """(module, file) of each of the project's modules that a side took from elsewhere than its own tree.

    Such are modules out of the ``other`` side's tree, and modules that its own tree has as well, among
    its ``files``. What is ``linked`` is meant to be the same on both sides.
    """
    own, other = own.resolve(), other.resolve()
    roots = _source_roots(files)
    foreign = []
    for name, file in sorted(imported.items()):
        path = Path(file)
        if name == "__mp_main__":
            continue  # the program once more, by the name it has for children
        if is_project_code(path, own) or any(path.is_relative_to(one) for one in linked):
            continue
        if (own != other and is_project_code(path, other)) or _stands_in(name, path, files, roots):
            foreign.append((name, file))
    return foreign


def find_missing_extensions(
    imported: Mapping[str, str], other: Mapping[str, str], *, own: Path
) -> list[tuple[str, str]]:
    """(module, file) of each compiled module out of a side's own tree that is none of the ``other`` side's.

    Where it is built in place, git does not know it, and a checkout is without: a program that makes do
    without it, or with the same module in Python, would then be compared with another program.
    """
    own = own.resolve()
    return [
        (name, file)
        for name, file in sorted(imported.items())
        if file.endswith(_COMPILED)
        and not other.get(name, "").endswith(_COMPILED)
        and is_project_code(Path(file), own)
    ]


def find_own_and_installed(
    imported: Mapping[str, str],
    other: Mapping[str, str],
    *,
    own: Path,
    others_own: Path,
    expected: Collection[Path] = (),
) -> list[str]:
    """The modules that one side has from its own tree, and the ``other`` from outside of its own.

    As where a submodule is not checked out, and a copy of it is installed. What is out of the ``expected``
    folders and files is where it should be.
    """
    own, others_own = own.resolve(), others_own.resolve()
    return [
        name
        for name, file in sorted(imported.items())
        if name in other
        and is_project_code(Path(file), own)
        and not is_project_code(Path(other[name]), others_own)
        and not any(Path(other[name]).is_relative_to(one) for one in expected)
    ]


def is_project_code(path: Path, root: Path) -> bool:
    """Whether it is in the tree, and not in a virtual environment that is in it."""
    if not path.is_relative_to(root):
        return False
    installed = {*map(sysconfig.get_path, ("purelib", "platlib", "stdlib")), sys.prefix}
    folders = [Path(folder).resolve() for folder in installed]
    return not any(
        folder != root and folder.is_relative_to(root) and path.is_relative_to(folder) for folder in folders
    )


def _source_roots(files: Collection[str]) -> frozenset[str]:
    """The folders that modules may be imported from: all with code in or below them that are no packages.

    A folder above one without an ``__init__.py`` too: that one may be a package all the same.
    """
    packages = {PurePosixPath(file).parent for file in files if PurePosixPath(file).name == "__init__.py"}
    above = {folder for file in files for folder in PurePosixPath(file).parents}
    return frozenset(folder.as_posix() for folder in above - packages)


def _stands_in(name: str, file: Path, files: Collection[str], roots: Collection[str]) -> bool:
    """Whether the tree has the module as well: its file by the same path from where it is imported."""
    if name == "__main__":
        return False
    relative = _relative(name, is_package=file.name == "__init__.py")
    return any(_below(root, relative) in files for root in roots)


def source_root_of(name: str, files: Collection[str]) -> str | None:
    """The folder of the tree that a module would be imported from; None where it has none of that name."""
    for is_package in (True, False):
        relative = _relative(name, is_package=is_package)
        for root in sorted(_source_roots(files)):
            if _below(root, relative) in files:
                return root
    return None


def _relative(name: str, *, is_package: bool) -> str:
    return "/".join([*name.split("."), "__init__"] if is_package else name.split(".")) + ".py"


def _below(root: str, relative: str) -> str:
    return relative if root == "." else f"{root}/{relative}"
