"""From a path, or the name of a package, to its code map."""

import importlib.machinery
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path, PurePath

from pyrometer._version import __version__
from pyrometer.analysis.codemap.packages import normalized
from pyrometer.codemap.declarations import Declarations, find_declarations
from pyrometer.codemap.layout import Layout
from pyrometer.codemap.reading import Known, Read, read_sources
from pyrometer.codemap.sources import Sources, find_sources
from pyrometer.errors import UsageError
from pyrometer.record.code_map import CodeMap, FileFacts, Installed, Skipped

_MODULES = frozenset({".py", ".pyi", ".so", ".pyd"})
_OF_PYTHON = sys.stdlib_module_names | {"__main__", "sitecustomize", "usercustomize"}


def find_root(wanted: str, folder: Path) -> Path:
    """The folder or file that is meant: a path, or else a package that can be imported; none is."""
    path = folder / wanted
    if path.exists():
        return path.resolve()
    if "/" not in wanted and all(part.isidentifier() for part in wanted.split(".")):
        found = _find_package(wanted.split("."), [str(folder), *sys.path])
        if found is not None:
            return found
        raise UsageError(
            f"there is neither a file or folder {wanted!r} nor a package of that name; name a folder, or a "
            "package that this Python could import"
        )
    raise UsageError(f"there is no file or folder {wanted!r}; name one, or a package")


def _find_package(names: list[str], path: Iterable[str]) -> Path | None:
    """Where a package's sources are; its parents are not imported, unlike by ``importlib``."""
    spec = importlib.machinery.PathFinder.find_spec(names[0], list(path))
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    if len(names) > 1:
        return _find_package(names[1:], folders)
    if folders:
        return Path(folders[0]).resolve()
    return Path(spec.origin).resolve() if spec.origin and os.path.exists(spec.origin) else None  # noqa: PTH110


def make_map(
    root: Path, *, project: Path, with_vendored: bool = False, known: Known | None = None
) -> tuple[CodeMap, Read]:
    """The map of a folder or file; ``project`` is the folder whose declarations count for it."""
    sources = find_sources(root, with_vendored=with_vendored)
    read = read_sources(sources, known=known)
    declared = Declarations()
    if _is_own(root, project):
        declared = find_declarations(project, _folders(sources, project))
    imported = _imported_names(read.files)
    names = {name.partition(".")[0] for name in imported}
    code = CodeMap(
        pyrometer_version=__version__,
        name=root.name,
        package=_package(root),
        root=str(sources.root),
        made_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        files=read.files,
        skipped=(*read.skipped, *_outside(declared.skipped, read.skipped)),
        uncounted_files=sources.others,
        declarations=tuple(dict.fromkeys(declared.found)),
        are_declarations_known=declared.are_known,
        installed=tuple(_installed(imported, declared.own)),
        installed_declared=tuple(sorted({one.name for one in declared.found if _is_installed(one.name)})),
        standard_library=tuple(sorted(names & _OF_PYTHON)),
        own_packages=tuple(sorted(_own_packages(project))) if _is_own(root, project) else (),
        is_whole=_is_whole(root, project),
    )
    return code, read


def _own_packages(project: Path) -> set[str]:
    """What can be imported from the project's folder, or from its ``src``."""
    found: set[str] = set()
    for folder in (project, project / "src"):
        if folder.is_dir():
            found |= {path.parent.name for path in folder.glob("*/__init__.py")}
            found |= {path.stem for path in folder.glob("*.py")}
    return found


def _is_whole(root: Path, project: Path) -> bool:
    package = _package(root)
    return root == project or (package is not None and "." not in package)


def _package(root: Path) -> str | None:
    """The full name of a folder that is a package."""
    return Layout(root, ()).above if root.is_dir() else None


def _is_own(root: Path, project: Path) -> bool:
    """Whether the project's declarations are those of the sources: not of what is installed in its folder."""
    inside = root.relative_to(project).parts if root.is_relative_to(project) else ("site-packages",)
    return "site-packages" not in inside


def _folders(sources: Sources, project: Path) -> list[str]:
    """The folders of all sources, as seen from the project."""
    if not sources.root.is_relative_to(project):
        return []
    inside = sources.root.relative_to(project)
    return [str(inside / folder) for folder in {one.path.rpartition("/")[0] for one in sources.files}]


def _outside(found: Iterable[Skipped], known: Iterable[Skipped]) -> list[Skipped]:
    seen = {one.path for one in known}
    return [one for one in found if one.path not in seen]


def _imported_names(files: Iterable[FileFacts]) -> frozenset[str]:
    """Everything that is imported, and what is taken out of it, in full."""
    imports = {(one.module, one.name) for file in files for one in file.imports}
    return frozenset(module if name is None else f"{module}.{name}" for module, name in imports)


def _installed(imported: frozenset[str], own: Collection[str]) -> Iterator[Installed]:
    """What is installed of what is imported, but for the project; several may share a name's first part."""
    by_name = metadata.packages_distributions()
    for name in sorted({one.partition(".")[0] for one in imported} & by_name.keys()):
        # One that was removed by half has no name.
        distributions = sorted({one for one in by_name[name] if one and normalized(one) not in own})
        owners: Mapping[str, Sequence[str]] = {name: distributions}
        if len(distributions) > 1:
            owners = _owners(sorted(one for one in imported if one.split(".")[0] == name), distributions)
        for import_name, its in owners.items():
            if its:
                version = metadata.version(its[0])
                yield Installed(import_name=import_name, distributions=tuple(its), version=version)


def _owners(imported: Iterable[str], distributions: Sequence[str]) -> dict[str, Sequence[str]]:
    """By as much of a name as tells them apart, whose files those modules are."""
    files = {
        one: {str(file).partition(".")[0] for file in metadata.files(one) or () if file.suffix in _MODULES}
        for one in distributions
    }
    folders = {
        one: {str(above) for file in its for above in PurePath(file).parents} for one, its in files.items()
    }
    owners: dict[str, Sequence[str]] = {}
    for name in imported:
        parts = name.split(".")
        having: Sequence[str] = distributions
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            inside = [one for one in having if path in folders[one] or path in files[one]]
            if not inside:
                # What is taken out of a module: that is whose it is.
                owners[".".join(parts[: depth - 1]) or parts[0]] = having
                break
            having = inside
            if len(having) == 1:
                owners[".".join(parts[:depth])] = having
                break
        else:
            owners[name] = having
    return owners


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
