"""Which packages a project says it needs: in pyproject.toml, setup.cfg, setup.py and requirements files."""

import ast
import codecs
import configparser
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrometer.analysis.codemap.packages import normalized
from pyrometer.record.code_map import Declaration, Skipped

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_INCLUDED = re.compile(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)")
_NAMED_ADDRESS = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^]]*\])?\s*@\s")
_REMARK = re.compile(r"(?:^|\s)#.*$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_ARCHIVE = re.compile(r"(?:^|/)([A-Za-z0-9_.]+)-\d[^/\s]*\.(?:whl|tar\.gz|zip)\b")
_ADDRESS = re.compile(r"\s*[^\s;=<>!~@#\[]*[/\\]")
_BY_MARK = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ONLY_BY_RUNNING = "read as code; what packages it declares is known only by running it"
_MARKERS = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")


@dataclass(slots=True, kw_only=True)
class Declarations:
    """What a project says it needs."""

    found: list[Declaration] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    """Files that could not be read, or not understood."""
    own: set[str] = field(default_factory=set)
    """The names of the projects themselves."""
    places: int = 0
    """Where what is always needed is declared, as far as that could be read."""

    @property
    def are_known(self) -> bool:
        """Whether there is a place for them, and all could be read."""
        return self.places > 0 and not self.skipped


def find_declarations(project: Path, inner: Iterable[str] = ()) -> Declarations:
    """All declarations of the project in this folder, and of those in folders inside it."""
    found = Declarations()
    for folder in dict.fromkeys((project, *(project / one for one in inner))):
        if any((folder / name).is_file() for name in _MARKERS) or folder == project:
            _Reader(folder, project, found).read()
    return found


@dataclass(slots=True)
class _Reader:
    """Reads the files of one project."""

    folder: Path
    project: Path
    declared: Declarations
    own: str | None = None
    """The project's own name: with one of its extras it may need itself."""

    def read(self) -> None:
        readers: list[tuple[str, Callable[[Path, str], None]]] = [
            ("pyproject.toml", self._read_pyproject),
            ("setup.cfg", self._read_setup_cfg),
            ("setup.py", self._read_setup),
            ("requirements*.txt", self._read_requirements),
            ("requirements/*.txt", self._read_requirements),
        ]
        for pattern, reader in readers:
            for path in sorted(self.folder.glob(pattern)):
                if path.is_file():
                    self._read(path, reader)

    def _read(self, path: Path, reader: Callable[[Path, str], None]) -> None:
        shown = path.relative_to(self.project).as_posix()
        try:
            reader(path, shown)
        except (
            OSError, ValueError, SyntaxError, configparser.Error, TypeError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            why = " ".join(str(error).split())
            self.declared.skipped.append(Skipped(path=shown, reason=f"cannot be read: {why}"))

    def _add(self, requirements: Iterable[str], where: str, group: str | None = None) -> None:
        for requirement in requirements:
            name = _NAME.match(requirement)
            if name is not None and normalized(name[1]) != self.own:
                self.declared.found.append(Declaration(name=normalized(name[1]), where=where, group=group))

    def _is_called(self, name: object) -> None:
        if isinstance(name, str):
            self.own = normalized(name)
            self.declared.own.add(self.own)

    def _read_pyproject(self, path: Path, shown: str) -> None:
        content: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        tools = content.get("tool", {})
        project = content.get("project")
        if project is not None:
            name = project.get("name")
            self._is_called(name)
            dynamic = tools.get("setuptools", {}).get("dynamic", {})
            for group, files in dynamic.get("optional-dependencies", {}).items():
                self._add_files(path, files.get("file", []), shown, group)
            if "dependencies" in project.get("dynamic", ()):
                self._read_dynamic(path, dynamic, shown)
            else:
                self.declared.places += 1
                self._add(_listed(project.get("dependencies", [])), shown)
            for group, requirements in project.get("optional-dependencies", {}).items():
                self._add(_listed(requirements), shown, group)
        for group, requirements in content.get("dependency-groups", {}).items():
            self._add((one for one in requirements if isinstance(one, str)), shown, group)
        self._read_poetry(tools.get("poetry", {}), shown)
        self._add(_listed(content.get("build-system", {}).get("requires", [])), shown, "build")

    def _read_dynamic(self, path: Path, dynamic: Mapping[str, Any], shown: str) -> None:
        """Dependencies that stand in files of requirements, or are left to ``setup.py``."""
        files = dynamic.get("dependencies", {}).get("file", [])
        self.declared.places += bool(files)
        self._add_files(path, files, shown, None)
        if not files and not (path.parent / "setup.py").is_file():
            self.declared.skipped.append(Skipped(path=shown, reason="its dependencies are made by a program"))

    def _add_files(self, path: Path, files: str | list[str], shown: str, group: str | None) -> None:
        for name in [files] if isinstance(files, str) else files:
            self._add(_lines_of(path.parent / name), f"{shown}, {name}", group)

    def _read_poetry(self, poetry: Mapping[str, Any], shown: str) -> None:
        self.declared.places += "dependencies" in poetry
        for name, wanted in poetry.get("dependencies", {}).items():
            is_optional = isinstance(wanted, dict) and bool(wanted.get("optional"))
            if name != "python":
                self._add([name], shown, "optional" if is_optional else None)
        self._add(poetry.get("dev-dependencies", {}), shown, "dev")
        for group, its in poetry.get("group", {}).items():
            self._add(its.get("dependencies", {}), shown, group)

    def _read_setup_cfg(self, path: Path, shown: str) -> None:
        content = configparser.ConfigParser(interpolation=None)
        content.read_string(path.read_text(encoding="utf-8"))
        self._is_called(content.get("metadata", "name", fallback=None))
        if content.has_option("options", "install_requires"):
            self.declared.places += 1
            self._add_setting(path, content.get("options", "install_requires"), shown, None)
        if content.has_section("options.extras_require"):
            for group, requirements in content.items("options.extras_require"):
                self._add_setting(path, requirements, shown, group)

    def _add_setting(self, path: Path, text: str, shown: str, group: str | None) -> None:
        """Requirements, or ``file:`` and the files they stand in."""
        if text.strip().startswith("file:"):
            names = text.strip().removeprefix("file:").replace(",", " ").split()
            self._add_files(path, names, shown, group)
        else:
            self._add(text.splitlines(), shown, group)

    def _read_setup(self, path: Path, shown: str) -> None:
        """As far as it is written out; it is not run."""
        tree = ast.parse(path.read_bytes())
        given = {
            one.targets[0].id: one.value
            for one in tree.body
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "setup":
                self._read_call(call, given, shown)

    def _read_call(self, call: ast.Call, given: Mapping[str, ast.expr], shown: str) -> None:
        settings = {one.arg: one.value for one in call.keywords}
        groups: dict[object, Sequence[str]] | None
        try:
            self._is_called(_literal(settings.get("name"), given))
            groups = {None: _listed(_literal(settings.get("install_requires"), given) or [])}
            groups |= _literal(settings.get("extras_require"), given) or {}
        except (ValueError, TypeError):
            groups = None
        if groups is None or None in settings:
            self.declared.skipped.append(Skipped(path=shown, reason=_ONLY_BY_RUNNING))
            return
        self.declared.places += "install_requires" in settings
        for group, requirements in groups.items():
            self._add(_listed(requirements), shown, None if group is None else str(group))
        self._add(["setuptools"], shown, "build")

    def _read_requirements(self, path: Path, shown: str) -> None:
        group = path.stem.removeprefix("requirements").strip("-_.") or None
        self.declared.places += group is None
        self._add(_lines_of(path), shown, group)


def _literal(value: ast.expr | None, given: Mapping[str, ast.expr]) -> Any:
    """A value that is written out, there or under a name of the module; ``ValueError`` for any other."""
    if isinstance(value, ast.Name):
        value = given.get(value.id, value)
    return None if value is None else ast.literal_eval(value)


def _listed(value: object) -> Sequence[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{value!r} is no list of requirements")
    return value


def _lines_of(path: Path, seen: set[Path] | None = None) -> Iterator[str]:
    """The requirements of a file, and of those it includes; each file once."""
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    seen = set() if seen is None else seen
    seen.add(path.resolve())
    data = path.read_bytes()
    encoding = next((name for mark, name in _BY_MARK.items() if data.startswith(mark)), "utf-8-sig")
    for written in data.decode(encoding, "replace").splitlines():
        line = _REMARK.sub("", written)
        included = _INCLUDED.match(line)
        if included is not None:
            other = path.parent / included[1]
            if other.is_file() and other.resolve() not in seen:
                yield from _lines_of(other, seen)
        elif _NAMED_ADDRESS.match(line):
            yield line
        elif (egg := _EGG.search(line) or _ARCHIVE.search(line)) is not None:
            yield egg[1]
        elif not line.lstrip().startswith("-") and not _ADDRESS.match(line):
            yield line
