"""Which packages a project says it needs: in pyproject.toml, setup.cfg and requirements files."""

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyrometer.analysis.codemap.packages import normalized
from pyrometer.record.code_map import Declaration, Skipped

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_INCLUDED = re.compile(r"\s*(?:-r|--requirement)[ =]\s*(\S+)")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_ADDRESS = re.compile(r"\s*[a-z+]+://|\s*[./]")
_DEEPEST = 5


def find_declarations(project: Path) -> tuple[list[Declaration], list[Skipped]]:
    """All declarations of the project in this folder, and the files that could not be read."""
    found: list[Declaration] = []
    skipped: list[Skipped] = []
    readers = [
        *((project / name, reader) for name, reader in _READERS.items() if (project / name).is_file()),
        *((path, _of_requirements) for path in sorted(project.glob("requirements*.txt")) if path.is_file()),
        *((path, _of_requirements) for path in sorted(project.glob("requirements/*.txt")) if path.is_file()),
    ]
    for path, reader in readers:
        shown = path.relative_to(project).as_posix()
        try:
            found += reader(path, shown)
        except (OSError, ValueError, configparser.Error, TypeError, AttributeError) as error:
            skipped.append(Skipped(path=shown, reason=f"cannot be read: {' '.join(str(error).split())}"))
    if (project / "setup.py").is_file() and not found:
        reason = "read as code; what packages it declares is known only by running it"
        skipped.append(Skipped(path="setup.py", reason=reason))
    return found, skipped


def _of_pyproject(path: Path, shown: str) -> Iterator[Declaration]:
    content: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    project = content.get("project", {})
    yield from _declared(_listed(project.get("dependencies", [])), shown)
    for group, requirements in project.get("optional-dependencies", {}).items():
        yield from _declared(_listed(requirements), shown, group)
    for group, requirements in content.get("dependency-groups", {}).items():
        yield from _declared((one for one in requirements if isinstance(one, str)), shown, group)
    yield from _of_poetry(content.get("tool", {}).get("poetry", {}), shown)
    yield from _declared(_listed(content.get("build-system", {}).get("requires", [])), shown, "build")


def _of_poetry(poetry: Mapping[str, Any], shown: str) -> Iterator[Declaration]:
    for name, wanted in poetry.get("dependencies", {}).items():
        is_optional = isinstance(wanted, dict) and bool(wanted.get("optional"))
        if name != "python":
            yield from _declared([name], shown, "optional" if is_optional else None)
    yield from _declared(poetry.get("dev-dependencies", {}), shown, "dev")
    for group, its in poetry.get("group", {}).items():
        yield from _declared(its.get("dependencies", {}), shown, group)


def _listed(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{value!r} is no list of requirements")
    return value


def _of_setup_cfg(path: Path, shown: str) -> Iterator[Declaration]:
    content = configparser.ConfigParser(interpolation=None)
    content.read_string(path.read_text(encoding="utf-8"))
    yield from _of_setting(path, content.get("options", "install_requires", fallback=""), shown, None)
    if content.has_section("options.extras_require"):
        for group, requirements in content.items("options.extras_require"):
            yield from _of_setting(path, requirements, shown, group)


def _of_setting(path: Path, text: str, shown: str, group: str | None) -> Iterator[Declaration]:
    """Requirements, or ``file:`` and the files they stand in."""
    if text.strip().startswith("file:"):
        for name in text.strip().removeprefix("file:").replace(",", " ").split():
            yield from _of_lines(path.parent / name, f"{shown}, {name}", group)
    else:
        yield from _declared(text.splitlines(), shown, group)


def _of_requirements(path: Path, shown: str) -> Iterator[Declaration]:
    group = path.stem.removeprefix("requirements").strip("-_.") or None
    yield from _of_lines(path, shown, group)


def _of_lines(path: Path, shown: str, group: str | None, depth: int = 0) -> Iterator[Declaration]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        included = _INCLUDED.match(line)
        egg = _EGG.search(line)
        if included is not None and depth < _DEEPEST:
            other = path.parent / included[1]
            if other.is_file():
                yield from _of_lines(other, shown, group, depth + 1)
        elif egg is not None:
            yield from _declared([egg[1]], shown, group)
        elif not line.lstrip().startswith(("#", "-")) and not _ADDRESS.match(line):
            yield from _declared([line], shown, group)


def _declared(requirements: Iterable[str], where: str, group: str | None = None) -> Iterator[Declaration]:
    for requirement in requirements:
        name = _NAME.match(requirement)
        if name is not None:
            yield Declaration(name=normalized(name[1]), where=where, group=group)


_READERS = {"pyproject.toml": _of_pyproject, "setup.cfg": _of_setup_cfg}
