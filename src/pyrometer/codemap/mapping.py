"""From a path, or the name of a package, to its code map."""

import importlib.machinery
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from importlib import metadata
from pathlib import Path

from pyrometer._version import __version__
from pyrometer.codemap.declarations import find_declarations
from pyrometer.codemap.layout import Layout
from pyrometer.codemap.reading import Known, Read, read_sources
from pyrometer.codemap.sources import find_sources
from pyrometer.errors import UsageError
from pyrometer.record.code_map import CodeMap, Declaration, FileFacts, Installed, Skipped


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
    declarations, unreadable = find_declarations(project) if _is_own(root, project) else ([], [])
    imported = _imported_names(read.files)
    code = CodeMap(
        pyrometer_version=__version__,
        name=root.name,
        package=_package(root),
        root=str(sources.root),
        made_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        files=read.files,
        skipped=(*read.skipped, *_outside(unreadable, read.skipped)),
        uncounted_files=sources.others,
        declarations=_once(declarations),
        installed=tuple(_installed(imported)),
        standard_library=tuple(sorted(imported & {*sys.stdlib_module_names, "__main__"})),
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


def _once(declarations: Iterable[Declaration]) -> tuple[Declaration, ...]:
    return tuple(dict.fromkeys(declarations))


def _outside(found: Iterable[Skipped], known: Iterable[Skipped]) -> list[Skipped]:
    seen = {one.path for one in known}
    return [one for one in found if one.path not in seen]


def _imported_names(files: Iterable[FileFacts]) -> frozenset[str]:
    """The first part of everything that is imported."""
    return frozenset(one.module.partition(".")[0] for file in files for one in file.imports)


def _installed(names: frozenset[str]) -> Iterable[Installed]:
    by_name = metadata.packages_distributions()
    for name in sorted(names & by_name.keys()):
        distributions = tuple(sorted(set(by_name[name])))
        yield Installed(
            import_name=name, distributions=distributions, version=metadata.version(distributions[0])
        )
