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
        skipped.append(Skipped(path="setup.py", reason="what it declares is known only by running it"))
    return found, skipped


def _of_pyproject(path: Path, shown: str) -> Iterator[Declaration]:
    content: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    project = content.get("project", {})
    yield from _declared(project.get("dependencies", ()), shown)
    for group, requirements in project.get("optional-dependencies", {}).items():
        yield from _declared(requirements, shown, group)
    for group, requirements in content.get("dependency-groups", {}).items():
        yield from _declared((one for one in requirements if isinstance(one, str)), shown, group)
    poetry = content.get("tool", {}).get("poetry", {})
    yield from _declared((one for one in poetry.get("dependencies", {}) if one != "python"), shown)
    for group, its in poetry.get("group", {}).items():
        yield from _declared(its.get("dependencies", {}), shown, group)
    yield from _declared(content.get("build-system", {}).get("requires", ()), shown, "build")


def _of_setup_cfg(path: Path, shown: str) -> Iterator[Declaration]:
    content = configparser.ConfigParser(interpolation=None)
    content.read_string(path.read_text(encoding="utf-8"))
    yield from _declared(content.get("options", "install_requires", fallback="").splitlines(), shown)
    if content.has_section("options.extras_require"):
        for group, requirements in content.items("options.extras_require"):
            yield from _declared(requirements.splitlines(), shown, group)


def _of_requirements(path: Path, shown: str) -> Iterator[Declaration]:
    stem = path.stem.removeprefix("requirements").strip("-_.")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    wanted = (line for line in lines if not line.lstrip().startswith(("#", "-")) and "://" not in line)
    yield from _declared(wanted, shown, stem or None)


def _declared(requirements: Iterable[str], where: str, group: str | None = None) -> Iterator[Declaration]:
    for requirement in requirements:
        name = _NAME.match(requirement)
        if name is not None:
            yield Declaration(name=normalized(name[1]), where=where, group=group)


_READERS = {"pyproject.toml": _of_pyproject, "setup.cfg": _of_setup_cfg}
