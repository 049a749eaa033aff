"""Which files of a tree are sources, and which are left out, and why."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyrometer.codemap.ignored import Ignored
from pyrometer.codemap.languages import BY_ENDING, BY_NAME, NOTEBOOK, NOTEBOOK_ENDING, PYTHON, PYTHON_ENDINGS
from pyrometer.record.code_map import Skipped

MAX_SOURCE_BYTES = 8 << 20
"""A larger file was written by a program, and its syntax tree would take a hundred times as much."""

_NO_FILE = "a pipe, a device or the like"
_NEVER = frozenset({"__pycache__", ".git", ".hg", ".svn"})
"""Hold no sources, and are not worth a word."""
_VENDORED = frozenset({"_vendor", "vendor", "vendored", "_vendored", "third_party", "thirdparty", "extern"})
_OTHERS = {"node_modules": "packages of Node.js", "site-packages": "installed packages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that is to be read."""

    path: str
    """From the root, with forward slashes."""
    language: str
    size: int
    modified_ns: int
    changed_ns: int
    """When anything about it changed last, its name or place too."""


@dataclass(slots=True, kw_only=True)
class Sources:
    """What a tree holds."""

    root: Path
    files: list[Source] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    others: int = 0
    """Files of languages that are not counted, such as data."""


def find_sources(root: Path, *, with_vendored: bool = False) -> Sources:
    """All sources below a folder, in the order of their paths; or the one file."""
    found = Sources(root=root if root.is_dir() else root.parent)
    if not root.is_dir() and not root.is_file():
        found.skipped.append(Skipped(path=root.name, reason=_NO_FILE))
    elif root.is_dir():
        _Walk(found, with_vendored=with_vendored).through(root, Ignored.at(root))
    else:
        _Walk(found, with_vendored=True).add(str(root), root.name, root.stat())
    found.files.sort(key=lambda one: one.path)
    found.skipped.sort(key=lambda one: one.path)
    return found


class _Walk:
    """Paths are texts here: of ten thousand files, objects for them would take most of the time."""

    def __init__(self, found: Sources, *, with_vendored: bool) -> None:
        self._found = found
        self._root = f"{found.root}{os.sep}"
        self._with_vendored = with_vendored

    def through(self, folder: Path, ignored: Ignored) -> None:
        left = [(str(folder), ignored)]
        while left:
            here, rules = left.pop()
            try:
                entries = sorted(os.scandir(here), key=lambda entry: entry.name)
            except OSError as error:
                self._skip(here, f"cannot be read: {error.strerror}")
                continue
            left += ((inner, Ignored(Path(inner), rules)) for inner in self._look_at(entries, rules))

    def _look_at(self, entries: list[os.DirEntry[str]], rules: Ignored) -> Iterator[str]:
        """Add the files of one folder; the folders in it that are to be looked into."""
        for entry in entries:
            if entry.is_symlink():
                if entry.is_dir() or language_of(entry.name) is not None:
                    self._skip(entry.path, "a link, which is not followed")
            elif entry.is_dir():
                reason = self._why_not_into(entry, rules)
                if reason is None:
                    yield entry.path
                elif reason:
                    self._skip(entry.path, reason)
            else:
                self._look_at_file(entry, rules)

    def _look_at_file(self, entry: os.DirEntry[str], rules: Ignored) -> None:
        reason = "left out by .gitignore"
        if not rules.has(entry.path, is_folder=False):
            reason = _NO_FILE
            if entry.is_file():
                try:
                    self.add(entry.path, entry.name, entry.stat())
                except OSError as error:  # it has gone meanwhile
                    reason = f"cannot be read: {error.strerror}"
                else:
                    return
        if language_of(entry.name) is not None:
            self._skip(entry.path, reason)

    def _why_not_into(self, entry: os.DirEntry[str], rules: Ignored) -> str | None:
        """Why a folder is not looked into; None where it is, empty where that is not worth a word."""
        name = entry.name
        if name in _NEVER or name.endswith((".egg-info", ".dist-info")):
            return ""
        reasons = (
            (os.path.exists(f"{entry.path}/pyvenv.cfg"), "a virtual environment"),  # noqa: PTH110 - that raises
            (os.path.exists(f"{entry.path}/conda-meta"), "an environment of conda's"),  # noqa: PTH110 - likewise
            (name in _OTHERS, _OTHERS.get(name)),
            (rules.has(entry.path, is_folder=True), "left out by .gitignore"),
            (name.startswith("."), "hidden"),
            (
                name in _VENDORED and not self._with_vendored,
                "code of others, kept along (--with-vendored reads it)",
            ),
        )
        return next((reason for holds, reason in reasons if holds), None)

    def add(self, path: str, name: str, status: os.stat_result) -> None:
        language = language_of(name)
        if language is None:
            self._found.others += 1
        elif not _is_text(path):
            self._skip(path, "its name is no text")
        elif status.st_size > MAX_SOURCE_BYTES:
            self._skip(path, f"larger than {MAX_SOURCE_BYTES >> 20} MiB")
        else:
            self._found.files.append(
                Source(
                    path=self._shown(path),
                    language=language,
                    size=status.st_size,
                    modified_ns=status.st_mtime_ns,
                    changed_ns=status.st_ctime_ns,
                )
            )

    def _skip(self, path: str, reason: str) -> None:
        self._found.skipped.append(Skipped(path=self._shown(path), reason=reason))

    def _shown(self, path: str) -> str:
        seen = path.removeprefix(self._root)
        return seen if _is_text(seen) else seen.encode("utf-8", "backslashreplace").decode()


def _is_text(name: str) -> bool:
    """Whether a name can be written into a file: those of files may be any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def language_of(name: str) -> str | None:
    """The language of a file by its name; None where it is none that is counted."""
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a name, no path
    if ending in PYTHON_ENDINGS:
        return PYTHON
    if ending == NOTEBOOK_ENDING:
        return NOTEBOOK
    language = BY_NAME.get(name) or BY_ENDING.get(ending)
    return None if language is None else language.name
